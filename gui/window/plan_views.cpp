#include "gui/window/plan_views.h"

#include <QComboBox>
#include <QSplitter>
#include <QStackedWidget>
#include <QTabWidget>
#include <QVBoxLayout>
#include <algorithm>
#include <map>

#include "gui/compare/compare_view.h"
#include "gui/compare/policy_view.h"
#include "gui/document/workspace.h"
#include "gui/inspector/kpi_strip.h"
#include "gui/inspector/table_page.h"
#include "gui/memory/memory_view.h"
#include "gui/timeline/timeline_view.h"
#include "gui/topology/topology_view.h"
#include "gui/widgets/banner.h"

namespace foreshard {

static constexpr int kPoliciesMode = 3;  // in the list of layouts, after those of CompareMode

PlanViews::PlanViews(const QString& program) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  kpis_ = new KpiStrip;
  column->addWidget(kpis_);
  QWidget* const time_page = make_time_page();
  QWidget* const compare_page = make_compare_page(program);
  topology_ = new TopologyView(axis_, selection_);
  table_ = new TablePage(axis_, selection_);
  pages_ = new QTabWidget;
  pages_->setAccessibleName(tr("Views"));
  pages_->setDocumentMode(true);
  pages_->addTab(time_page, tr("Timeline and memory"));
  pages_->addTab(topology_, tr("Topology"));
  pages_->addTab(compare_page, tr("Compare"));
  pages_->addTab(table_, tr("Table"));
  column->addWidget(pages_, 1);
  banner_ = new Banner(this);
  veil_ = new FreshnessVeil(this);
  veil_->leave_bright(banner_);
  connect(veil_, &FreshnessVeil::acted, this, &PlanViews::acted);
}

QWidget* PlanViews::make_time_page() {
  timeline_ = new TimelineView(axis_, selection_);
  timeline_->set_overview(true);
  timeline_->leave_keys();
  memory_ = new MemoryView(axis_, selection_);
  auto* split = new QSplitter(Qt::Vertical);
  split->setObjectName("time_split");
  split->addWidget(timeline_);
  split->addWidget(memory_);
  split->setStretchFactor(0, 3);
  split->setStretchFactor(1, 2);
  split->setChildrenCollapsible(false);
  split->setHandleWidth(3);
  return split;
}

// Two plans in one of three layouts, or the runtime policies of one job.
QWidget* PlanViews::make_compare_page(const QString& program) {
  compare_ = new CompareView(compare_axis_, compare_selection_);
  policies_ = new PolicyView(program);
  auto* parts = new QStackedWidget;
  parts->addWidget(compare_);
  parts->addWidget(policies_);
  auto* page = new QWidget;
  auto* column = new QVBoxLayout(page);
  column->setContentsMargins(0, 0, 0, 0);
  compare_mode_ = new QComboBox;
  compare_mode_->setObjectName("compare_mode");
  compare_mode_->setAccessibleName(tr("Layout of the comparison"));
  compare_mode_->addItems({tr("Stacked"), tr("Interleaved"), tr("Table"), tr("Policies")});
  connect(compare_mode_, &QComboBox::currentIndexChanged, this, [this, parts](int at) {
    const bool two_plans = at < kPoliciesMode;
    parts->setCurrentIndex(two_plans ? 0 : 1);
    if (two_plans) compare_->set_mode(static_cast<CompareMode>(at));
  });
  connect(policies_, &PolicyView::compare_asked, this, [this] { compare_mode_->setCurrentIndex(0); });
  auto* row = new QHBoxLayout;
  row->setContentsMargins(10, 6, 10, 6);
  row->addWidget(compare_mode_);
  row->addStretch(1);
  column->addLayout(row);
  column->addWidget(parts, 1);
  return page;
}

void PlanViews::show_plan(const PlanDocuments& documents, std::optional<TimeRange> wanted, bool same_length) {
  const TimeRange before = axis_.visible();
  selection_.clear();
  timeline_->set_document(documents.shown);
  update_extents(documents);
  if (wanted)
    axis_.show(*wanted);
  else if (same_length)
    axis_.show(before);
  else
    axis_.fit();
  memory_->set_document(documents.shown);
  topology_->set_document(documents.shown);
  table_->set_document(documents.shown);
  kpis_->set_documents(documents.shown, documents.compared);
}

