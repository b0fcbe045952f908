#include "gui/run/child.h"

#include <QDir>
#include <QFileInfo>
#include <QJsonDocument>
#include <QJsonObject>
#include <QStandardPaths>
#include <algorithm>
#include <csignal>

namespace foreshard {

// How much a child may print before it is stopped as broken, and how much of its error text is kept.
static constexpr qsizetype kMostOut = qsizetype{256} << 20, kMostLine = qsizetype{1} << 20, kMostSaid = qsizetype{16} << 10;

Child::Child(QString program, QObject* parent) : QObject(parent), program_(std::move(program)) {
  silence_.setSingleShot(true);
  connect(&silence_, &QTimer::timeout, this, [this] {
    end(ChildEnd::Silent, -1,
        tr("foreshard said nothing for %n second(s) and was stopped.", nullptr, static_cast<int>(silence_.interval() / 1000)));
  });
}

Child::~Child() { drop(); }

// Kills the process without waiting for its end.
void Child::drop() {
  silence_.stop();
  if (process_ == nullptr) return;
  QProcess* const old = process_;
  process_ = nullptr;
  old->disconnect(this);
  old->kill();
  if (old->state() == QProcess::NotRunning) {
    old->deleteLater();
    return;
  }
  old->setParent(nullptr);
  connect(old, &QProcess::finished, old, &QObject::deleteLater);
  connect(old, &QProcess::errorOccurred, old, [old](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart) old->deleteLater();
  });
}

void Child::start(const QStringList& words, std::chrono::milliseconds patience) {
  drop();
  out_.clear(), rest_.clear(), said_.clear();
  process_ = new QProcess(this);
  connect(process_, &QProcess::readyReadStandardOutput, this, &Child::read_out);
  connect(process_, &QProcess::readyReadStandardError, this, &Child::read_errors);
  connect(process_, &QProcess::finished, this, [this](int code, QProcess::ExitStatus status) {
    read_out();
    read_errors();
    if (process_ == nullptr) return;
    if (!rest_.isEmpty()) take_line(std::exchange(rest_, {}));
    if (status == QProcess::CrashExit || code >= 70) {
      const bool outside = status == QProcess::CrashExit && (code == SIGKILL || code == SIGTERM);
      end(ChildEnd::Crashed, code,
          outside ? tr("foreshard was ended from outside (signal %1).").arg(code)
                  : tr("foreshard crashed (code %1). %2").arg(code).arg(last_words()).trimmed());
    } else if (code == 0 || code == 2) {
      end(ChildEnd::Done, code, {});
    } else {
      const QString why = last_words();
      end(code == 3 ? ChildEnd::DeviceFailure : ChildEnd::WrongInput, code,
          why.isEmpty() ? tr("foreshard ended with code %1 and no message.").arg(code) : why);
    }
  });
  connect(process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error != QProcess::FailedToStart) return;
    end(ChildEnd::NotStarted, -1,
        tr("The program %1 cannot be started: %2").arg(QDir::toNativeSeparators(program_), process_->errorString()));
  });
  silence_.setInterval(patience);
  if (patience.count() > 0) silence_.start();
  process_->setStandardInputFile(QProcess::nullDevice());
  process_->start(program_, words);
}

void Child::cancel() {
  if (process_ != nullptr) end(ChildEnd::Cancelled, -1, tr("Stopped."));
}

void Child::end(ChildEnd how, int exit_code, const QString& message) {
  drop();
  Q_EMIT finished({how, exit_code, std::exchange(out_, {}), message});
}

void Child::read_out() {
  if (process_ == nullptr) return;
  out_ += process_->readAllStandardOutput();
  if (silence_.interval() > 0) silence_.start();
  if (out_.size() > kMostOut) end(ChildEnd::Crashed, -1, tr("foreshard wrote more than 256 MiB and was stopped."));
}

void Child::read_errors() {
  if (process_ == nullptr) return;
  rest_ += process_->readAllStandardError();
  if (silence_.interval() > 0) silence_.start();
  qsizetype begin = 0;
  for (qsizetype end = rest_.indexOf('\n'); end >= 0; end = rest_.indexOf('\n', begin)) {
    take_line(rest_.mid(begin, end - begin));
    if (process_ == nullptr) return;  // who listens has cancelled
    begin = end + 1;
  }
  rest_.remove(0, begin);
  if (rest_.size() > kMostLine) take_line(std::exchange(rest_, {}));
}

void Child::take_line(QByteArray line) {
  line = line.trimmed();
  if (line.startsWith('{') && line.size() <= kMostLine) {
    const QJsonDocument json = QJsonDocument::fromJson(line);
    if (json.isObject()) {
      const QJsonValue fraction = json.object().value(QStringLiteral("progress"));
      if (fraction.isDouble())
        Q_EMIT progress(std::clamp(fraction.toDouble(), 0.0, 1.0));
      else
        Q_EMIT told(line);
      return;
    }
  }
  if (line.isEmpty()) return;
  said_ += line.left(kMostSaid) + '\n';
  if (said_.size() > kMostSaid) said_ = said_.right(kMostSaid);
}

// Its error text, without the name of the program at its beginning.
QString Child::last_words() const {
  QString text = QString::fromUtf8(said_).trimmed();
  const QString name = QStringLiteral("foreshard: ");
  if (text.startsWith(name)) text = text.mid(name.size());
  return text.size() > 1000 ? text.left(500) + QStringLiteral(" … ") + text.right(400) : text;
}

QString find_program(const QString& name, const QString& beside) {
  const QFileInfo near(QDir(beside).filePath(name));
  if (near.isExecutable() && near.isFile()) return near.absoluteFilePath();
  return QStandardPaths::findExecutable(name);
}

}  // namespace foreshard
