#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>

#include "report/pictures/svg_frame.h"
#include "report/words/span_words.h"
#include "report/words/text_table.h"

namespace foreshard {

std::string hatch_id(BubbleCause cause) { return std::string("bubble-") + name_of(cause); }

namespace {

struct Piece {  // a time without a gap in which one action runs
  Nanoseconds begin = {}, end = {};
  const Action* action = nullptr;
};

struct Label {
  std::string words = {};
  double x = 0, size = 9;
  Colour colour = {};
  bool plate = false;  // on a white background
};

class Lane {
 public:
  Lane(SvgCanvas& canvas, const Result& result, ClassId who, const TimeScale& scale, double top, const LaneShape& shape)
      : canvas_(canvas), plan_(result.plan), trace_(result.trace), who_(who), scale_(scale), top_(top), shape_(shape) {
    const auto own = std::ranges::equal_range(trace_.spans, who, {}, &Span::who);
    spans_ = {own.begin(), own.end()};
  }

  std::vector<Colour> draw(const std::vector<Bubble>& bubbles) {
    canvas_.begin_group(class_name(plan_, trace_, who_));
    const std::vector<Bubble> seen = visible(bubbles);
    auto bubble = seen.begin();
    const std::vector<Piece> pieces = compute_pieces();
    for (const Piece& piece : pieces) {
      for (; bubble != seen.end() && bubble->begin < piece.end; ++bubble) hole(*bubble);
      cell(piece);
    }
    for (; bubble != seen.end(); ++bubble) hole(*bubble);
    flush();
    communication();
    for (const auto& [fill, boxes] : boxes_) canvas_.rects(boxes, fill);
    if (!in_line_.empty()) canvas_.rects(in_line_, hex(kInLine));
    for (const Label& label : labels_) write(label);
    canvas_.end_group();
    return std::move(talks_);
  }

 private:
  const Role& role() const { return role_of(plan_, trace_, who_); }
  double width(Nanoseconds begin, Nanoseconds end) const { return scale_.at(end) - scale_.at(begin); }

  std::vector<Piece> compute_pieces() const {
    std::vector<Piece> pieces;
    for (const Span& span : spans_) {
      if (span.begin == span.end || role().streams[span.stream.index()].kind != StreamKind::Compute) continue;
      const Action* action = &action_of(plan_, trace_, span);
      if (!pieces.empty() && pieces.back().end == span.begin && pieces.back().action == action)
        pieces.back().end = span.end;
      else
        pieces.push_back({span.begin, span.end, action});
    }
    return pieces;
  }

  // Chunks of a rank that holds several stages get lighter from one to the next.
  Colour colour_of_piece(const Piece& piece) const {
    const Colour colour = colour_of(cell_of(*piece.action));
    const int ranks = static_cast<int>(plan_.roles.size());
    if (piece.action->does.empty() || plan_.stages <= ranks) return colour;
    const int chunk = piece.action->does.front().stage / ranks, chunks = plan_.stages / ranks;
    return mix(colour, kWhite, 0.45 * chunk / chunks);
  }

  void cell(const Piece& piece) {
    const Colour colour = colour_of_piece(piece);
    const double pixels = width(piece.begin, piece.end);
    if (pixels < shape_.least) return blend(piece.begin, piece.end, colour);
    flush();
    const double gap = pixels > 4 ? 0.5 : 0;  // a seam between neighbours of the same kind
    put({scale_.at(piece.begin), top_, pixels - gap, shape_.height}, hex(colour));
    if (piece.action->does.empty() || piece.action->does.front().microbatch < 0 || shape_.height < 9) return;
    const std::string label = std::to_string(piece.action->does.front().microbatch);
    const double size = std::min(10.0, shape_.height * 0.6);
    if (text_width(label, size) + 3 > pixels) return;
    labels_.push_back({label, scale_.at(piece.begin) + pixels / 2, size, label_on(colour), false});
  }

  void hole(const Bubble& bubble) {
    const double pixels = width(bubble.begin, bubble.end);
    if (pixels < shape_.least) return blend(bubble.begin, bubble.end, mix(kWhite, colour_of(bubble.cause), 0.2));
    flush();
    const bool wide = pixels >= 3;
    put({scale_.at(bubble.begin), top_, pixels, shape_.height},
        wide ? "url(#" + hatch_id(bubble.cause) + ")" : hex(mix(kWhite, colour_of(bubble.cause), 0.3)));
    const std::string label = in_short_time(to_seconds(bubble.end - bubble.begin));
    if (pixels < text_width(label, 9) + 20 || shape_.height < 13) return;
    labels_.push_back({label, scale_.at(bubble.begin) + pixels / 2, 9, colour_of(bubble.cause), true});
  }

