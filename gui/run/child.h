// Child: runs the foreshard program as a child process. It reports the JSON lines of standard error as they
// are printed, and standard output at the end. No call blocks.
#pragma once

#include <QByteArray>
#include <QObject>
#include <QProcess>
#include <QStringList>
#include <QTimer>
#include <chrono>

namespace foreshard {

// How a run ended. Done: also a job that does not fit (exit code 2), whose output has the reason and the numbers. Silent: ended because
// it printed nothing for too long.
enum class ChildEnd { Done, WrongInput, DeviceFailure, Crashed, Silent, Cancelled, NotStarted };

struct ChildOutcome {
  ChildEnd end = ChildEnd::Done;
  int exit_code = 0;
  QByteArray out = {};   // standard output
  QString message = {};  // for the user; empty when done
};

class Child : public QObject {
  Q_OBJECT
 public:
  explicit Child(QString program, QObject* parent = nullptr);
  ~Child() override;  // kills the process

  // Starts the program with the arguments `words`. One run at a time: a running one is cancelled first, without a signal. A child that
  // prints nothing for `patience` is ended (0: never).
  void start(const QStringList& words, std::chrono::milliseconds patience = std::chrono::milliseconds(0));
  void cancel();  // `finished` follows with ChildEnd::Cancelled
  bool running() const { return process_ != nullptr; }
  void set_program(const QString& program) { program_ = program; }
  const QString& program() const { return program_; }

 Q_SIGNALS:
  void progress(double fraction);     // 0..1, from lines {"progress": 0.25}
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
  QByteArray out_, rest_, said_;  // standard output; an unfinished line of standard error; its lines that are not JSON
};

// The path of the program `name` in the folder `beside`, else on PATH; empty: not found.
QString find_program(const QString& name, const QString& beside);

}  // namespace foreshard
