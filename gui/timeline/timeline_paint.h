// Painting of everything over and around the rows of the timeline. No function changes the scene.
#pragma once

#include <QColor>
#include <QPainter>
#include <optional>

#include "gui/timeline/timeline_scene.h"

namespace foreshard {

struct RulerFlag {  // the mark of a bookmark on the ruler
  Nanoseconds when = {};
  QString key = {}, note = {};  // key: its digit or empty; note: for the tooltip
};

QColor with_alpha(QColor colour, int alpha);
QFont small_font(const QFont& font, double scale);

// timeline_arrows.cpp: the arrows of the binding chain, or the critical path of the run.
void paint_arrows(QPainter& painter, const TimelineScene& scene, Picked picked, Arrows arrows);
QString critical_words(const Document* document);  // "critical path: 61.0 % compute, ..."

// timeline_headers.cpp: at the left the names of the rows, at the right the share of the visible time in which their ranks compute.
bool notes_fit(const std::vector<Row>& rows, const QFont& font);  // whether every row has room for its note beside its name
void paint_headers(QPainter& painter, const TimelineScene& scene, bool notes_fit);
// `right`: pixels from the gutter's left edge at which text ends.
void paint_gutter(QPainter& painter, const TimelineScene& scene, int right);

// timeline_ruler.cpp: time marks, bookmarks, the cursor and the selected range.
void paint_ruler(QPainter& painter, const TimelineScene& scene, const std::vector<RulerFlag>& flags);
QRectF flag_box(const TimelineScene& scene, const RulerFlag& flag);  // in the widget; empty: not visible
void paint_range_and_cursor(QPainter& painter, const TimelineScene& scene);

// timeline_overview.cpp: the strip of the whole run above the ruler, with the visible stretch framed.
void paint_overview(QPainter& painter, const TimelineScene& scene, const std::vector<float>* busy);
// A range as long as the visible one, centred on the point `x` of the strip.
TimeRange range_around(const TimelineScene& scene, double x);

}  // namespace foreshard
