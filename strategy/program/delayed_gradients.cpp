#include "strategy/program/delayed_gradients.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/at.h"
#include "core/base/error.h"
#include "strategy/program/chunk_frame.h"

namespace foreshard {

namespace {

bool same_block(const Use& use, const Block& block) { return use.buffer == block.buffer && use.slot == block.slot; }

bool uses(const Instruction& run, const Block& block) {
  const auto is_it = [&](const Use& use) { return same_block(use, block); };
  return std::ranges::any_of(run.reads, is_it) || std::ranges::any_of(run.writes, is_it) ||
         std::ranges::find(run.acquires, block) != run.acquires.end() ||
         std::ranges::find(run.releases, block) != run.releases.end();
}

bool overlap(const Use& a, const Use& b) {
  const auto end = [](const Use& use) {
    return use.length ? (use.from + *use.length).value : std::numeric_limits<std::int64_t>::max();
  };
  return same_block(a, {b.buffer, b.slot}) && a.from.value < end(b) && b.from.value < end(a);
}

bool any_overlap(const std::vector<Use>& a, const std::vector<Use>& b) {
  return std::ranges::any_of(a,
                             [&](const Use& x) { return std::ranges::any_of(b, [&](const Use& y) { return overlap(x, y); }); });
}

bool share_events(const Instruction& a, const Instruction& b) {
  const auto named = [](const Instruction& run, EventId event) {
    const auto is_it = [&](const EventUse& use) { return use.event == event; };
    return std::ranges::any_of(run.waits, is_it) || std::ranges::any_of(run.records, is_it);
  };
  const auto in_a = [&](const EventUse& use) { return named(a, use.event); };
  return std::ranges::any_of(b.waits, in_a) || std::ranges::any_of(b.records, in_a);
}

// Whether `late` reads what `early` writes, writes what it uses, or takes over its place.
bool needs(const Instruction& late, const Instruction& early) {
  return any_overlap(early.writes, late.reads) || any_overlap(early.writes, late.writes) ||
         any_overlap(early.reads, late.writes) ||
         std::ranges::any_of(late.acquires, [&](const Block& block) { return uses(early, block); });
}

// Whether `late` may not run before `early`, which stands before it and has index `at_early`. Releases of blocks that `early` reads do not
// count: then `early` releases them instead.
bool must_follow(const Instruction& late, const Instruction& early, std::int32_t at_early) {
  if (std::ranges::find(late.after, at_early) != late.after.end() || share_events(late, early)) return true;
  if (late.stream == early.stream && late.stream != kComputeStream) return true;
  if (needs(late, early)) return true;
  const auto used_early = [&](const Block& block) { return uses(early, block); };
  const bool hands_over = late.stream == kComputeStream && early.stream == kComputeStream && late.records.empty();
  if (!hands_over && std::ranges::any_of(late.releases, used_early)) return true;
  if (early.waits.empty() && early.acquires.empty())
    return false;  // else also for what is in a place that it opens or waits for
  const auto used_late = [&](const Use& use) { return uses(late, {use.buffer, use.slot}); };
  return std::ranges::any_of(early.writes, used_late) || std::ranges::any_of(early.reads, used_late);
}

class Delay {
 public:
  Delay(Segment whole, StreamId communication, const std::vector<LayerId>& layers)
      : whole_(std::move(whole)), communication_(communication), layers_(layers), place_(whole_.instructions.size(), -1) {}

  Segment take() {
    Segment out{.name = whole_.name, .params = whole_.params};
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(place_.size()); ++i) go(i);
    emit_held();
    out.instructions = std::move(all_);
    return out;
  }

 private:
  Instruction& run(std::int32_t i) { return whole_.instructions[at(i)]; }

