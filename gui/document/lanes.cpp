#include "gui/document/lanes.h"

#include <algorithm>

#include "report/words/palette.h"
#include "report/words/span_words.h"

namespace foreshard {

static constexpr unsigned kPaintBits = 0x0fU, kShadeShift = 4, kShadeBits = 0x7U, kFirstBit = 0x80U;

Look Lane::look_of(std::size_t slice) const {
  const unsigned packed = look[slice];
  return {static_cast<Paint>(packed & kPaintBits), static_cast<std::uint8_t>((packed >> kShadeShift) & kShadeBits),
          (packed & kFirstBit) != 0};
}

void Lane::push(Nanoseconds from, Nanoseconds to, std::int32_t span_index, Look how) {
  std::int64_t before = 0;
  if (!begin.empty()) {
    // Slices may overlap: what is busy is their union, so it grows by the part that lies after everything before.
    before = busy.back() + std::max<std::int64_t>(0, std::min(from.value, last_end) - begin.back());
  }
  begin.push_back(from.value);
  end.push_back(to.value);
  busy.push_back(before);
  last_end = std::max(last_end, to.value);
  span.push_back(span_index);
  look.push_back(static_cast<std::uint8_t>(static_cast<unsigned>(how.paint) | (how.shade & kShadeBits) << kShadeShift |
                                           (how.first ? kFirstBit : 0U)));
  longest = std::max(longest, to.value - from.value);
}

std::size_t Lane::first_after(std::int64_t when) const {
  return static_cast<std::size_t>(std::lower_bound(begin.begin(), begin.end(), when - longest) - begin.begin());
}

std::optional<std::size_t> Lane::slice_at(std::int64_t when) const {
  const auto after = std::upper_bound(begin.begin(), begin.end(), when);
  for (auto i = static_cast<std::size_t>(after - begin.begin()); i > 0 && begin[i - 1] >= when - longest; --i)
    if (end[i - 1] > when) return i - 1;
  return {};
}

std::int64_t Lane::busy_until(std::int64_t when) const {
  const auto after = std::upper_bound(begin.begin(), begin.end(), when);
  if (after == begin.begin()) return 0;
  const auto i = static_cast<std::size_t>(after - begin.begin()) - 1;
  const std::int64_t until_next = i + 1 < size() ? busy[i + 1] - busy[i] : last_end - begin[i];
  return busy[i] + std::min(when - begin[i], until_next);
}

const Lane* Lanes::find(ClassId who, LaneKind kind) const {
  if (!who.valid() || who.index() >= of_class.size()) return nullptr;
  const std::int32_t at = of_class[who.index()][static_cast<std::size_t>(kind)];
  return at < 0 ? nullptr : &all[static_cast<std::size_t>(at)];
}

namespace {

LaneKind kind_of(StreamKind stream) {
  switch (stream) {
    case StreamKind::Compute: return LaneKind::Compute;
    case StreamKind::Communication: return LaneKind::Communication;
    case StreamKind::CopyIn:
    case StreamKind::CopyOut:
    case StreamKind::Host:
    case StreamKind::Storage: return LaneKind::Copy;
  }
  return LaneKind::Compute;
}

Paint paint_of(Cell cell) {
  switch (cell) {
    case Cell::Forward: return Paint::Forward;
    case Cell::Backward: return Paint::Backward;
    case Cell::WeightGradient: return Paint::WeightGradient;
    case Cell::Both: return Paint::Both;
    case Cell::Update: return Paint::Update;
    case Cell::Other: return Paint::Other;
  }
  return Paint::Other;
}

// By the names that the op graph gives them; in the backward the gradients of the same rows go the other way.
Paint paint_of_collective(const Instruction& instruction, Paint other) {
  if (!std::holds_alternative<Collective>(instruction.what)) return other;
  const std::string& name = instruction.name;
  if (name.find("dispatch_") != std::string::npos || name.find("expert_counts_") != std::string::npos) return Paint::Dispatch;
  return name.find("combine_") != std::string::npos ? Paint::Combine : other;
}

// On a compute stream the paint shows the kind of work; on other streams the kind of communication or copy.
Paint paint_of(const Instruction& instruction, const Action& action, LaneKind lane) {
  if (lane == LaneKind::Compute) return paint_of(cell_of(action));
  if (std::holds_alternative<Exchange>(instruction.what)) return Paint::Transfer;
  if (std::holds_alternative<Collective>(instruction.what)) return paint_of_collective(instruction, Paint::Collective);
  if (std::holds_alternative<Copy>(instruction.what)) return Paint::Copy;
  return lane == LaneKind::Copy ? Paint::Host : Paint::Other;
}

bool communicates(const Instruction& instruction) {
  return std::holds_alternative<Collective>(instruction.what) || std::holds_alternative<Exchange>(instruction.what) ||
         std::holds_alternative<Copy>(instruction.what);
}

class LaneBuilder {
 public:
  LaneBuilder(const Plan& plan, const Trace& trace) : plan_(plan), trace_(trace) {}

