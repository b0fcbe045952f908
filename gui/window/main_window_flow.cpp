// From choices to pictures: what a change starts and what comes back.
#include <QCoreApplication>
#include <QDockWidget>
#include <QProgressBar>
#include <QStatusBar>
#include <QTabWidget>
#include <algorithm>

#include "core/base/error.h"
#include "core/json/json.h"
#include "gui/compare/compare_view.h"
#include "gui/document/words.h"
#include "gui/inspector/inspector_view.h"
#include "gui/inspector/kpi_strip.h"
#include "gui/inspector/table_page.h"
#include "gui/memory/memory_view.h"
#include "gui/run/run_panel.h"
#include "gui/search/search_panel.h"
#include "gui/strategy/choice_change.h"
#include "gui/strategy/strategy_panel.h"
#include "gui/strategy/suggestion_list.h"
#include "gui/timeline/timeline_view.h"
#include "gui/topology/topology_view.h"
#include "gui/widgets/engine_words.h"
#include "gui/window/main_window.h"
#include "report/summary/memory_rows.h"

namespace foreshard {

using namespace std::chrono_literals;

// The fields of the panel and the names that can be chosen come from the program itself.
void MainWindow::ask_program() {
  if (options_.program.isEmpty()) {
    tell(About::Program, tr("The program foreshard is neither beside this one nor on PATH: results can be opened, but nothing "
                            "can be simulated."));
    return;
  }
  for (const char* what : {"options", "models", "topologies"}) {
    auto* child = new Child(options_.program, this);
    ++loads_;
    connect(child, &Child::finished, this, [this, child, what = std::string(what)](const ChildOutcome& outcome) {
      child->deleteLater();
      --loads_;
      if (outcome.end != ChildEnd::Done) {
        tell(About::Program, tr("foreshard list %1: %2").arg(QString::fromStdString(what), outcome.message));
        return;
      }
      try {
        const std::string text = outcome.out.toStdString(), where = "foreshard list " + what;
        if (what == "options") {
          strategy_->set_options(parse_panel_options(text, where));
          strategy_->show_resolved(resolved_);
        } else {
          names_[what] = parse_names(text, where);
          strategy_->set_names(names_["models"], names_["topologies"]);
        }
      } catch (const Error& error) {
        tell(About::Program, QString::fromStdString(error.what()));
      }
    });
    child->start({"list", what, "--json"}, 30s);
  }
}

void MainWindow::choices_edited(const Choices& choices, const QString& knob) {
  const Choices before = choices_;
  if (choices == before) return;
  choices_ = choices;
  undo_.push(new ChoiceChange(before, choices, knob, [this](const Choices& to) {
    choices_ = to;
    strategy_->set_choices(to);
    simulate_soon();
  }));
  simulate_soon();
}

void MainWindow::set_choices(const Choices& choices, const QString& why) {
  if (choices == choices_ && result_file_.isEmpty()) return;
  const Choices before = choices_;
  choices_ = choices;
  strategy_->set_choices(choices);
  auto* change = new ChoiceChange(before, choices, {}, [this](const Choices& to) {
    choices_ = to;
    strategy_->set_choices(to);
    simulate_soon();
  });
  change->setText(why);
  undo_.push(change);
  simulate_soon();
}

void MainWindow::simulate_soon() {
  search_->set_choices(choices_);
  update_title();
  settle_timer_.start();
  simulation_.cancel();  // of the choices before: its answer would come late
  debounce_.stop();
  progress_->hide();
  if (!strategy_->valid()) {  // the reason stands under the field
    strategy_->show_estimate({}, false);
    strategy_->show_refusal({}, {});
    set_freshness(Freshness::Refused);
    return;
  }
  result_file_.clear();
  watch({});
  estimate_.ask(choices_);
  set_freshness(options_.program.isEmpty() ? Freshness::Stopped : Freshness::Computing);
  debounce_.start();
}

void MainWindow::set_freshness(Freshness freshness) {
  freshness_ = freshness;
  const QString old = document_ ? " " + tr("The picture is of the previous strategy.") : QString();
  QString text, action;
  switch (freshness) {
    case Freshness::Current: break;
    case Freshness::Computing: text = tr("Simulating …") + old, action = tr("Stop"); break;
    case Freshness::Stopped:
      text =
          (options_.program.isEmpty() ? tr("Without the program foreshard nothing can be simulated.") : tr("Stopped.")) + old;
      if (!options_.program.isEmpty()) action = tr("Simulate");
      break;
    case Freshness::Refused:
      text = choices_.model.empty()     ? tr("Choose a model.")
             : choices_.cluster.empty() ? tr("Choose a cluster to simulate %1 on.").arg(QString::fromStdString(choices_.model))
                                        : tr("This strategy cannot be simulated.") + old;
      if (undo_.canUndo()) action = tr("Undo");
      break;
  }
  veil_->set_dims(document_ != nullptr);
  veil_->set(freshness, text, action);
  inspector_veil_->set(freshness);
  run_->set_current(freshness == Freshness::Current);
  if (freshness != Freshness::Current) statusBar()->showMessage(text);
}

void MainWindow::act_on_freshness() {
  switch (freshness_) {
    case Freshness::Current: break;
    case Freshness::Computing: stop_all(); break;
    case Freshness::Stopped: simulate_now(); break;
    case Freshness::Refused: undo_.undo(); break;
  }
}

void MainWindow::stop_all() {
  search_->stop();
  run_->stop();
  suggestions_->clear();
  debounce_.stop();
  simulation_.cancel();
  compare_simulation_.cancel();
  progress_->hide();
  if (freshness_ == Freshness::Computing) set_freshness(Freshness::Stopped);
}

// The commonest mistakes of a person in the words of one; others as the engine says them.
QString MainWindow::said_plainly(const QString& reason) const {
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

void MainWindow::simulation_failed(const QString& message, bool wrong_input) {
  progress_->hide();
  if (message.isEmpty()) return;  // cancelled by whoever knows what comes next
  refusal_ = said_plainly(message);
  strategy_->show_refusal(refusal_, {});
  tell(About::Simulation, refusal_);
  if (freshness_ != Freshness::Current)  // else the whole stages are shown: only the finer detail is missing
    set_freshness(wrong_input ? Freshness::Refused : Freshness::Stopped);
}

// Where the wanted detail took this long the time before, whole stages are shown first.
static constexpr qint64 kStagesFirst = 500;  // ms

void MainWindow::simulate_now() {
  debounce_.stop();
  settle_timer_.start();
  if (options_.program.isEmpty() || !strategy_->valid()) return;
  set_freshness(Freshness::Computing);
  asked_.start();
  if (!result_file_.isEmpty() && document_) return simulation_.request_plan(document_->plan(), granularity_);
  simulation_.request(choices_, detail_took_ && *detail_took_ < kStagesFirst ? granularity_ : Granularity::Stage);
}

void MainWindow::take_estimate(const EstimateAnswer& answer) {
  if (answer.choices != choices_ || !strategy_->valid()) return;  // of what was chosen a moment ago
  if (answer.too_large) {
    strategy_->show_estimate(tr("Too many micro-batches to estimate while you type."), false);
    if (freshness_ != Freshness::Refused) strategy_->show_refusal({}, {});  // else the program was quicker, and said why
    return;
  }
  resolved_ = answer.resolved;
  strategy_->show_resolved(resolved_);
  if (!answer.estimate) {
    strategy_->show_estimate({}, false);
    const QString reason = QString::fromStdString(answer.refusal);
    strategy_->show_refusal(answer.wrong_input ? said_plainly(reason) : reason, {});
    return;
  }
  const Estimate& e = *answer.estimate;
  strategy_->show_estimate(
      tr("≈ %1 per step · %2 reserved · bound by %3")
          .arg(time_text(e.time.value), memory_text(e.peak), QCoreApplication::translate("bound by", name_of(e.bound_by))),
      !answer.refusal.empty());
  if (answer.refusal.empty()) strategy_->show_refusal({}, {});
}

void MainWindow::take_simulated(const Simulated& simulated) {
  progress_->hide();
  banner_->went_well(About::Simulation);
  banner_->went_well(About::Origin);
  resolved_ = simulated.document ? simulated.resolved : std::map<std::string, std::string>{};  // refused: nobody knows
  strategy_->show_resolved(resolved_);
  const bool shortage = simulated.document && !simulated.document->summary.feasible;
  strategy_->show_refusal(shortage ? too_much_words(simulated.document->summary) : simulated.reason, simulated.would_help,
                          shortage ? simulated.reason : QString());
  if (simulated.document) {
    shown_choices_ = simulated.choices;
    show_document(simulated.document);
    if (!result_file_.isEmpty()) adopt_origin();  // a plan file
    if (!wanted_measured_.isEmpty()) open_file(std::exchange(wanted_measured_, {}));
    statusBar()->showMessage(tr("%1 on %2: %3 per step")
                                 .arg(QString::fromStdString(simulated.document->model),
                                      QString::fromStdString(simulated.document->cluster_name),
                                      time_text(simulated.document->summary.iteration_time.value)));
    if (simulated.granularity == granularity_) detail_took_ = asked_.elapsed();
    if (simulated.granularity == Granularity::Stage && granularity_ != Granularity::Stage) {
      asked_.start();
      simulation_.request(simulated.choices, granularity_);
    }
  } else {
    refusal_ = simulated.reason;
    set_freshness(Freshness::Refused);
  }
  save_session();
}

void MainWindow::show_document(std::shared_ptr<const Document> document) {
  const bool same_length = document_ && document && document_->trace().makespan == document->trace().makespan;
  const TimeRange before = axis_.visible();
  document_ = std::move(document);
  selection_.clear();
  suggestions_->clear();
  timeline_->set_document(document_);
  update_extents();
  if (wanted_range_)
    axis_.show(*std::exchange(wanted_range_, {}));
  else if (same_length)
    axis_.show(before);
  else
    axis_.fit();
  memory_->set_document(document_);
  topology_->set_document(document_);
  inspector_->set_document(document_);
  table_->set_document(document_);
  run_->set_document(document_);
  kpis_->set_documents(document_, compared_);
  if (measured_ && (!document_ || measured_->trace().plan_hash != document_->trace().plan_hash)) measured_ = {};
  lay_measured();
  set_freshness(Freshness::Current);
  if (document_)
    for (const std::string& remark : document_->remarks) log(QString::fromStdString(remark));
  Q_EMIT document_shown();
}

void MainWindow::show_measured(std::shared_ptr<const Document> measured) {
  measured_ = std::move(measured);
  lay_measured();
  if (measured_) view("compare");
}

void MainWindow::lay_measured() {
  try {
    timeline_->set_measured(measured_);
    inspector_->set_twin(timeline_->twin());
  } catch (const Error& error) {
    measured_ = {};
    tell(About::File, QString::fromStdString(error.what()));
  }
  if (!measured_) measured_file_.clear();
  update_compare();
}

// The table that holds what the page before it shows.
void MainWindow::show_table() {
  const TableKind kinds[] = {TableKind::Operations, TableKind::Links, TableKind::Operations, table_->kind()};
  const bool memory = memory_->isAncestorOf(focusWidget()) || memory_ == focusWidget();
  const TableKind kind = memory ? TableKind::Stages : kinds[std::clamp(pages_->currentIndex(), 0, 3)];
  view("table");
  table_->show_kind(kind);
  table_->setFocus(Qt::ShortcutFocusReason);
}

void MainWindow::update_extents() {
  Nanoseconds end{1};
  for (const auto& shown : {document_, measured_})
    if (shown) end = std::max(end, shown->trace().makespan);
  axis_.set_extent({{0}, end});
  for (const auto& shown : {compared_, document_})
    if (shown) end = std::max(end, shown->trace().makespan);
  compare_axis_.set_extent({{0}, end});
}

// A measured twin goes before another plan: it is the nearer comparison.
void MainWindow::update_compare() {
  update_extents();
  compare_axis_.fit();
  if (measured_)
    compare_->set_documents(document_, measured_);
  else
    compare_->set_documents(compared_, document_);
  kpis_->set_documents(document_, compared_);
}

void MainWindow::compare_with(const Choices& choices) {
  compared_choices_ = choices;
  settle_timer_.start();
  compare_simulation_.request(choices, Granularity::Stage);
}

void MainWindow::take_compared(const Simulated& simulated) {
  if (!simulated.document) {
    tell(About::Comparison, simulated.reason);
    return;
  }
  banner_->went_well(About::Comparison);
  compared_ = simulated.document;
  show_measured({});
  view("compare");
}

void MainWindow::picked_changed() {
  const Picked picked = selection_.picked();
  if (!document_ || picked.kind == PickedKind::Nothing) {
    suggestions_->clear();
    return;
  }
  open_dock(docks_["inspector"]);
  const bool bubble =
      picked.kind == PickedKind::Bubble && picked.index >= 0 && picked.index < static_cast<int>(document_->bubbles.size());
  if (!bubble || !result_file_.isEmpty() || options_.program.isEmpty() || freshness_ != Freshness::Current) {
    suggestions_->clear();
    return;
  }
  settle_timer_.start();
  suggestions_->ask(document_->bubbles[static_cast<std::size_t>(picked.index)].cause, shown_choices_, resolved_,
                    document_->summary.iteration_time.value);
}

void MainWindow::run_example() {
  set_choices({.model = "gpt2-124m",
               .cluster = "dgx-a100",
               .nodes = 1,
               .strategy = {{"pp", "2"}, {"dp", "1"}, {"tp", "1"}, {"global_batch", "4"}, {"seq", "64"}, {"precision", "fp32"}},
               .settings = {"model.n_layer=4", "model.n_embd=128", "model.n_head=4", "model.vocab_size=512"}},
              tr("Load a small plan"));
}

}  // namespace foreshard
