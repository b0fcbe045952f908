// Timeline labels: which text goes where. The layout needs no font, because the caller supplies the width of a text.
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
  Look under = {};                              // of the cell below the text; unused for a bubble
  bool bubble = false;                          // lies on the hatching of a bubble and needs a plain background
  BubbleCause cause = BubbleCause::Dependency;  // of the bubble
};

using TextWidth = std::function<double(const QString&)>;  // logical pixels
inline constexpr std::size_t kMostLabels = 1500;
inline constexpr int kLeastLabelHeight = 11;  // pixels

std::vector<FrameLabel> frame_labels(const Document& document, const std::vector<Row>& rows, const Twin* twin,
                                     const FrameView& view, const TextWidth& width_of);

// "12.3 ms"; a larger number has fewer decimals.
QString time_text(Nanoseconds time);
// The same for the marks of a ruler: with enough decimals that marks `step` apart differ, in the unit of `largest` if that is longer.
QString tick_text(Nanoseconds when, Nanoseconds step, Nanoseconds largest = {});

struct RulerMark {  // pixels from the left end of the ruler
  double x = 0;
  bool major = false;
  QString text = {};  // of a major mark; right of it, or left where there is no room
  double text_x = 0;
  bool operator==(const RulerMark&) const = default;
};
std::vector<RulerMark> ruler_marks(TimeRange visible, double width, const TextWidth& width_of);
// 1, 2 or 5 times a power of ten, at least `least`.
Nanoseconds nice_step(double least);

}  // namespace foreshard
