#include "validation/validation_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/quantile.h"
#include "report/pictures/svg_canvas.h"

namespace foreshard {

namespace {

constexpr double kWidth = 940, kNames = 380, kRight = 30, kTop = 62, kPitch = 30, kHeading = 30, kMark = 2.4;
constexpr double kFarthest = 2;  // predicted / measured at the right edge; the left edge is its inverse

double across(double ratio) {
  const double place = ratio > 0 ? std::clamp(std::log(ratio) / std::log(kFarthest), -1.0, 1.0) : -1;
  const double middle = (kNames + kWidth - kRight) / 2;
  return middle + place * (kWidth - kRight - kNames) / 2;
}

Colour mark_colour(bool memory) { return memory ? kCopy : kTransfer; }

class Drawing {
 public:
  explicit Drawing(const Validation& validation) : v_(validation) {}

  std::string svg() {
    const double bottom = kTop + block_height(false) + block_height(true);
    canvas_.text(16, 24, "Predicted over measured", 15, kInk, Anchor::Start, true);
    canvas_.text(16, 42, "a mark per row, a stroke at their median; throughput as time: left is too fast", 11, kFaint);
    axis(bottom);
    double top = kTop;
    for (const bool memory : {false, true}) top = block(memory, top);
    return canvas_.document(kWidth, bottom + 16, "foreshard: predicted over measured");
  }

 private:
  std::vector<const ValidationCell*> cells(bool memory) const {
    std::vector<const ValidationCell*> found;
    for (const ValidationCell& cell : v_.cells)
      if (cell.memory == memory) found.push_back(&cell);
    return found;
  }
  double block_height(bool memory) const {
    const std::size_t n = cells(memory).size();
    return n == 0 ? 0 : kHeading + static_cast<double>(n) * kPitch;
  }

  void axis(double bottom) {
    canvas_.rect({across(0.95), kTop, across(1.05) - across(0.95), bottom - kTop}, mix(kWhite, kCopy, 0.12));
    for (const double error : {-0.5, -0.33, -0.2, -0.1, 0.0, 0.1, 0.25, 0.5, 1.0}) {
      canvas_.line(across(1 + error), kTop, across(1 + error), bottom, error == 0 ? kFaint : kRule);
      const std::string words = error == 0 ? "0" : fmt::format("{:+.0f} %", 100 * error);
      canvas_.text(across(1 + error), kTop - 6, words, 10, kFaint, Anchor::Middle);
    }
  }

  double block(bool memory, double top) {
    const std::vector<const ValidationCell*> found = cells(memory);
    if (found.empty()) return top;
    canvas_.text(16, top + 20, memory ? "Memory" : "Time and throughput", 13, kInk, Anchor::Start, true);
    top += kHeading;
    for (const ValidationCell* cell : found) strip(*cell, top), top += kPitch;
    return top;
  }

  void strip(const ValidationCell& cell, double top) {
    canvas_.begin_group(fmt::format("{}, {}, {}: {} rows, median error {:.1f} %", cell.source, cell.gpu, framework_words(cell),
                                    cell.score.n, 100 * cell.score.median));
    canvas_.line(16, top, kWidth - kRight, top, kRule);
    canvas_.text(16, top + 13, cell.source, 11, kInk);
    canvas_.text(16, top + 25, fmt::format("{} · {} · {} rows", cell.gpu, framework_words(cell), cell.score.n), 9.5, kFaint);
    std::vector<Box> marks;
    std::vector<double> places;
    for (const ValidatedRow& row : v_.scored) {
      if (row.ran_out || !is_of(row, cell)) continue;
      // Spreads marks vertically by multiples of the golden ratio, so that rows with equal errors do not hide each other.
      const double height = std::fmod(0.5 + 0.618034 * static_cast<double>(marks.size()), 1.0);
      places.push_back(across(row.larger_is_better ? row.measured / row.predicted : row.predicted / row.measured));
      marks.push_back({places.back() - kMark / 2, top + 4 + height * (kPitch - 8 - kMark), kMark, kMark});
    }
    canvas_.rects(marks, hex(mix(kWhite, mark_colour(cell.memory), 0.75)));
    const double median = quantile(places, 0.5);
    canvas_.line(median, top + 3, median, top + kPitch - 3, kLimit, 2);
    canvas_.end_group();
  }

  const Validation& v_;
  SvgCanvas canvas_ = {};
};

}  // namespace

std::string validation_svg(const Validation& validation) { return Drawing(validation).svg(); }

}  // namespace foreshard
