// What the timeline shows and where it lies in the widget: the rows of a result's ranks over a stretch of time. A value that answers which operation lies
// under a point and where something lies; it paints nothing.
#pragma once

#include <QPointF>
#include <QRect>
#include <memory>
#include <vector>

#include "gui/document/binding_arrows.h"
#include "gui/document/document.h"
#include "gui/document/rows.h"
#include "gui/document/selection.h"
#include "gui/document/time_axis.h"
#include "gui/document/timeline_labels.h"
#include "gui/document/lane_raster.h"
#include "gui/widgets/theme.h"

namespace foreshard {

// Left and right margins that every view on the time axis keeps, so that cursors line up.
inline constexpr int kHeaderWidth = 144, kGutterWidth = 84;
inline constexpr int kOverview = 24;   // pixels, when it is shown
inline constexpr int kRuler = 26;      // pixels, above the rows
inline constexpr int kScrollBar = 12;  // pixels, when there are more rows than room

struct TimelineScene {
  const TimeAxis& axis;
  std::shared_ptr<const Document> document = {};  // shared with the other views and their workers; null: empty
  std::shared_ptr<const Twin> twin = {};          // shared with the worker that draws reports
  Theme theme = {};
  Paints paints = {};
  RowState state = {};
  std::vector<RankGroup> groups = {};
  std::vector<Row> rows = {};
  int scroll = 0;    // pixels
  QSize size = {};   // of the widget
  int overview = 0;  // pixels of the strip above the ruler
  QRect lanes = {};  // where the rows stand

  void set_rows_state(RowState next);
  // For a widget of this size, of which a legend of so many pixels is at the bottom.
  void lay_out(QSize widget, int legend);
  int all_rows() const { return rows.empty() ? 0 : rows.back().top + rows.back().height; }  // pixels

  double x_of(Nanoseconds when) const;
  Nanoseconds time_at(double x) const;
  int row_under(QPoint at) const;
  int row_of(ClassId who) const;  // a row of one of its ranks when its group is open, else the group's
  int row_of_picked(Picked picked) const;
  Picked hit(QPoint at) const;
  QRectF place_of(Picked picked) const;
  QPointF anchor_of(std::int32_t span, bool at_end) const;  // where an arrow begins or ends; above the widget: nowhere
  const Row* group_above() const;
};

// What stands under the mouse, in one line; empty: nothing.
QString facts_line(const Document* document, Picked picked);

}  // namespace foreshard
