// TimelineView: lanes of every group of ranks over time, with their bubbles, the binding chain of what is picked and, with a
// measured twin, both.
//
//   | whole run, the visible stretch framed (overview)        |
//   | time marks                                              |
//   | header | rows: compute, communication, copies   | busy  |
//   | legend                                                  |
#pragma once

#include <QFutureWatcher>
#include <QWidget>
#include <memory>

#include "gui/document/binding_arrows.h"
#include "gui/document/document.h"
#include "gui/document/rows.h"
#include "gui/document/selection.h"
#include "gui/document/time_axis.h"
#include "gui/document/timeline_labels.h"
#include "gui/timeline/timeline_legend.h"
#include "gui/widgets/theme.h"

class QScrollBar;

namespace foreshard {

// Left and right margins that every view on the time axis keeps, so that cursors line up.
inline constexpr int kHeaderWidth = 144, kGutterWidth = 84;
inline constexpr int kOverview = 24;   // pixels, when it is shown
inline constexpr int kRuler = 26;      // pixels, above the rows
inline constexpr int kScrollBar = 12;  // pixels, when there are more rows than room

struct RulerFlag {  // a bookmark
  Nanoseconds when = {};
  QString key = {}, note = {};  // "3", or empty; for the tooltip
};

// [bin] of the whole time: share of all ranks that compute, 0..1.
std::vector<float> busy_by_bin(const Document& document, const Paints& paints, std::size_t bins);

class TimelineView : public QWidget {
  Q_OBJECT

 public:
  TimelineView(TimeAxis& axis, Selection& selection, QWidget* parent = nullptr);  // both must outlive it
  ~TimelineView() override;

  void set_document(std::shared_ptr<const Document> document);  // null: empty; sets the extent of the axis
  void set_theme(const Theme& theme);
  void set_measured(std::shared_ptr<const Document> measured);  // its measured twin, below each row; null: none. Throws Error
  void set_twin(std::shared_ptr<const Twin> twin);              // the same, matched already
  void set_legend(bool shown);
  void set_short_legend(bool one_line);  // with "+N" for the rest, until that is clicked
  void set_overview(bool shown);
  void set_hidden(Hidden hidden);  // grey instead of coloured
  void set_flags(std::vector<RulerFlag> flags);
  Hidden hidden() const { return paints_.hidden; }
  QRectF legend_box(std::size_t entry) const;  // of legend_entries(), in the widget; empty: it is not seen
  QRectF more_box() const;                     // of "+N"; empty: all are seen
  // Keys that menus have for the same things are left to the menus, where they can be changed.
  void leave_keys() { own_keys_ = false; }

  const RowState& rows_state() const { return state_; }
  void set_rows_state(RowState state);
  void set_grouping(Grouping grouping);
  void set_arrows(Arrows arrows);
  Arrows arrows() const { return arrows_; }
  const std::vector<Row>& rows() const { return rows_; }
  std::shared_ptr<const Twin> twin() const { return twin_; }

  // What lies under a point of the widget. Below a microsecond.
  Picked hit(QPoint at) const;
  QRectF place_of(Picked picked) const;  // in the widget, as far as it is visible; empty: nowhere
  QString critical_words() const;        // "critical path: 61.0 % compute, ..."
  const Row* group_above() const;        // the open group whose rows come first while its own is scrolled away; null: none
  void wait_for_levels();                // for pictures: until the levels of detail are there

  // What menus and keys call.
  void zoom_in(), zoom_out(), pan_left(), pan_right(), scroll_up(), scroll_down();
  void fit(), zoom_to_selected(), focus_picked();  // focus_picked again: fit
  void next_op(), previous_op();                   // of the lane of what is picked
  void next_bubble(), previous_bubble(), worst_bubble();
  void follow_back(), follow_return();  // along the binding chain
  void toggle_open(), toggle_pin();     // the row under the mouse, or of what is picked
  void measure();                       // reads the selected range out; without one selects that of what is picked

 Q_SIGNALS:
  void hovered(const QString& words);  // one line for a status bar; empty: nothing there
  void hidden_changed();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void leaveEvent(QEvent* event) override;
  bool event(QEvent* event) override;

 private:
  enum class Drag : std::uint8_t { None, Press, Select, Pan, Overview };
  struct Levels {
    std::vector<LaneLevels> lanes = {};
    std::vector<float> busy = {};  // busy_by_bin
  };

  QRect lanes_rect() const;
  FrameView frame_view() const;
  double x_of(Nanoseconds when) const;
  Nanoseconds time_at(double x) const;
  void lay_out();
  void rebuild_levels();
  void clamp_scroll();
  void step(int by);
  void step_bubble(int by);
  void show_picked(Picked picked);
  int row_of(ClassId who) const;
  int row_under(QPoint at) const;
  QString words_at(QPoint at) const;
  QString facts_line(Picked picked) const;
  void describe();
  int overview_height() const;
  double overview_x(Nanoseconds when) const;
  void show_around(double overview_x);
  bool press_legend(QMouseEvent* event);
  void lay_legend_out();
  void lay_headers_out();

  void refresh_frame();
  void paint_labels(QPainter& painter) const;
  void paint_ruler(QPainter& painter) const;
  void paint_flags(QPainter& painter) const;
  void paint_name(QPainter& painter, const Row& row, QRectF box, bool beside) const;
  void paint_headers(QPainter& painter) const;
  void paint_group_above(QPainter& painter) const;
  void paint_gutter(QPainter& painter) const;
  void paint_legend(QPainter& painter) const;
  void paint_overview(QPainter& painter) const;
  void paint_arrows(QPainter& painter) const;
  void paint_critical(QPainter& painter) const;
  void paint_picked(QPainter& painter) const;
  void paint_range_and_cursor(QPainter& painter) const;
  QPointF anchor_of(std::int32_t span, bool at_end) const;
  QRectF flag_box(const RulerFlag& flag) const;  // empty: not visible

  TimeAxis& axis_;
  Selection& selection_;
  std::shared_ptr<const Document> document_ = {};  // shared with the other views and their workers
  std::shared_ptr<const Twin> twin_ = {};          // shared with the worker that draws reports
  Theme theme_ = {};
  Paints paints_ = {};
  std::shared_ptr<const Levels> levels_ = {};  // shared with the worker that makes them; null: still being made
  QFutureWatcher<std::shared_ptr<const Levels>> making_;
  RowState state_ = {};
  std::vector<RankGroup> groups_ = {};
  std::vector<Row> rows_ = {};
  int scroll_ = 0;
  QScrollBar* scroll_bar_ = nullptr;
  bool notes_fit_ = true;  // beside the names of all rows
  std::vector<RulerFlag> flags_ = {};
  bool legend_ = true, overview_ = false, own_keys_ = true;
  std::vector<LegendEntry> entries_ = legend_entries();
  bool short_legend_ = false, legend_open_ = false;
  std::vector<QRectF> legend_boxes_ = {};  // [entry], from the top left of the legend
  Arrows arrows_ = Arrows::Chain;
  std::vector<Picked> trail_ = {};  // where follow_return goes
  QImage frame_ = {};
  FrameView frame_of_ = {};
  bool stale_ = true;
  Drag drag_ = Drag::None;
  QPoint pressed_ = {}, mouse_ = {-1, -1};
  TimeRange pressed_range_ = {};
  int pressed_scroll_ = 0;
};

}  // namespace foreshard