  bool is_delayed(const Instruction& it) const {
    const auto* what = std::get_if<Compute>(&it.what);
    return what && what->phase == Phase::WeightGrad && it.stream == kComputeStream &&
           std::ranges::find(layers_, it.layer) != layers_.end();
  }
  // The communication that weight gradients are to run beside.
  bool is_hidden(const Instruction& it) const {
    const auto* exchange = std::get_if<Exchange>(&it.what);
    if (it.stream == communication_) return exchange || std::holds_alternative<Collective>(it.what);
    return exchange && exchange->to && it.stream != kComputeStream;
  }

  void go(std::int32_t i) {
    if (is_delayed(run(i))) {
      if (!held_.empty() && layer_ != run(i).layer) emit_held();
      layer_ = run(i).layer;
      return held_.push_back(i);
    }
    std::vector<char> before(held_.size(), 0);  // [held]: has to come before i
    for (std::size_t k = held_.size(); k-- > 0;) {
      before[k] = must_follow(run(i), run(held_[k]), held_[k]);
      for (std::size_t later = k + 1; later < held_.size() && !before[k]; ++later)
        before[k] = before[later] && must_follow(run(held_[later]), run(held_[k]), held_[k]);
    }
    const bool hidden = is_hidden(run(i));
    const bool depends = std::ranges::find(before, 1) != before.end();
    if (depends && !hidden && run(i).stream != kComputeStream) return held_.push_back(i);  // a sum of what is delayed
    const std::vector<std::int32_t> held = std::exchange(held_, {});
    std::vector<std::int32_t> now;
    for (std::size_t k = 0; k < held.size(); ++k) (before[k] ? now : held_).push_back(held[k]);
    for (const std::int32_t each : now) emit(each);
    emit(i);
    if (hidden) emit_held();
  }

  void emit_held() {
    for (const std::int32_t each : std::exchange(held_, {})) emit(each);
  }

  void emit(std::int32_t i) {
    Instruction& it = run(i);
    std::erase_if(it.releases, [&](const Block& block) {  // the last that is still to come releases it
      const auto last = std::find_if(held_.rbegin(), held_.rend(), [&](std::int32_t each) { return uses(run(each), block); });
      if (last != held_.rend()) run(*last).releases.push_back(block);
      return last != held_.rend();
    });
    for (std::int32_t& earlier : it.after) {
      earlier = place_[at(earlier)];
      FS_ASSERT(earlier >= 0);
    }
    if (it.stream != kComputeStream) wait_for_delayed(i);
    if (is_delayed(it)) delayed_.push_back(i);
    place_[at(i)] = static_cast<std::int32_t>(all_.size());
    all_.push_back(it);
  }

  // Of several instructions of a stream `after` names the newest, which no longer is the newest if it is not delayed.
  void wait_for_delayed(std::int32_t i) {
    Instruction& it = run(i);
    for (const std::int32_t earlier : delayed_) {
      const auto releases = [&](const Block& block) { return uses(run(earlier), block); };
      if (!needs(it, run(earlier)) && std::ranges::none_of(it.releases, releases)) continue;
      const std::int32_t place = place_[at(earlier)];
      const auto known = std::ranges::find_if(it.after, [&](std::int32_t k) { return all_[at(k)].stream == kComputeStream; });
      if (known == it.after.end())
        it.after.push_back(place);
      else
        *known = std::max(*known, place);
    }
  }

  Segment whole_;
  StreamId communication_;
  const std::vector<LayerId>& layers_;
  LayerId layer_ = {};                      // of the newest weight gradient that is delayed
  std::vector<std::int32_t> held_ = {};     // instructions to come, in their order
  std::vector<std::int32_t> delayed_ = {};  // weight gradients that have come
  std::vector<std::int32_t> place_;         // [instruction]: where it is among all; -1: not yet
  std::vector<Instruction> all_ = {};
};

}  // namespace

Segment delay_weight_gradients(Segment whole, StreamId communication, const std::vector<LayerId>& layers) {
  return Delay(std::move(whole), communication, layers).take();
}

}  // namespace foreshard
