// TimelineScene: what the timeline shows and where it lies in the widget: rows of ranks over a range of time. It tells which object lies
// under a point and where an object lies. It paints nothing.
#pragma once

#include <QPointF>
#include <QRect>
#include <memory>
#include <vector>

#include "gui/document/binding_arrows.h"
#include "gui/document/document.h"
#include "gui/document/lane_raster.h"
#include "gui/document/rows.h"
#include "gui/document/selection.h"
#include "gui/document/time_axis.h"
#include "gui/document/timeline_labels.h"
#include "gui/widgets/theme.h"

namespace foreshard {

// Left and right margins, in pixels, of every view on the time axis, so that their cursors line up.
inline constexpr int kHeaderWidth = 144, kGutterWidth = 84;
inline constexpr int kOverview = 24;   // pixels, when it is shown
inline constexpr int kRuler = 26;      // pixels, above the rows
inline constexpr int kScrollBar = 12;  // pixels, when the rows do not fit

struct TimelineScene {
  const TimeAxis& axis;
  std::shared_ptr<const Document> document = {};  // shared with the other views and their workers; null: empty
  std::shared_ptr<const Twin> twin = {};          // shared with other views; null: no measurement
  Theme theme = {};
  Paints paints = {};
  RowState state = {};
  std::vector<RankGroup> groups = {};
  std::vector<Row> rows = {};
  int scroll = 0;    // pixels of the rows above the visible part
  QSize size = {};   // of the widget
  int overview = 0;  // pixels of the strip above the ruler
  QRect lanes = {};  // the part of the widget with the rows' lanes

  void set_rows_state(RowState next);
  // Computes the places for a widget of this size, whose lowest `legend` pixels are the legend.
  void lay_out(QSize widget, int legend);
  int all_rows() const { return rows.empty() ? 0 : rows.back().top + rows.back().height; }  // pixels

  double x_of(Nanoseconds when) const;
  Nanoseconds time_at(double x) const;
  int row_under(QPoint at) const;  // index in `rows`; -1: none
  int row_of(ClassId who) const;   // index of a row of one of its ranks if its group is open, else of the group's row
  int row_of_picked(Picked picked) const;
  Picked hit(QPoint at) const;           // the object under a point
  QRectF place_of(Picked picked) const;  // its visible part; empty: none
  // Where an arrow meets the span, at its end or its begin. A point above the widget: the arrow is not drawn.
  QPointF anchor_of(std::int32_t span, bool at_end) const;
  const Row* group_above() const;
};

// One line about `picked`, for the status bar; empty: nothing is picked.
QString facts_line(const Document* document, Picked picked);

}  // namespace foreshard
