// From choices to pictures: what a change starts and what comes back.
#include <QCoreApplication>
#include <QDockWidget>
#include <QProgressBar>
#include <QStatusBar>
#include <QTabWidget>
#include <algorithm>

#include "core/error.h"
#include "core/json.h"
#include "gui/choice_change.h"
#include "gui/compare_view.h"
#include "gui/inspector_view.h"
#include "gui/kpi_strip.h"
#include "gui/main_window.h"
#include "gui/memory_view.h"
#include "gui/run_panel.h"
#include "gui/search_panel.h"
#include "gui/strategy_panel.h"
#include "gui/suggestion_list.h"
#include "gui/table_page.h"
#include "gui/timeline_view.h"
#include "gui/topology_view.h"

namespace foreshard {

using namespace std::chrono_literals;

// The fields of the panel and the names that can be chosen come from the program itself.
void MainWindow::ask_program() {
  if (options_.program.isEmpty()) {
    tell(tr("The program foreshard was found neither beside this one nor on PATH: results can be looked at, not made."));
    return;
  }
  for (const char* what : {"options", "models", "topologies"}) {
    auto* child = new Child(options_.program, this);
    ++loads_;
    connect(child, &Child::finished, this, [this, child, what = std::string(what)](const ChildOutcome& outcome) {
      child->deleteLater();
      --loads_;
      if (outcome.end != ChildEnd::Done) {
        tell(tr("foreshard list %1: %2").arg(QString::fromStdString(what), outcome.message));
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
        tell(QString::fromStdString(error.what()));
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
  settle_timer_.start();
  if (!strategy_->valid()) return;  // the reason stands under the field
  result_file_.clear();
  watch({});
  estimate_.ask(choices_);
  debounce_.start();
}

// Where the wanted detail took this long the time before, whole stages are shown first.
static constexpr qint64 kStagesFirst = 500;  // ms

void MainWindow::simulate_now() {
  debounce_.stop();
  settle_timer_.start();
  if (options_.program.isEmpty()) return;
  asked_.start();
  simulation_.request(choices_, detail_took_ && *detail_took_ < kStagesFirst ? granularity_ : Granularity::Stage);
}

void MainWindow::take_estimate(const EstimateAnswer& answer) {
  resolved_ = answer.resolved;
  strategy_->show_resolved(resolved_);
  if (!answer.estimate) {
    strategy_->show_estimate({}, false);
    strategy_->show_refusal(QString::fromStdString(answer.refusal), {});
    return;
  }
  const Estimate& e = *answer.estimate;
  strategy_->show_estimate(
      tr("≈ %1 per step · %2 · bound by %3")
          .arg(time_text(e.time.value), memory_text(e.peak), QCoreApplication::translate("bound by", name_of(e.bound_by))),
      !answer.refusal.empty());
  if (answer.refusal.empty()) strategy_->show_refusal({}, {});
}

void MainWindow::take_simulated(const Simulated& simulated) {
  progress_->hide();
  resolved_ = simulated.resolved;
  strategy_->show_resolved(resolved_);
  strategy_->show_refusal(simulated.reason, simulated.would_help);
  if (simulated.document) {
    show_document(simulated.document);
    if (!result_file_.isEmpty()) adopt_origin();  // a plan file
    statusBar()->showMessage(tr("%1 on %2: %3 per step")
                                 .arg(QString::fromStdString(simulated.document->model),
                                      QString::fromStdString(simulated.document->cluster_name),
                                      time_text(simulated.document->summary.iteration_time.value)));
    if (simulated.granularity == granularity_) detail_took_ = asked_.elapsed();
    if (simulated.granularity == Granularity::Stage && granularity_ != Granularity::Stage) {
      asked_.start();
      simulation_.request(simulated.choices, granularity_);
    }
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
  if (document_ && measured_ && measured_->trace().plan_hash != document_->trace().plan_hash) show_measured({});
  update_compare();
  if (document_)
    for (const std::string& remark : document_->remarks) log(QString::fromStdString(remark));
  Q_EMIT document_shown();
}

void MainWindow::show_measured(std::shared_ptr<const Document> measured) {
  measured_ = std::move(measured);
  if (!measured_) measured_file_.clear();
  try {
    timeline_->set_measured(measured_);
    inspector_->set_twin(timeline_->twin());
  } catch (const Error& error) {
    measured_ = {};
    tell(QString::fromStdString(error.what()));
  }
  update_extents();
  update_compare();
  if (measured_) view("compare");
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
    tell(simulated.reason);
    return;
  }
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
  docks_["inspector"]->show();
  docks_["inspector"]->raise();
  const bool bubble =
      picked.kind == PickedKind::Bubble && picked.index >= 0 && picked.index < static_cast<int>(document_->bubbles.size());
  if (!bubble || !result_file_.isEmpty() || options_.program.isEmpty()) {
    suggestions_->clear();
    return;
  }
  settle_timer_.start();
  suggestions_->ask(document_->bubbles[static_cast<std::size_t>(picked.index)].cause, choices_, resolved_,
                    document_->summary.iteration_time.value);
}

void MainWindow::run_example() {
  set_choices({.model = "gpt2-124m",
               .cluster = "dgx-a100",
               .nodes = 1,
               .strategy = {{"pp", "2"}, {"dp", "1"}, {"tp", "1"}, {"global_batch", "4"}, {"seq", "64"}, {"precision", "fp32"}},
               .settings = {"model.n_layer=4", "model.n_embd=128", "model.n_head=4", "model.vocab_size=512"}},
              tr("A plan that runs here"));
}

}  // namespace foreshard
