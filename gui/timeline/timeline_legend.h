// Legend of the timeline: what is painted how, where each entry stands, and what a click on one hides. What is hidden is drawn
// grey and not left out: left out it would look idle.
#pragma once

#include <QRectF>
#include <QString>
#include <functional>
#include <optional>
#include <vector>

#include "gui/timeline/timeline_scene.h"

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

// The legend at the bottom of the timeline. Places are from its top left.
class TimelineLegend {
 public:
  void show(bool shown) { shown_ = shown; }
  void shorten(bool one_line) { short_ = one_line, open_ = false; }  // with "+N" for the rest, until that is clicked
  void open() { open_ = true; }
  void lay_out(int width, const QFont& font);
  int height() const;  // pixels; 0: it is not shown

  bool shown() const { return shown_; }
  const std::vector<LegendEntry>& entries() const { return entries_; }
  QRectF box(std::size_t entry) const;                      // empty: it is not seen
  QRectF more_box() const { return box(entries_.size()); }  // of "+N"; empty: all are seen
  std::optional<std::size_t> entry_at(QPointF at) const;
  void paint(QPainter& painter, const TimelineScene& scene) const;

 private:
  void paint_entry(QPainter& painter, const TimelineScene& scene, const LegendEntry& entry, QRectF place) const;

  std::vector<LegendEntry> entries_ = legend_entries();
  bool shown_ = true, short_ = false, open_ = false;
  std::vector<QRectF> boxes_ = {};  // [entry]
};

}  // namespace foreshard
