// One run of the foreshard program as a child process: its JSON lines as they come, its answer at the end. Nothing blocks.
#pragma once

#include <QByteArray>
#include <QObject>
#include <QProcess>
#include <QStringList>
#include <QTimer>
#include <chrono>

namespace foreshard {

// Done also for a job that does not fit (exit code 2): its answer has the reason and the numbers.
enum class ChildEnd { Done, WrongInput, DeviceFailure, Crashed, Silent, Cancelled, NotStarted };

struct ChildOutcome {
  ChildEnd end = ChildEnd::Done;
  int exit_code = 0;
  QByteArray out = {};   // standard output
  QString message = {};  // what a person is told; empty when done
};

class Child : public QObject {
  Q_OBJECT
 public:
  explicit Child(QString program, QObject* parent = nullptr);
  ~Child() override;  // ends the process

  // Starts `program words`. One run at a time: a running one is cancelled first, without a signal. A child that
  // writes nothing for `patience` is ended (0: never).
  void start(const QStringList& words, std::chrono::milliseconds patience = std::chrono::milliseconds(0));
  void cancel();  // `finished` follows with ChildEnd::Cancelled
  bool running() const { return process_ != nullptr; }
  void set_program(const QString& program) { program_ = program; }
  const QString& program() const { return program_; }

 Q_SIGNALS:
  void progress(double fraction);     // lines {"progress": 0.25}
  void told(const QByteArray& json);  // every other line that is a JSON object
  void finished(const foreshard::ChildOutcome& outcome);

 private:
  void read_out();
  void read_errors();
  void take_line(QByteArray line);
  void end(ChildEnd how, int exit_code, const QString& message);
  void drop();
  QString last_words() const;

  QString program_;
  QProcess* process_ = nullptr;
  QTimer silence_;
  QByteArray out_, rest_, said_;  // standard output; an unfinished line; lines that are no JSON
};

// `name` beside this program, else on PATH; empty when nowhere.
QString find_program(const QString& name, const QString& beside);

}  // namespace foreshard
