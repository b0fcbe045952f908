#include "report/causes/bubbles.h"

#include <algorithm>
#include <array>

namespace foreshard {

namespace {

// Where the forward and backward work of a class lies on its compute streams.
struct Milestones {
  Nanoseconds first_backward = {}, last_forward = {}, last_work = {};
};

class BubbleSearch {
 public:
  BubbleSearch(const Plan& plan, const Trace& trace, const std::vector<Binding>& bindings)
      : plan_(plan), trace_(trace), bindings_(bindings), milestones_(trace.classes.size()) {}

  std::vector<Bubble> search() {
    std::vector<std::pair<std::size_t, std::size_t>> ranges(trace_.classes.size());
    for (std::size_t first = 0, last = 0; first < trace_.spans.size(); first = last) {
      while (last < trace_.spans.size() && trace_.spans[last].who == trace_.spans[first].who) ++last;
      const std::size_t who = trace_.spans[first].who.index();
      ranges[who] = {first, last};
      milestones_[who] = milestones(first, last);
      last_work_ = std::max(last_work_, milestones_[who].last_work);
    }
    for (std::size_t c = 0; c < ranges.size(); ++c) gaps_of({static_cast<std::int32_t>(c)}, ranges[c].first, ranges[c].second);
    return std::move(bubbles_);
  }

 private:
  const Span& at(std::int32_t span) const { return trace_.spans[static_cast<std::size_t>(span)]; }
  RoleId role_of(ClassId who) const { return trace_.classes[who.index()].role; }
  const Role& role(ClassId who) const { return plan_.roles[role_of(who).index()]; }
  bool computes(const Span& span) const { return role(span.who).streams[span.stream.index()].kind == StreamKind::Compute; }

  Milestones milestones(std::size_t first, std::size_t last) const {
    Milestones found{trace_.makespan, {}, {}};
    Nanoseconds first_work = trace_.makespan;
    for (std::size_t s = first; s < last; ++s) {
      const Span& span = trace_.spans[s];
      if (!computes(span)) continue;
      for (const Does& does : role(span.who).actions[static_cast<std::size_t>(span.action)].does) {
        if (does.work == Work::Update) continue;
        first_work = std::min(first_work, span.begin);
        found.last_work = std::max(found.last_work, span.end);
        if (does.work == Work::F)
          found.last_forward = std::max(found.last_forward, span.end);
        else
          found.first_backward = std::min(found.first_backward, span.begin);
      }
    }
    if (found.first_backward == trace_.makespan) found.first_backward = first_work;
    return found;
  }

  void gaps_of(ClassId who, std::size_t first, std::size_t last) {
    order_.clear();
    last_span_ = -1;
    int streams = 0;
    StreamId previous = {};
    for (std::size_t s = first; s < last; ++s) {
      const Span& span = trace_.spans[s];
      if (last_span_ < 0 || span.end > at(last_span_).end) last_span_ = static_cast<std::int32_t>(s);
      if (!computes(span) || span.begin == span.end) continue;
      streams += span.stream != previous ? 1 : 0;
      previous = span.stream;
      order_.push_back(static_cast<std::int32_t>(s));
    }
    if (streams > 1) std::stable_sort(order_.begin(), order_.end(), [&](auto a, auto b) { return at(a).begin < at(b).begin; });
    drained_ = {};
    Nanoseconds busy_until = {};
    for (const std::int32_t s : order_) {
      if (at(s).begin > busy_until) explain(who, busy_until, at(s).begin, s);
      busy_until = std::max(busy_until, at(s).end);
    }
    if (busy_until < trace_.makespan) explain(who, busy_until, trace_.makespan, -1);
  }

  // Cuts the gap [begin, end) of the class into pieces, last piece first, then appends them in time order.
  void explain(ClassId who, Nanoseconds begin, Nanoseconds end, std::int32_t before) {
    pieces_.clear();
    const BubbleCause waiting = standing(who, begin, end);
    Nanoseconds until = end;
    const auto piece = [&](Nanoseconds from, BubbleCause cause) {
      from = std::max(from, begin);
      if (from < until) pieces_.push_back({who, from, until, cause, before});
      until = std::min(until, from);
    };
    bool straggler = false;
    Nanoseconds uneven = end;  // the time from here to `until` is expert imbalance
    const auto step = [&](std::int32_t span) {
      const Binding& binding = bindings_[static_cast<std::size_t>(span)];
      if (binding.peer < 0 || role_of(at(binding.peer).who) != role_of(at(span).who)) return binding.before;
      if (!has_more_rows(binding.before, at(span).ready, at(binding.peer).ready))
        straggler = true;
      else
        uneven = uneven < until ? std::min(uneven, at(span).ready) : at(span).ready;
      return binding.before;
    };
    const auto wait = [&](Nanoseconds from) {
      if (uneven < until) piece(std::max(from, uneven), BubbleCause::Imbalance);
      piece(from, straggler ? BubbleCause::Straggler : waiting);
    };
    std::int32_t span = before >= 0 ? step(before) : last_span_;
    for (std::size_t steps = 0; span >= 0 && until > begin && steps <= trace_.spans.size(); ++steps) {
      wait(at(span).end);
      if (on_the_wire(at(span)))
        piece(at(span).begin, BubbleCause::ExposedCommunication);
      else
        wait(at(span).begin);
      span = step(span);
    }
    wait(begin);
    for (auto p = pieces_.rbegin(); p != pieces_.rend(); ++p) hand_over(*p);
  }