void PlanViews::show_comparison(const PlanDocuments& documents) {
  update_extents(documents);
  compare_axis_.fit();
  if (documents.measured)
    compare_->set_documents(documents.shown, documents.measured);
  else
    compare_->set_documents(documents.compared, documents.shown);
  kpis_->set_documents(documents.shown, documents.compared);
}

void PlanViews::update_extents(const PlanDocuments& documents) {
  Nanoseconds end{1};
  for (const auto& shown : {documents.shown, documents.measured})
    if (shown) end = std::max(end, shown->trace().makespan);
  axis_.set_extent({{0}, end});
  for (const auto& shown : {documents.compared, documents.shown})
    if (shown) end = std::max(end, shown->trace().makespan);
  compare_axis_.set_extent({{0}, end});
}

void PlanViews::set_flags(const std::vector<Bookmark>& bookmarks) {
  std::vector<RulerFlag> flags;
  for (const Bookmark& bookmark : bookmarks)
    flags.push_back({bookmark.range.begin, bookmark.digit > 0 ? QString::number(bookmark.digit) : QString(),
                     QString::fromStdString(bookmark.note)});
  timeline_->set_flags(std::move(flags));
}

void PlanViews::set_theme(const Theme& theme) {
  timeline_->set_theme(theme);
  memory_->set_theme(theme);
  compare_->set_theme(theme);
  policies_->set_theme(theme);
  topology_->set_theme(theme);
}

void PlanViews::set_freshness(Freshness freshness, const QString& text, const QString& action, bool dims) {
  veil_->set_dims(dims);
  veil_->set(freshness, text, action);
}

QWidget* PlanViews::bring(const QString& name) {
  const std::map<QString, std::pair<int, QWidget*>> pages = {{"timeline", {0, timeline_}},
                                                             {"memory", {0, memory_}},
                                                             {"topology", {1, topology_}},
                                                             {"compare", {2, pages_->widget(2)}},
                                                             {"table", {3, table_}}};
  if (name == "policies") {
    show_policies();
    return policies_;
  }
  const auto page = pages.find(name);
  if (page == pages.end()) return nullptr;
  pages_->setCurrentIndex(page->second.first);
  return page->second.second;
}

const char* PlanViews::page() const {
  static const char* const pages[] = {"timeline", "topology", "compare", "table"};
  return pages[std::clamp(pages_->currentIndex(), 0, 3)];
}

QWidget* PlanViews::page_in_front() const { return pages_->currentWidget(); }

void PlanViews::show_policies() {
  bring("compare");
  compare_mode_->setCurrentIndex(kPoliciesMode);
}

void PlanViews::show_table() {
  const TableKind kinds[] = {TableKind::Operations, TableKind::Links, TableKind::Operations, table_->kind()};
  QWidget* const focused = window()->focusWidget();
  const bool memory = memory_->isAncestorOf(focused) || memory_ == focused;
  const TableKind kind = memory ? TableKind::Stages : kinds[std::clamp(pages_->currentIndex(), 0, 3)];
  bring("table");
  table_->show_kind(kind);
  table_->setFocus(Qt::ShortcutFocusReason);
}

void PlanViews::go_to(const Picked& picked, const TimeRange& range) {
  const TimeRange seen = axis_.visible();
  const bool inside = range.begin >= seen.begin && range.end <= seen.end;
  const std::int64_t length = range.length().value;
  if (!inside || length * 200 < seen.length().value) {
    const std::int64_t wide = std::max<std::int64_t>(length * 12, seen.length().value / 8);
    const std::int64_t middle = (range.begin.value + range.end.value) / 2;
    axis_.show({{middle - wide / 2}, {middle + wide / 2}});
  }
  if (picked.kind != PickedKind::Nothing) selection_.pick(picked);
}

TimeRange PlanViews::here() const {
  const TimeRange seen = axis_.visible();
  const Nanoseconds middle{(seen.begin.value + seen.end.value) / 2};
  return axis_.selected().value_or(axis_.cursor() ? TimeRange{*axis_.cursor(), *axis_.cursor()} : TimeRange{middle, middle});
}

}  // namespace foreshard
