// Simulation: the choices played by the foreshard program in a child process; its result comes back as a Document. Only the
// newest request counts: what was asked before is stopped.
#pragma once

#include <QObject>
#include <QStringList>
#include <QTemporaryDir>
#include <memory>

#include "gui/document/choices.h"
#include "gui/document/document.h"
#include "gui/run/child.h"

namespace foreshard {

// What a simulation came to. A job that does not fit is played all the same, so it has both a document and a reason.
struct Simulated {
  Choices choices = {};
  Granularity granularity = Granularity::Stage;
  std::shared_ptr<const Document> document = {};  // shared by the views; null: no plan at all
  QString reason = {};                            // why it cannot be or does not fit
  QStringList would_help = {};
  std::map<std::string, std::string> resolved = {};  // every option, Auto replaced by what it came to
};

class Simulation : public QObject {
  Q_OBJECT
 public:
  explicit Simulation(const QString& program, QObject* parent = nullptr);

  void request(const Choices& choices, Granularity granularity);
  void request_plan(const QString& plan_file, Granularity granularity);
  void request_plan(const Plan& plan, Granularity granularity);
  void cancel();
  bool busy() const { return child_.running() || loading_; }
  void set_program(const QString& program) { child_.set_program(program); }

 Q_SIGNALS:
  void started();
  void progress(double fraction);
  void done(const foreshard::Simulated& simulated);
  void failed(const QString& message, bool wrong_input);  // or a crash, silence; empty: cancelled

 private:
  void begin(QStringList words, Granularity granularity);
  void take(const ChildOutcome& outcome);
  void load(Simulated simulated, const QString& file);

  Child child_;
  QTemporaryDir folder_;
  Simulated asked_;
  int request_ = 0;  // counts, so that what comes late is known as old
  bool loading_ = false;
};

// "feasible", "infeasible_reason", "would_help" and "strategy" of `simulate --json`. Throws Error.
void read_answer(Simulated& simulated, const QByteArray& json);

}  // namespace foreshard
