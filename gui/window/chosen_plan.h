// ChosenPlan: what is chosen in the strategy panel, with undo, and what every change starts: an estimate at once, a simulation a
// moment later, whose plan is then shown. Until it is there, the picture is not current. A file can stand in for the choices.
#pragma once

#include <QElapsedTimer>
#include <QTimer>
#include <QUndoStack>

#include "gui/document/freshness.h"
#include "gui/run/live_estimate.h"
#include "gui/run/simulation.h"
#include "gui/window/shown_plan.h"

namespace foreshard {

class ChosenPlan : public QObject {
  Q_OBJECT
 public:
  // All must outlive it. `program` empty: nothing is ever simulated.
  ChosenPlan(ShownPlan& shown, PlanViews& views, DockPanels& docks, Notices& notices, const QString& program);

  const Choices& choices() const { return choices_; }
  void set_choices(const Choices& choices, const QString& why);  // undoable; simulates
  void begin_with(const Choices& choices);                       // in the panel; not undoable, simulates nothing
  void assume(const Choices& choices) { choices_ = choices; }    // what a file that is opened next leaves open
  void forget_changes() { undo_.clear(); }
  QUndoStack& undo_stack() { return undo_; }

  void simulate_soon();
  void simulate_now();
  void simulate_file(const QString& plan_file);
  void show_result(const std::shared_ptr<const Document>& document, const QString& file);  // instead of the choices
  void result_refused();  // a file cannot be read: without a simulation nothing comes any more
  bool busy() const { return debounce_.isActive() || simulation_.busy(); }
  void stop();  // and everything else that the window computes

  Granularity granularity() const { return granularity_; }
  void set_granularity(Granularity granularity) { granularity_ = granularity; }  // of the next simulation
  void simulate_in(Granularity granularity);
  Freshness freshness() const { return freshness_; }
  void set_freshness(Freshness freshness);
  const QString& result_file() const { return result_file_; }  // a result or a plan that is shown instead of the choices
  const QString& refusal() const { return refusal_; }          // of the newest simulation
  void act_on_freshness();
  void show_resolved();
  void suggest_for(const Picked& picked);

 Q_SIGNALS:
  void changed();    // the choices
  void left_file();  // what is shown is of the choices again
  void began();      // a computation
  void simulated();  // and shown
  void answered();   // with a plan or a reason

 private:
  void take_edit(const Choices& choices, const QString& knob);
  void push_change(const Choices& before, const QString& knob, const QString& why);
  void take_estimate(const EstimateAnswer& answer);
  void take_simulated(const Simulated& simulated);
  void take_plan(const Simulated& simulated);
  void take_failure(const QString& message, bool wrong_input);
  void adopt_origin();
  QString said_plainly(const QString& reason) const;

  ShownPlan& shown_;
  PlanViews& views_;
  DockPanels& docks_;
  Notices& notices_;
  bool can_simulate_;
  Choices choices_;  // of the panel
  QUndoStack undo_;
  Simulation simulation_;
  LiveEstimate estimate_;
  QTimer debounce_;
  QElapsedTimer asked_;                // since the last request of a simulation
  std::optional<qint64> detail_took_;  // ms, of the last picture with the wanted detail
  Granularity granularity_ = Granularity::Layer;
  Freshness freshness_ = Freshness::Current;
  std::map<std::string, std::string> resolved_ = {};  // every option, Auto replaced by what it came to
  QString result_file_, refusal_;
};

}  // namespace foreshard