  Lanes build(const std::vector<Bubble>& bubbles) {
    lanes_.of_class.assign(trace_.classes.size(), {-1, -1, -1, -1});
    for (std::size_t first = 0, last = 0; first < trace_.spans.size(); first = last) {
      while (last < trace_.spans.size() && trace_.spans[last].who == trace_.spans[first].who) ++last;
      add_class(first, last);
    }
    std::size_t bubble = 0;
    for (std::size_t c = 0; c < trace_.classes.size(); ++c) {
      lanes_.first_bubble.push_back(static_cast<std::int32_t>(bubble));
      while (bubble < bubbles.size() && bubbles[bubble].who.index() == c) ++bubble;
    }
    lanes_.first_bubble.push_back(static_cast<std::int32_t>(bubble));
    return std::move(lanes_);
  }

 private:
  void add_class(std::size_t first, std::size_t last) {
    const ClassId who = trace_.spans[first].who;
    std::array<std::vector<std::int32_t>, kLaneKinds> order = {};
    for (std::size_t s = first; s < last; ++s) {
      const Span& span = trace_.spans[s];
      if (span.begin == span.end) continue;
      const StreamKind stream = role_of(plan_, trace_, who).streams[span.stream.index()].kind;
      const auto index = static_cast<std::int32_t>(s);
      order[static_cast<std::size_t>(kind_of(stream))].push_back(index);
      if (stream == StreamKind::Compute && span.count == 1 && communicates(instruction_of(plan_, trace_, span)))
        order[static_cast<std::size_t>(LaneKind::InLine)].push_back(index);
    }
    for (int k = 0; k < kLaneKinds; ++k) add_lane(who, static_cast<LaneKind>(k), order[static_cast<std::size_t>(k)]);
  }

  void add_lane(ClassId who, LaneKind kind, std::vector<std::int32_t>& order) {
    if (order.empty()) return;
    const auto at = [&](std::int32_t i) -> const Span& { return trace_.spans[static_cast<std::size_t>(i)]; };
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return at(a).begin < at(b).begin; });
    lanes_.of_class[who.index()][static_cast<std::size_t>(kind)] = static_cast<std::int32_t>(lanes_.all.size());
    Lane& lane = lanes_.all.emplace_back(Lane{.who = who, .kind = kind});
    const auto n = order.size();
    lane.begin.reserve(n), lane.end.reserve(n), lane.busy.reserve(n), lane.span.reserve(n), lane.look.reserve(n);
    const Span* before = nullptr;
    for (const std::int32_t index : order) {
      const Span& span = at(index);
      const Action& action = action_of(plan_, trace_, span);
      const Instruction& instruction = instruction_of(plan_, trace_, span);
      const Paint paint =
          kind == LaneKind::InLine ? paint_of_collective(instruction, Paint::InLine) : paint_of(instruction, action, kind);
      const bool joins =
          kind == LaneKind::Compute && before != nullptr && before->action == span.action && before->end == span.begin;
      lane.push(span.begin, span.end, index, {paint, shade_of(action), !joins});
      before = &span;
    }
  }

  std::uint8_t shade_of(const Action& action) const {
    const int ranks = std::max(static_cast<int>(plan_.roles.size()), 1);
    if (action.does.empty() || plan_.stages <= ranks) return 0;
    return static_cast<std::uint8_t>(std::clamp(action.does.front().stage / ranks, 0, kShades - 1));
  }

  const Plan& plan_;
  const Trace& trace_;
  Lanes lanes_ = {};
};

}  // namespace

Lanes make_lanes(const Plan& plan, const Trace& trace, const std::vector<Bubble>& bubbles) {
  return LaneBuilder(plan, trace).build(bubbles);
}

std::int32_t bubble_at(const Lanes& lanes, const std::vector<Bubble>& bubbles, ClassId who, std::int64_t when) {
  if (!who.valid() || who.index() + 1 >= lanes.first_bubble.size()) return -1;
  const auto first = bubbles.begin() + lanes.first_bubble[who.index()];
  const auto last = bubbles.begin() + lanes.first_bubble[who.index() + 1];
  const auto after = std::upper_bound(first, last, when, [](std::int64_t t, const Bubble& b) { return t < b.begin.value; });
  if (after == first || std::prev(after)->end.value <= when) return -1;
  return static_cast<std::int32_t>(std::prev(after) - bubbles.begin());
}

}  // namespace foreshard
