#include "gui/window/shown_plan.h"

#include <utility>

#include "core/base/error.h"
#include "gui/document/search_rows.h"
#include "gui/strategy/suggestion_list.h"
#include "gui/timeline/timeline_view.h"
#include "gui/window/dock_panels.h"
#include "gui/window/notices.h"

namespace foreshard {

ShownPlan::ShownPlan(PlanViews& views, DockPanels& docks, Notices& notices, const QString& program)
    : views_(views), docks_(docks), notices_(notices), simulation_(program) {
  connect(&simulation_, &Simulation::done, this, &ShownPlan::take_compared);
  connect(&simulation_, &Simulation::failed, this,
          [this](const QString& message) { notices_.tell(About::Comparison, message); });
}

void ShownPlan::show(std::shared_ptr<const Document> document) {
  const auto before = std::exchange(documents_.shown, std::move(document));
  const auto& now = documents_.shown;
  const bool same_length = before && now && before->trace().makespan == now->trace().makespan;
  docks_.suggestions()->clear();
  views_.show_plan(documents_, std::exchange(wanted_range_, {}), same_length);
  docks_.set_document(now);
  if (documents_.measured && (!now || documents_.measured->trace().plan_hash != now->trace().plan_hash))
    documents_.measured = {};
  lay_measured();
  if (now)
    for (const std::string& remark : now->remarks) notices_.log(QString::fromStdString(remark));
  Q_EMIT shown();
}

void ShownPlan::show_measured(std::shared_ptr<const Document> measured, const QString& file) {
  if (!file.isEmpty()) measured_file_ = file;
  documents_.measured = std::move(measured);
  lay_measured();
  if (documents_.measured) views_.bring("compare");
}

void ShownPlan::lay_measured() {
  try {
    views_.timeline()->set_measured(documents_.measured);
    docks_.set_twin(views_.timeline()->twin());
  } catch (const Error& error) {
    documents_.measured = {};
    notices_.tell(About::File, QString::fromStdString(error.what()));
  }
  if (!documents_.measured) measured_file_.clear();
  views_.show_comparison(documents_);
}

void ShownPlan::compare_with(const Choices& choices) {
  compared_choices_ = choices;
  Q_EMIT began();
  simulation_.request(choices, Granularity::Stage);
}

void ShownPlan::take_compared(const Simulated& simulated) {
  if (!simulated.document) {
    notices_.tell(About::Comparison, simulated.reason);
    return;
  }
  notices_.went_well(About::Comparison);
  documents_.compared = simulated.document;
  show_measured({});
  views_.bring("compare");
}

void ShownPlan::use_as_baseline() {
  if (!documents_.shown) return;
  documents_.compared = documents_.shown;
  compared_choices_ = choices_;
  views_.show_comparison(documents_);
  notices_.log(
      tr("Baseline (A): %1, %2.")
          .arg(QString::fromStdString(documents_.shown->model), time_text(documents_.shown->summary.iteration_time.value)));
}

void ShownPlan::clear_baseline() {
  documents_.compared = {};
  compared_choices_ = {};
  show_measured({});
}

}  // namespace foreshard
