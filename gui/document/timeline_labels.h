// Timeline labels: which words go where, decided without a font: the caller says how wide a text is.
#pragma once

#include <QRectF>
#include <QString>
#include <functional>
#include <vector>

#include "gui/document/timeline_frame.h"

namespace foreshard {

struct FrameLabel {
  QRectF box = {};  // logical pixels, in the frame
  QString text = {};
  Look under = {};                              // what it stands on; of a cell
  bool bubble = false;                          // stands on a bubble: needs a plate
  BubbleCause cause = BubbleCause::Dependency;  // of the bubble
};

using TextWidth = std::function<double(const QString&)>;
inline constexpr std::size_t kMostLabels = 1500;
inline constexpr int kLeastLabelHeight = 11;

std::vector<FrameLabel> frame_labels(const Document& document, const std::vector<Row>& rows, const Twin* twin,
                                     const FrameView& view, const TextWidth& width_of);

// "12.3 ms"; digits by size.
QString time_text(Nanoseconds time);
// The same with as many digits as tell `step` apart, in the unit of `largest` if that is longer: the marks of a ruler.
QString tick_text(Nanoseconds when, Nanoseconds step, Nanoseconds largest = {});

struct RulerMark {  // pixels from the left end of the ruler
  double x = 0;
  bool major = false;
  QString text = {};  // of a major mark, right of it where there is room, else left
  double text_x = 0;
  bool operator==(const RulerMark&) const = default;
};
std::vector<RulerMark> ruler_marks(TimeRange visible, double width, const TextWidth& width_of);
// 1, 2 or 5 times a power of ten, at least `least`.
Nanoseconds nice_step(double least);

}  // namespace foreshard
