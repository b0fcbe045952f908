// Timeline frame: draws the rows as an image without text, by a pure function. Its bytes are the same on every platform; golden hashes
// in the tests rely on that.
//
//   row   | compute (hatched where idle; collectives on this stream at the lower edge)      |
//         | worst member, when the row is a mean of classes that differ                     |
//         | communication, copies                                                           |
//         | signed error | measured compute, when there is a measured twin                  |
#pragma once

#include <QImage>
#include <vector>

#include "gui/document/lane_raster.h"
#include "gui/document/rows.h"
#include "gui/document/twin.h"

namespace foreshard {

enum class BoxKind : std::uint8_t { Compute, Worst, Communication, Copy, Error, Measured };

struct LaneBox {  // a horizontal band of a row; pixels from the top of the row
  BoxKind kind = BoxKind::Compute;
  int top = 0, height = 0;
  bool operator==(const LaneBox&) const = default;
};

// The bands of a row, by its height. `twin`: with bands for the measured twin.
std::vector<LaneBox> lane_boxes(const Row& row, bool twin);

struct FrameSources {
  const Document* document = nullptr;
  const std::vector<LaneLevels>* levels = nullptr;  // of document->lanes; null: not made yet, every slice is drawn
  const Twin* twin = nullptr;
  Theme theme = {};
  Paints paints = {};
};

struct FrameView {
  TimeRange visible = {};
  int width = 0, height = 0;  // logical pixels
  int scroll = 0;             // logical pixels of rows hidden above the frame
  double scale = 1;           // device pixels per logical pixel
  bool operator==(const FrameView&) const = default;
};

QImage draw_frame(const FrameSources& sources, const std::vector<Row>& rows, const FrameView& view);

// The visible pieces of idle time of a class. Neighbours that are too narrow to be seen are merged into one, with the cause that has
// most of its time.
std::vector<Bubble> seen_pieces(const Document& document, ClassId who, const FrameView& view);

// Whether a pixel lies on a stroke of the hatch pattern of the cause. x: device pixels from the left end of the bubble.
bool on_hatch(BubbleCause cause, int x, int y, double scale);

// The colour of a signed error: red if slower than predicted, blue if faster, saturated at 25 %.
QColor error_colour(const Theme& theme, double error);

}  // namespace foreshard