  // Whether experts with more rows than those of other ranks computed at least half of the time from `from` to `to`: followed back from
  // `span`, the last before `to`.
  bool has_more_rows(std::int32_t span, Nanoseconds from, Nanoseconds to) const {
    Nanoseconds computed = {};
    for (std::size_t steps = 0; span >= 0 && at(span).end > from && steps <= trace_.spans.size(); ++steps) {
      if (of_uneven_experts(at(span))) computed += std::min(at(span).end, to) - std::max(at(span).begin, from);
      span = bindings_[static_cast<std::size_t>(span)].before;
    }
    return computed > Nanoseconds{} && computed + computed >= to - from;
  }

  bool of_uneven_experts(const Span& span) const {
    const SegmentId segment = role(span.who).actions[static_cast<std::size_t>(span.action)].segment;
    const std::vector<Instruction>& all = plan_.segments[segment.index()].instructions;
    int left = span.count;
    for (auto i = static_cast<std::size_t>(span.instruction); left > 0 && i < all.size(); ++i) {
      if (all[i].stream != span.stream) continue;
      --left;
      const auto* compute = std::get_if<Compute>(&all[i].what);
      const auto* product = compute ? std::get_if<ops::GroupedMatMul>(&compute->op) : nullptr;
      if (product && (product->others < 1 || trace_.origin == Origin::Measured)) return true;
    }
    return false;
  }

  BubbleCause standing(ClassId who, Nanoseconds begin, Nanoseconds end) const {
    const Milestones& own = milestones_[who.index()];
    if (end <= own.first_backward) return BubbleCause::WarmUp;
    if (begin >= own.last_work) return BubbleCause::Barrier;
    return begin >= own.last_forward ? BubbleCause::Drain : BubbleCause::Dependency;
  }

  bool on_the_wire(const Span& span) const {
    const Role& program = role(span.who);
    const SegmentId segment = program.actions[static_cast<std::size_t>(span.action)].segment;
    const auto& what = plan_.segments[segment.index()].instructions[static_cast<std::size_t>(span.instruction)].what;
    if (std::holds_alternative<Exchange>(what) || std::holds_alternative<Copy>(what)) return true;
    return std::holds_alternative<Collective>(what) && program.streams[span.stream.index()].kind != StreamKind::Compute;
  }

  // Idle time after the rank's last work is drain up to the time by which the last of all ranks ends its work later.
  void hand_over(Bubble piece) {
    if (piece.cause == BubbleCause::Barrier) {
      const Nanoseconds lead = last_work_ - milestones_[piece.who.index()].last_work;
      const Nanoseconds drain = std::min(piece.end - piece.begin, std::max(lead - drained_, Nanoseconds{}));
      drained_ += drain;
      Bubble front = piece;
      front.end = piece.begin + drain;
      front.cause = BubbleCause::Drain;
      append(front);
      piece.begin = front.end;
    }
    append(piece);
  }

  void append(const Bubble& piece) {
    if (piece.begin == piece.end) return;
    if (!bubbles_.empty()) {
      Bubble& last = bubbles_.back();
      if (last.who == piece.who && last.end == piece.begin && last.cause == piece.cause && last.before == piece.before) {
        last.end = piece.end;
        return;
      }
    }
    bubbles_.push_back(piece);
  }

  const Plan& plan_;
  const Trace& trace_;
  const std::vector<Binding>& bindings_;
  std::vector<Milestones> milestones_;  // [class]
  Nanoseconds last_work_ = {};          // of all classes
  Nanoseconds drained_ = {};            // of the current class, after its last work
  std::int32_t last_span_ = -1;         // of the current class, on any stream
  std::vector<std::int32_t> order_ = {};
  std::vector<Bubble> pieces_ = {};
  std::vector<Bubble> bubbles_ = {};
};

}  // namespace

std::vector<Bubble> find_bubbles(const Plan& plan, const Trace& trace, const std::vector<Binding>& bindings) {
  return BubbleSearch(plan, trace, bindings).search();
}

std::vector<Bubble> whole_bubbles(const std::vector<Bubble>& pieces) {
  std::vector<Bubble> whole;
  std::array<std::int64_t, kBubbleCauses> shares = {};
  for (const Bubble& piece : pieces) {
    if (whole.empty() || whole.back().who != piece.who || whole.back().end != piece.begin ||
        whole.back().before != piece.before) {
      whole.push_back(piece);
      shares = {};
    }
    Bubble& bubble = whole.back();
    bubble.end = piece.end;
    shares[static_cast<std::size_t>(piece.cause)] += (piece.end - piece.begin).value;
    bubble.cause = static_cast<BubbleCause>(std::max_element(shares.begin(), shares.end()) - shares.begin());
  }
  return whole;
}

}  // namespace foreshard
