// PlanViews: the middle of the window, one plan in several views behind tabs: timeline and memory, topology, comparison, table. They
// have one time axis and one selection; only the comparison has its own.
#pragma once

#include <QWidget>
#include <memory>
#include <optional>

#include "gui/document/document.h"
#include "gui/document/freshness.h"
#include "gui/document/selection.h"
#include "gui/document/time_axis.h"
#include "gui/widgets/theme.h"

class QTabWidget;

namespace foreshard {

class Banner;
class CompareView;
class KpiStrip;
class MemoryView;
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
  PlanViews();

  TimeAxis& axis() { return axis_; }
  Selection& selection() { return selection_; }
  TimelineView* timeline() const { return timeline_; }
  MemoryView* memory() const { return memory_; }
  CompareView* compare() const { return compare_; }
  TablePage* table() const { return table_; }
  Banner* banner() const { return banner_; }

  // Of `documents.shown`, which was not shown before. `wanted`: what is to be visible; else the old stretch where the length is
  // the same as before, else all.
  void show_plan(const PlanDocuments& documents, std::optional<TimeRange> wanted, bool same_length);
  void show_comparison(const PlanDocuments& documents);  // a measured twin goes before another plan: it is the nearer one
  void set_flags(const std::vector<Bookmark>& bookmarks);
  void set_theme(const Theme& theme);
  void set_freshness(Freshness freshness, const QString& text, const QString& action, bool dims);

  QWidget* bring(const QString& name);  // "timeline", "memory", "topology", "compare", "table" to the front; null: no such view
  const char* page() const;             // which is in front, by its name
  QWidget* page_in_front() const;
  void show_table();                                         // that holds what the page before it shows
  void go_to(const Picked& picked, const TimeRange& range);  // with some room on both sides, unless it is visible already
  TimeRange here() const;                                    // what is selected, else the cursor, else the middle

 Q_SIGNALS:
  void acted();  // on what the veil offers

 private:
  QWidget* make_time_page();
  QWidget* make_compare_page();
  void update_extents(const PlanDocuments& documents);

  TimeAxis axis_, compare_axis_;
  Selection selection_, compare_selection_;
  KpiStrip* kpis_ = nullptr;
  QTabWidget* pages_ = nullptr;
  TimelineView* timeline_ = nullptr;
  MemoryView* memory_ = nullptr;
  TopologyView* topology_ = nullptr;
  CompareView* compare_ = nullptr;
  TablePage* table_ = nullptr;
  Banner* banner_ = nullptr;
  FreshnessVeil* veil_ = nullptr;
};

}  // namespace foreshard