  // Joins neighbouring bubbles that are too narrow to show a hatch; the result has the cause that takes most of its time.
  std::vector<Bubble> visible(const std::vector<Bubble>& bubbles) const {
    std::vector<Bubble> out;
    std::array<std::int64_t, kBubbleCauses> shares = {};
    bool narrow = false;  // the last bubble of `out` was joined from narrow ones
    for (const Bubble& bubble : bubbles) {
      const bool joins = width(bubble.begin, bubble.end) < 3;
      if (!(joins && narrow && out.back().end == bubble.begin)) {
        out.push_back(bubble);
        shares = {};
      }
      narrow = joins;
      shares[static_cast<std::size_t>(bubble.cause)] += (bubble.end - bubble.begin).value;
      out.back().end = bubble.end;
      out.back().cause = static_cast<BubbleCause>(std::max_element(shares.begin(), shares.end()) - shares.begin());
    }
    return out;
  }

  // Collects cells that are too narrow to be seen; the merged cell has their mean colour.
  void blend(Nanoseconds begin, Nanoseconds end, Colour colour) {
    if (weight_ == 0) from_ = begin;
    const auto weight = static_cast<double>((end - begin).value);
    sums_[0] += weight * colour.red, sums_[1] += weight * colour.green, sums_[2] += weight * colour.blue;
    weight_ += weight;
    until_ = end;
    if (width(from_, until_) >= shape_.merged) flush();
  }

  void flush() {
    if (weight_ > 0) {
      const auto mean = [&](double sum) { return static_cast<std::uint8_t>(std::lround(sum / weight_)); };
      put({scale_.at(from_), top_, width(from_, until_), shape_.height}, hex({mean(sums_[0]), mean(sums_[1]), mean(sums_[2])}));
    }
    sums_ = {};
    weight_ = 0;
  }

  // One thin band shows all communication streams; collectives on the compute stream are drawn at the foot of the cells.
  void communication() {
    double drawn_to = -1;
    for (const Span& span : spans_) {
      if (span.begin == span.end) continue;
      const auto& what = instruction_of(plan_, trace_, span).what;
      const bool in_line = role().streams[span.stream.index()].kind == StreamKind::Compute;
      Colour colour = kCollective;
      if (std::holds_alternative<Exchange>(what))
        colour = kTransfer;
      else if (std::holds_alternative<Copy>(what))
        colour = kCopy;
      else if (!std::holds_alternative<Collective>(what))
        continue;
      const double x = scale_.at(span.begin), pixels = width(span.begin, span.end);
      if (in_line) {
        if (span.count > 1 || pixels < 1) continue;
        in_line_.push_back({x, top_ + shape_.height * 0.75, pixels, shape_.height * 0.25});
        note(kInLine);
        continue;
      }
      // If neighbours fall on the same pixels, only the first of them is drawn.
      if (shape_.strip <= 0 || (pixels < shape_.merged && x + pixels <= drawn_to && x >= drawn_to - shape_.merged)) continue;
      const double seen = std::max(pixels, 0.75 * shape_.merged);
      put({x, top_ + shape_.height + 1, seen, shape_.strip}, hex(colour));
      drawn_to = x + seen;
      note(colour);
    }
  }

  void put(Box box, const std::string& fill) { boxes_[fill].push_back(box); }

  void write(const Label& label) {
    const double middle = top_ + shape_.height / 2, room = text_width(label.words, label.size) + 8;
    if (label.plate) canvas_.rect({label.x - room / 2, middle - 6.5, room, 13}, kWhite);
    canvas_.text(label.x, middle + label.size * 0.36, label.words, label.size, label.colour, Anchor::Middle);
  }

  void note(Colour colour) {
    if (std::find(talks_.begin(), talks_.end(), colour) == talks_.end()) talks_.push_back(colour);
  }

  SvgCanvas& canvas_;
  const Plan& plan_;
  const Trace& trace_;
  ClassId who_;
  const TimeScale& scale_;
  double top_;
  const LaneShape& shape_;
  std::span<const Span> spans_ = {};
  std::array<double, 3> sums_ = {};
  double weight_ = 0;
  Nanoseconds from_ = {}, until_ = {};
  std::map<std::string, std::vector<Box>> boxes_ = {};  // by fill: one element each
  std::vector<Box> in_line_ = {};                       // on top of the cells
  std::vector<Label> labels_ = {};
  std::vector<Colour> talks_ = {};
};

}  // namespace

std::vector<Colour> draw_lane(SvgCanvas& canvas, const Result& result, ClassId who, const std::vector<Bubble>& bubbles,
                              const TimeScale& scale, double top, const LaneShape& shape) {
  return Lane(canvas, result, who, scale, top, shape).draw(bubbles);
}

}  // namespace foreshard
