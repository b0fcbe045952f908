// Simulation: simulates the choices or a plan with the foreshard program in a child process, and returns the result as a Document. A new
// request stops the earlier one.
#pragma once

#include <QObject>
#include <QStringList>
#include <QTemporaryDir>
#include <memory>

#include "gui/document/choices.h"
#include "gui/document/document.h"
#include "gui/run/child.h"

namespace foreshard {

// The outcome of a simulation. A job that does not fit into memory is simulated nevertheless, so it has both a document and a reason.
struct Simulated {
  Choices choices = {};
  Granularity granularity = Granularity::Stage;
  std::shared_ptr<const Document> document = {};     // shared by the views; null: there is no plan
  QString reason = {};                               // why it is infeasible or does not fit; empty: it fits
  QStringList would_help = {};                       // proposed changes, see apply_remedy
  std::map<std::string, std::string> resolved = {};  // path -> value of every option; Auto replaced by its resolved value
};

class Simulation : public QObject {
  Q_OBJECT
 public:
  explicit Simulation(const QString& program, QObject* parent = nullptr);

  // Each starts a simulation; `done` or `failed` follows, unless a newer request replaces it.
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
  void failed(const QString& message, bool wrong_input);  // or it crashed or hung; empty: cancelled

 private:
  void begin(QStringList words, Granularity granularity);
  void take(const ChildOutcome& outcome);
  void load(Simulated simulated, const QString& file);

  Child child_;
  QTemporaryDir folder_;
  Simulated asked_;
  int request_ = 0;  // number of the newest request, by which late answers are recognised
  bool loading_ = false;
};

// Reads "feasible", "infeasible_reason", "would_help" and "strategy" of the output of `simulate --json`. Throws Error.
void read_answer(Simulated& simulated, const QByteArray& json);

}  // namespace foreshard
