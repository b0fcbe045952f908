// TimelineView: the lanes of all groups of ranks over time, with bubbles and the binding chain of the picked object. With a measured twin
// it shows prediction and measurement.
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
  void set_measured(std::shared_ptr<const Document> measured);  // shown below each row; null: none. Throws Error
  void set_twin(std::shared_ptr<const Twin> twin);              // the same for a measurement that is already matched
  void set_legend(bool shown);
  void set_short_legend(bool one_line);  // one line, with "+N" for the rest until "+N" is clicked
  void set_overview(bool shown);
  void set_hidden(Hidden hidden);  // hidden kinds are drawn grey
  void set_flags(std::vector<RulerFlag> flags);
  Hidden hidden() const { return scene_.paints.hidden; }
  QRectF legend_box(std::size_t entry) const;  // `entry`: index in legend_entries(). In the widget; empty: it does not fit
  QRectF more_box() const;                     // the place of "+N"; empty: all entries fit
  // Ignore keys for which the menus have actions, so that the user can rebind them there.
  void leave_keys() { own_keys_ = false; }

  const RowState& rows_state() const { return scene_.state; }
  void set_rows_state(RowState state);
  void set_grouping(Grouping grouping);
  void set_arrows(Arrows arrows);
  Arrows arrows() const { return arrows_; }
  const std::vector<Row>& rows() const { return scene_.rows; }
  std::shared_ptr<const Twin> twin() const { return scene_.twin; }

  // The object under a point of the widget. Takes less than a microsecond.
  Picked hit(QPoint at) const { return scene_.hit(at); }
  // The visible part of the object, in the widget; empty: it is not visible.
  QRectF place_of(Picked picked) const { return scene_.place_of(picked); }
  QString critical_words() const { return foreshard::critical_words(scene_.document.get()); }
  // The open group whose own row is scrolled out of view while its ranks' rows are at the top; null: none.
  const Row* group_above() const { return scene_.group_above(); }
  void wait_for_levels();  // blocks until the levels of detail are ready; for screenshots

  // What menus and keys call.
  void zoom_in(), zoom_out(), pan_left(), pan_right(), scroll_up(), scroll_down();
  void fit(), zoom_to_selected(), focus_picked();  // a second focus_picked shows all
  void next_op(), previous_op();                   // in the lane of the picked object
  void next_bubble(), previous_bubble(), worst_bubble();
  void follow_back(), follow_return();  // along the binding chain, and back
  void toggle_open(), toggle_pin();     // of the row under the mouse, else of the picked object
  void measure();                       // reports the length of the selected range; none: selects the picked range

 Q_SIGNALS:
  void hovered(const QString& words);  // one line for the status bar; empty: nothing is under the mouse
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
  void redraw();  // the image, not the marks and texts over it
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
  std::vector<Picked> trail_ = {};  // objects that follow_return goes back to
  Drag drag_ = Drag::None;
  QPoint pressed_ = {}, mouse_ = {-1, -1};
  TimeRange pressed_range_ = {};
  int pressed_scroll_ = 0;
};

}  // namespace foreshard
