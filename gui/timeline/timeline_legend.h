// Legend of the timeline: what is painted how, where each entry stands, and what a click on one hides. What is hidden is drawn
// grey and not left out: left out it would look idle.
#pragma once

#include <QRectF>
#include <QString>
#include <functional>
#include <vector>

#include "gui/timeline/lane_raster.h"

namespace foreshard {

struct LegendEntry {
  bool bubble = false;  // a cause of idle time; else a kind of work
  Paint paint = Paint::Other;
  BubbleCause cause = BubbleCause::WarmUp;
  QString letter = {}, words = {};  // the letter is the second cue beside the colour
  bool hidden_by(const Hidden& hidden) const { return bubble ? hidden.has(cause) : hidden.has(paint); }
};

inline constexpr int kLegendLine = 21;  // pixels

std::vector<LegendEntry> legend_entries();

Hidden toggled(Hidden hidden, const LegendEntry& entry);
// Everything but this one of its sort; once more: nothing is hidden.
Hidden only(Hidden hidden, const LegendEntry& entry);

// [entry]: its place in lines of kLegendLine pixels, from the top left of the legend. `one_line`: those behind its end have an empty
// place, and one place more, the last, is that of "+N".
std::vector<QRectF> lay_legend(const std::vector<LegendEntry>& entries, double width,
                               const std::function<double(const QString&)>& width_of, bool one_line = false);

}  // namespace foreshard
