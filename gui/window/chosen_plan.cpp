#include "gui/window/chosen_plan.h"

#include <QCoreApplication>

#include "core/base/error.h"
#include "core/strategy/strategy_options.h"
#include "gui/compare/policy_view.h"
#include "gui/document/words.h"
#include "gui/run/run_panel.h"
#include "gui/search/search_panel.h"
#include "gui/strategy/choice_change.h"
#include "gui/strategy/strategy_panel.h"
#include "gui/strategy/suggestion_list.h"
#include "gui/widgets/engine_words.h"
#include "gui/window/dock_panels.h"
#include "gui/window/notices.h"
#include "report/summary/memory_rows.h"

namespace foreshard {

ChosenPlan::ChosenPlan(ShownPlan& shown, PlanViews& views, DockPanels& docks, Notices& notices, const QString& program)
    : shown_(shown), views_(views), docks_(docks), notices_(notices), can_simulate_(!program.isEmpty()), simulation_(program) {
  debounce_.setSingleShot(true);
  debounce_.setInterval(150);
  connect(&debounce_, &QTimer::timeout, this, &ChosenPlan::simulate_now);
  connect(docks_.strategy(), &StrategyPanel::edited, this, &ChosenPlan::take_edit);
  connect(docks_.strategy(), &StrategyPanel::remedy_chosen, this, [this](const QString& remedy) {
    Choices next = choices_;
    if (apply_remedy(next, remedy.toStdString())) set_choices(next, remedy);
  });
  connect(&simulation_, &Simulation::progress, &notices_, &Notices::show_progress);
  connect(&simulation_, &Simulation::done, this, &ChosenPlan::take_simulated);
  connect(&simulation_, &Simulation::failed, this, &ChosenPlan::take_failure);
  connect(&estimate_, &LiveEstimate::answered, this, &ChosenPlan::take_estimate);
  connect(&shown_, &ShownPlan::shown, this, [this] { set_freshness(Freshness::Current); });
}

void ChosenPlan::take_edit(const Choices& choices, const QString& knob) {
  const Choices before = choices_;
  if (choices == before) return;
  choices_ = choices;
  push_change(before, knob, {});
  simulate_soon();
}

void ChosenPlan::set_choices(const Choices& choices, const QString& why) {
  if (choices == choices_ && result_file_.isEmpty()) return;
  const Choices before = choices_;
  begin_with(choices);
  push_change(before, {}, why);
  simulate_soon();
}

// Changes of the same `knob` are merged. A change with `why` has no knob and is never merged.
void ChosenPlan::push_change(const Choices& before, const QString& knob, const QString& why) {
  auto* change = new ChoiceChange(before, choices_, knob, [this](const Choices& to) {
    begin_with(to);
    simulate_soon();
  });
  if (!why.isNull()) change->setText(why);
  undo_.push(change);
}

void ChosenPlan::begin_with(const Choices& choices) {
  choices_ = choices;
  docks_.strategy()->set_choices(choices);
}

void ChosenPlan::simulate_file(const QString& plan_file) {
  result_file_ = plan_file;
  Q_EMIT began();
  simulation_.request_plan(plan_file, granularity_);
}

void ChosenPlan::simulate_in(Granularity granularity) {
  granularity_ = granularity;
  detail_took_.reset();
  simulate_now();
}

void ChosenPlan::show_result(const std::shared_ptr<const Document>& document, const QString& file) {
  debounce_.stop();
  simulation_.cancel();  // it would come over the file
  result_file_ = file;
  shown_.show(document);
  adopt_origin();
  say_of_file();
}

void ChosenPlan::result_refused() {
  if (freshness_ == Freshness::Computing && !busy()) set_freshness(Freshness::Stopped);
}

void ChosenPlan::show_resolved() { docks_.strategy()->show_resolved(resolved_); }

void ChosenPlan::simulate_soon() {
  docks_.search()->set_choices(choices_);
  views_.policies()->set_choices(choices_);
  Q_EMIT changed();
  Q_EMIT began();
  simulation_.cancel();  // of the choices before: its answer would come late
  debounce_.stop();
  notices_.hide_progress();
  if (!docks_.strategy()->valid()) {  // the reason stands under the field
    docks_.strategy()->show_estimate({}, false);
    docks_.strategy()->show_refusal({}, {});
    set_freshness(Freshness::Refused);
    return;
  }
  result_file_.clear();
  Q_EMIT left_file();
  estimate_.ask(choices_);
  set_freshness(!can_simulate_ ? Freshness::Stopped : Freshness::Computing);
  debounce_.start();
}

// If the last simulation at the wanted granularity took longer, one at granularity Stage is shown first.
static constexpr qint64 kStagesFirst = 500;  // ms

void ChosenPlan::simulate_now() {
  debounce_.stop();
  Q_EMIT began();
  if (!can_simulate_ || !docks_.strategy()->valid()) return;
  set_freshness(Freshness::Computing);
  asked_.start();
  if (!result_file_.isEmpty() && shown_.document()) return simulation_.request_plan(shown_.document()->plan(), granularity_);
  simulation_.request(choices_, detail_took_ && *detail_took_ < kStagesFirst ? granularity_ : Granularity::Stage);
}

void ChosenPlan::set_freshness(Freshness freshness) {
  freshness_ = freshness;
  const QString old = shown_.document() ? " " + tr("The picture is of the previous strategy.") : QString();
  QString text, action;
  switch (freshness) {
    case Freshness::Current: break;
    case Freshness::Computing: text = tr("Simulating …") + old, action = tr("Stop"); break;
    case Freshness::Stopped:
      text = (!can_simulate_ ? tr("Without the program foreshard nothing can be simulated.") : tr("Stopped.")) + old;
      if (can_simulate_) action = tr("Simulate");
      break;
    case Freshness::Refused:
      text = choices_.model.empty()     ? tr("Choose a model.")
             : choices_.cluster.empty() ? tr("Choose a cluster to simulate %1 on.").arg(QString::fromStdString(choices_.model))
                                        : tr("This strategy cannot be simulated.") + old;
      if (undo_.canUndo()) action = tr("Undo");
      break;
  }
  views_.set_freshness(freshness, text, action, shown_.document() != nullptr);
  docks_.set_freshness(freshness);
  if (freshness != Freshness::Current) notices_.show_status(text);
}

void ChosenPlan::act_on_freshness() {
  switch (freshness_) {
    case Freshness::Current: break;
    case Freshness::Computing: stop(); break;
    case Freshness::Stopped: simulate_now(); break;
    case Freshness::Refused: undo_.undo(); break;
  }
}

void ChosenPlan::stop() {
  docks_.stop();
  debounce_.stop();
  simulation_.cancel();
  shown_.stop();
  notices_.hide_progress();
  if (freshness_ == Freshness::Computing) set_freshness(Freshness::Stopped);
}

// Rephrases the most common mistakes; other reasons keep the words of the program.
QString ChosenPlan::said_plainly(const QString& reason) const {
  const std::string wrong = result_file_.isEmpty() ? unknown_name(choices_) : "";
  if (wrong == "model")
    return tr("No model called \"%1\". Choose one from the list or open a file.").arg(QString::fromStdString(choices_.model));
  if (wrong == "cluster")
    return tr("No cluster called \"%1\". Choose one from the list or open a file.")
        .arg(QString::fromStdString(choices_.cluster));
  if (const QString large = without_force(reason); large != reason)
    return tr("%1. Choose a smaller global batch.").arg(engine_words(large));
  return reason;
}

void ChosenPlan::take_failure(const QString& message, bool wrong_input) {
  notices_.hide_progress();
  if (message.isEmpty()) return;  // cancelled by whoever knows what comes next
  refusal_ = said_plainly(message);
  docks_.strategy()->show_refusal(refusal_, {});
  notices_.tell(About::Simulation, refusal_);
  if (freshness_ != Freshness::Current)  // else the whole stages are shown: only the finer detail is missing
    set_freshness(wrong_input ? Freshness::Refused : Freshness::Stopped);
}

void ChosenPlan::take_estimate(const EstimateAnswer& answer) {
  // Of what was chosen a moment ago, or before a file was opened.
  if (answer.choices != choices_ || !docks_.strategy()->valid() || !result_file_.isEmpty()) return;
  if (answer.too_large) {
    docks_.strategy()->show_estimate(tr("Too many micro-batches to estimate while you type."), false);
    if (freshness_ != Freshness::Refused)
      docks_.strategy()->show_refusal({}, {});  // else the program was quicker, and said why
    return;
  }
  resolved_ = answer.resolved;
  show_resolved();
  if (!answer.estimate) {
    docks_.strategy()->show_estimate({}, false);
    const QString reason = QString::fromStdString(answer.refusal);
    docks_.strategy()->show_refusal(answer.wrong_input ? said_plainly(reason) : reason, {});
    return;
  }
  const Estimate& e = *answer.estimate;
  docks_.strategy()->show_estimate(
      tr("≈ %1 per step · %2 reserved · bound by %3")
          .arg(time_text(e.time.value), memory_text(e.peak), QCoreApplication::translate("bound by", name_of(e.bound_by))),
      !answer.refusal.empty());
  if (answer.refusal.empty()) docks_.strategy()->show_refusal({}, {});
}

void ChosenPlan::take_simulated(const Simulated& simulated) {
  notices_.hide_progress();
  notices_.went_well(About::Simulation);
  notices_.went_well(About::Origin);
  resolved_ = simulated.document ? simulated.resolved : std::map<std::string, std::string>{};  // refused: nobody knows
  show_resolved();
  const bool shortage = simulated.document && !simulated.document->summary.feasible;
  docks_.strategy()->show_refusal(shortage ? too_much_words(simulated.document->summary) : simulated.reason,
                                  simulated.would_help, shortage ? simulated.reason : QString());
  if (simulated.document) {
    take_plan(simulated);
  } else {
    refusal_ = simulated.reason;
    set_freshness(Freshness::Refused);
  }
  Q_EMIT answered();
}

void ChosenPlan::take_plan(const Simulated& simulated) {
  shown_.set_choices(simulated.choices);
  shown_.show(simulated.document);
  if (!result_file_.isEmpty()) adopt_origin(), say_of_file();  // a plan file
  Q_EMIT this->simulated();
  say_time(*simulated.document);
  if (simulated.granularity == granularity_) detail_took_ = asked_.elapsed();
  if (simulated.granularity == Granularity::Stage && granularity_ != Granularity::Stage) {
    asked_.start();
    simulation_.request(simulated.choices, granularity_);
  }
}

// The panel shows what the plan of a file was made from.
void ChosenPlan::adopt_origin() {
  notices_.went_well(About::Origin);
  const auto& document = shown_.document();
  if (!document || document->strategy_json.empty()) return;
  try {
    Choices made = {.model = document->model, .cluster = document->cluster_name, .settings = document->settings};
    made.strategy = chosen_in(parse_strategy(document->strategy_json, document->path));
    shown_.set_choices(made);
    begin_with(made);
    docks_.search()->set_choices(choices_);
    views_.policies()->set_choices(choices_);
    const Strategy strategy = parse_strategy(document->strategy_json, document->path);
    const std::int64_t as_it_is = parameter_count(model_of(choices_), strategy.vocab_multiple * widest_tp(strategy));
    if (as_it_is != document->workload.parameters)
      notices_.tell(
          About::Origin,
          tr("This file is of a %1 whose fields were changed (%2 parameters instead of %3). What was changed is not in the "
             "file: a changed knob simulates the %1 as it is.")
              .arg(QString::fromStdString(document->model), count_words(document->workload.parameters), count_words(as_it_is)));
  } catch (const Error& error) {
    notices_.log(QString::fromStdString(error.what()));
  }
}

void ChosenPlan::say_time(const Document& document) {
  notices_.show_status(tr("%1 on %2: %3 per step")
                           .arg(QString::fromStdString(document.model), QString::fromStdString(document.cluster_name),
                                time_text(document.summary.iteration_time.value)));
}

// What stood there was of the job before.
void ChosenPlan::say_of_file() {
  const auto& document = shown_.document();
  if (!document) return;
  resolved_.clear();
  try {
    if (!document->strategy_json.empty()) {
      const Strategy strategy = parse_strategy(document->strategy_json, document->path);
      for (const StrategyOption& option : strategy_options()) resolved_[option.path] = option.get(strategy);
    }
  } catch (const Error& error) {
    notices_.log(QString::fromStdString(error.what()));
  }
  show_resolved();
  docks_.strategy()->show_refusal(document->summary.feasible ? QString() : too_much_words(document->summary), {});
  docks_.strategy()->show_estimate(tr("%1 per step in the file").arg(time_text(document->summary.iteration_time.value)),
                                   !document->summary.feasible);
  say_time(*document);
}

void ChosenPlan::suggest_for(const Picked& picked) {
  const auto& document = shown_.document();
  if (!document || picked.kind == PickedKind::Nothing) {
    docks_.suggestions()->clear();
    return;
  }
  docks_.bring("inspector");
  const bool bubble =
      picked.kind == PickedKind::Bubble && picked.index >= 0 && picked.index < static_cast<int>(document->bubbles.size());
  if (!bubble || !result_file_.isEmpty() || !can_simulate_ || freshness_ != Freshness::Current) {
    docks_.suggestions()->clear();
    return;
  }
  Q_EMIT began();
  docks_.suggestions()->ask(document->bubbles[static_cast<std::size_t>(picked.index)].cause, shown_.choices(), resolved_,
                            document->summary.iteration_time.value);
}

}  // namespace foreshard
