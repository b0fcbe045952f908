// ChosenPlan: the choices of the strategy panel, with undo. Every change starts an estimate at once and a simulation after a short delay;
// the simulated plan is then shown. Until then the views are not current. A result or plan file can be shown instead of the choices.
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
  // All must outlive it. `program`: path of foreshard; empty: nothing can be simulated.
  ChosenPlan(ShownPlan& shown, PlanViews& views, DockPanels& docks, Notices& notices, const QString& program);

  const Choices& choices() const { return choices_; }
  void set_choices(const Choices& choices, const QString& why);  // undoable; starts a simulation. `why`: the undo text
  void begin_with(const Choices& choices);  // and shows them in the panel; not undoable, starts no simulation
  void assume(const Choices& choices) { choices_ = choices; }  // without the panel; for what the next file leaves open
  void forget_changes() { undo_.clear(); }
  QUndoStack& undo_stack() { return undo_; }

  void simulate_soon();  // an estimate at once, a simulation after a delay that restarts with each call
  void simulate_now();   // the choices, or the plan of result_file()
  void simulate_file(const QString& plan_file);
  void show_result(const std::shared_ptr<const Document>& document, const QString& file);  // instead of the choices
  void result_refused();  // a file could not be read; if no simulation is under way either, the freshness becomes Stopped
  bool busy() const { return debounce_.isActive() || simulation_.busy(); }
  void stop();  // the simulation and everything else that the window computes

  Granularity granularity() const { return granularity_; }
  void set_granularity(Granularity granularity) { granularity_ = granularity; }  // of the next simulation
  void simulate_in(Granularity granularity);                                     // sets it and simulates now
  Freshness freshness() const { return freshness_; }
  void set_freshness(Freshness freshness);
  const QString& result_file() const { return result_file_; }  // a result or plan file that is shown instead of the choices
  const QString& refusal() const { return refusal_; }          // why the newest simulation failed
  void act_on_freshness();                                     // the action that the chip offers: stop, simulate or undo
  void show_resolved();                                        // in the panel: the values that Auto stands for
  void suggest_for(const Picked& picked);                      // starts to look for changes that shorten the picked bubble

 Q_SIGNALS:
  void changed();    // the choices have changed
  void left_file();  // no file is shown any more; the choices count again
  void began();      // a computation has started
  void simulated();  // a simulated plan is shown
  void answered();   // a simulation ended with a plan or with the reason why there is none

 private:
  void take_edit(const Choices& choices, const QString& knob);
  void push_change(const Choices& before, const QString& knob, const QString& why);
  void take_estimate(const EstimateAnswer& answer);
  void take_simulated(const Simulated& simulated);
  void take_plan(const Simulated& simulated);
  void take_failure(const QString& message, bool wrong_input);
  void adopt_origin();
  void say_time(const Document& document);  // in the status bar
  void say_of_file();                       // the panel and the status bar belong to the file that is open
  QString said_plainly(const QString& reason) const;

  ShownPlan& shown_;
  PlanViews& views_;
  DockPanels& docks_;
  Notices& notices_;
  bool can_simulate_;
  Choices choices_;  // those of the panel
  QUndoStack undo_;
  Simulation simulation_;
  LiveEstimate estimate_;
  QTimer debounce_;
  QElapsedTimer asked_;                // running since the last simulation was requested
  std::optional<qint64> detail_took_;  // ms that the last simulation with granularity_ took
  Granularity granularity_ = Granularity::Layer;
  Freshness freshness_ = Freshness::Current;
  std::map<std::string, std::string> resolved_ = {};  // path -> value of every option; Auto replaced by its resolved value
  QString result_file_, refusal_;
};

}  // namespace foreshard
