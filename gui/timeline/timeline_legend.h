// Legend of the timeline: the entries, their places, and what a click on one hides. Hidden kinds are drawn grey; if they were left out,
// that time would look idle.
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
  QString letter = {}, words = {};  // the letter distinguishes entries besides the colour
  bool hidden_by(const Hidden& hidden) const { return bubble ? hidden.has(cause) : hidden.has(paint); }
};

inline constexpr int kLegendLine = 21;  // pixels

std::vector<LegendEntry> legend_entries();

Hidden toggled(Hidden hidden, const LegendEntry& entry);  // hides the entry, or shows it if it is hidden
// Hides all other kinds of work (or causes of idle time), but not this one. If that is so already, hides nothing.
Hidden only(Hidden hidden, const LegendEntry& entry);

// [entry]: its place, in pixels from the top left of the legend; lines are kLegendLine high. `one_line`: entries that do not fit the
// first line have an empty place, and one more place at the end is that of "+N", the number of them.
std::vector<QRectF> lay_legend(const std::vector<LegendEntry>& entries, double width,
                               const std::function<double(const QString&)>& width_of, bool one_line = false);

// The legend at the bottom of the timeline. Positions are in pixels from its top left.
class TimelineLegend {
 public:
  void show(bool shown) { shown_ = shown; }
  void shorten(bool one_line) { short_ = one_line, open_ = false; }  // one line, with "+N" for the rest
  void open() { open_ = true; }                                      // shows all entries although it is shortened
  void lay_out(int width, const QFont& font);
  int height() const;  // pixels; 0: the legend is hidden

  bool shown() const { return shown_; }
  const std::vector<LegendEntry>& entries() const { return entries_; }
  QRectF box(std::size_t entry) const;                      // empty: the entry does not fit
  QRectF more_box() const { return box(entries_.size()); }  // the place of "+N"; empty: all entries fit
  std::optional<std::size_t> entry_at(QPointF at) const;
  void paint(QPainter& painter, const TimelineScene& scene) const;

 private:
  void paint_entry(QPainter& painter, const TimelineScene& scene, const LegendEntry& entry, QRectF place) const;

  std::vector<LegendEntry> entries_ = legend_entries();
  bool shown_ = true, short_ = false, open_ = false;
  std::vector<QRectF> boxes_ = {};  // [entry]
};

}  // namespace foreshard
