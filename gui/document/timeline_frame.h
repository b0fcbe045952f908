// Timeline frame: the picture of the rows without any text, as a pure function. Its bytes are the same on every platform, which
// is what the golden hashes of the tests rely on.
//
//   row   | compute (hatched where idle; the foot shows collectives on the compute stream)  |
//         | worst member, when the row is a mean of classes that differ                     |
//         | communication, copies                                                           |
//         | signed error | measured compute, when there is a measured twin                  |
#pragma once

#include <QImage>
#include <vector>

#include "gui/document/rows.h"
#include "gui/document/twin.h"
#include "gui/document/lane_raster.h"

namespace foreshard {

enum class BoxKind : std::uint8_t { Compute, Worst, Communication, Copy, Error, Measured };

struct LaneBox {  // pixels from the top of the row
  BoxKind kind = BoxKind::Compute;
  int top = 0, height = 0;
  bool operator==(const LaneBox&) const = default;
};

// What a row of that height holds.
std::vector<LaneBox> lane_boxes(const Row& row, bool twin);

struct FrameSources {
  const Document* document = nullptr;
  const std::vector<LaneLevels>* levels = nullptr;  // of document->lanes; null: not made yet, all slices are drawn
  const Twin* twin = nullptr;
  Theme theme = {};
  Paints paints = {};
};

struct FrameView {
  TimeRange visible = {};
  int width = 0, height = 0;  // logical pixels
  int scroll = 0;             // logical pixels of the rows above the frame
  double scale = 1;           // device pixels per logical pixel
  bool operator==(const FrameView&) const = default;
};

QImage draw_frame(const FrameSources& sources, const std::vector<Row>& rows, const FrameView& view);

// The pieces of idle time of a class as far as they are visible. Neighbours too narrow to be seen alone become one, with the cause
// that takes most of it.
std::vector<Bubble> seen_pieces(const Document& document, ClassId who, const FrameView& view);

// Whether a pixel of a bubble is on a stroke: each cause has its own pattern. x from the left end of the bubble.
bool on_hatch(BubbleCause cause, int x, int y, double scale);

// Slower than predicted towards red, faster towards blue, full at 25 %.
QColor error_colour(const Theme& theme, double error);

}  // namespace foreshard
