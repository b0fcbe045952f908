// PlanViews: the middle of the window: one plan in several views behind tabs (timeline with memory, topology, comparison, table). The views
// share one time axis and one selection; only the comparison has its own.
#pragma once

#include <QWidget>
#include <memory>
#include <optional>

#include "gui/document/document.h"
#include "gui/document/freshness.h"
#include "gui/document/selection.h"
#include "gui/document/time_axis.h"
#include "gui/widgets/theme.h"

class QComboBox;
class QTabWidget;

namespace foreshard {

class Banner;
class CompareView;
class KpiStrip;
class MemoryView;
class PolicyView;
class TablePage;
class TimelineView;
class TopologyView;
struct Bookmark;

struct PlanDocuments {
  std::shared_ptr<const Document> shown = {}, compared = {}, measured = {};  // shared by the views and their workers
};

class PlanViews : public QWidget {
  Q_OBJECT
 public:
  explicit PlanViews(const QString& program);

  TimeAxis& axis() { return axis_; }
  Selection& selection() { return selection_; }
  TimelineView* timeline() const { return timeline_; }
  MemoryView* memory() const { return memory_; }
  CompareView* compare() const { return compare_; }
  PolicyView* policies() const { return policies_; }
  TablePage* table() const { return table_; }
  Banner* banner() const { return banner_; }

  // Shows the new plan `documents.shown`. `wanted`: the range of time to show; none: the range that was visible if the run is as long as
  // before (`same_length`), else all.
  void show_plan(const PlanDocuments& documents, std::optional<TimeRange> wanted, bool same_length);
  void show_comparison(const PlanDocuments& documents);    // with the measured twin if there is one, else with `compared`
  void set_flags(const std::vector<Bookmark>& bookmarks);  // marks on the ruler
  void set_theme(const Theme& theme);
  void set_freshness(Freshness freshness, const QString& text, const QString& action, bool dims);

  // Brings "timeline", "memory", "topology", "compare", "policies" (of the comparison) or "table" to the front; null: no such view.
  QWidget* bring(const QString& name);
  const char* page() const;  // name of the view in front, as for bring
  QWidget* page_in_front() const;
  void show_policies();  // brings the comparison to the front, with the runtime policies
  void show_table();     // brings the table to the front, with the rows that belong to the view that was in front
  void go_to(const Picked& picked, const TimeRange& range);  // picks it; shows its range with margins unless visible
  TimeRange here() const;  // the selected range, else the cursor, else the middle of the visible range

 Q_SIGNALS:
  void acted();  // the user clicked the action of the veil

 private:
  QWidget* make_time_page();
  QWidget* make_compare_page(const QString& program);
  void update_extents(const PlanDocuments& documents);

  TimeAxis axis_, compare_axis_;
  Selection selection_, compare_selection_;
  KpiStrip* kpis_ = nullptr;
  QTabWidget* pages_ = nullptr;
  TimelineView* timeline_ = nullptr;
  MemoryView* memory_ = nullptr;
  TopologyView* topology_ = nullptr;
  CompareView* compare_ = nullptr;
  PolicyView* policies_ = nullptr;
  QComboBox* compare_mode_ = nullptr;
  TablePage* table_ = nullptr;
  Banner* banner_ = nullptr;
  FreshnessVeil* veil_ = nullptr;
};

}  // namespace foreshard
