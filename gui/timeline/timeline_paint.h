// What the timeline paints over and around its rows. Each function reads the scene only.
#pragma once

#include <QColor>
#include <QPainter>
#include <optional>

#include "gui/timeline/timeline_scene.h"

namespace foreshard {

struct RulerFlag {  // a bookmark
  Nanoseconds when = {};
  QString key = {}, note = {};  // "3", or empty; for the tooltip
};

QColor with_alpha(QColor colour, int alpha);
QFont small_font(const QFont& font, double scale);

// timeline_arrows.cpp: the arrows of the binding chain, or the critical path of the run.
void paint_arrows(QPainter& painter, const TimelineScene& scene, Picked picked, Arrows arrows);
QString critical_words(const Document* document);  // "critical path: 61.0 % compute, ..."

// timeline_headers.cpp: names at the left, the share of time in which ranks compute at the right.
bool notes_fit(const std::vector<Row>& rows, const QFont& font);  // beside the names of all rows
void paint_headers(QPainter& painter, const TimelineScene& scene, bool notes_fit);
void paint_gutter(QPainter& painter, const TimelineScene& scene, int right);  // words end so far from its left

// timeline_ruler.cpp: time marks, bookmarks, the cursor and the selected range.
void paint_ruler(QPainter& painter, const TimelineScene& scene, const std::vector<RulerFlag>& flags);
QRectF flag_box(const TimelineScene& scene, const RulerFlag& flag);  // empty: not visible
void paint_range_and_cursor(QPainter& painter, const TimelineScene& scene);

// timeline_overview.cpp: the strip of the whole run above the ruler, with the visible stretch framed.
void paint_overview(QPainter& painter, const TimelineScene& scene, const std::vector<float>* busy);
TimeRange range_around(const TimelineScene& scene, double x);  // as long as the visible one, around that point of the strip

}  // namespace foreshard
