// TimelineView: lanes of every group of ranks over time, with their bubbles, the binding chain of what is picked and, with a
// measured twin, both.
//
//   | whole run, the visible stretch framed (overview)        |
//   | time marks                                              |
//   | header | rows: compute, communication, copies   | busy  |
//   | legend                                                  |
#pragma once

#include <QWidget>
#include <memory>

#include "gui/timeline/timeline_frame.h"
#include "gui/timeline/timeline_legend.h"
#include "gui/timeline/timeline_paint.h"
#include "gui/timeline/timeline_scene.h"

class QScrollBar;

namespace foreshard {

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
  Hidden hidden() const { return scene_.paints.hidden; }
  QRectF legend_box(std::size_t entry) const;  // of legend_entries(), in the widget; empty: it is not seen
  QRectF more_box() const;                     // of "+N"; empty: all are seen
  // Keys that menus have for the same things are left to the menus, where they can be changed.
  void leave_keys() { own_keys_ = false; }

  const RowState& rows_state() const { return scene_.state; }
  void set_rows_state(RowState state);
  void set_grouping(Grouping grouping);
  void set_arrows(Arrows arrows);
  Arrows arrows() const { return arrows_; }
  const std::vector<Row>& rows() const { return scene_.rows; }
  std::shared_ptr<const Twin> twin() const { return scene_.twin; }

  // What lies under a point of the widget. Below a microsecond.
  Picked hit(QPoint at) const { return scene_.hit(at); }
  // In the widget, as far as it is visible; empty: nowhere.
  QRectF place_of(Picked picked) const { return scene_.place_of(picked); }
  QString critical_words() const { return foreshard::critical_words(scene_.document.get()); }
  // The open group whose rows come first while its own is scrolled away; null: none.
  const Row* group_above() const { return scene_.group_above(); }
  void wait_for_levels();  // for pictures: until the levels of detail are there

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

  void lay_out();
  void redraw();  // all but marks and words
  void clamp_scroll();
  void scroll_by(int pixels);
  void pick_and_show(std::optional<Picked> picked);
  int row_to_change() const;
  QString words_at(QPoint at) const;
  void describe();
  QPointF legend_point(QPointF at) const;
  bool press_legend(QMouseEvent* event);

  TimeAxis& axis_;
  Selection& selection_;
  TimelineScene scene_;
  TimelineFrame frame_;
  TimelineLegend legend_;
  QScrollBar* scroll_bar_ = nullptr;
  bool notes_fit_ = true, own_keys_ = true;
  std::vector<RulerFlag> flags_ = {};
  Arrows arrows_ = Arrows::Chain;
  std::vector<Picked> trail_ = {};  // where follow_return goes
  Drag drag_ = Drag::None;
  QPoint pressed_ = {}, mouse_ = {-1, -1};
  TimeRange pressed_range_ = {};
  int pressed_scroll_ = 0;
};

}  // namespace foreshard
