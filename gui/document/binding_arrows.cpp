#include "gui/document/binding_arrows.h"

#include <algorithm>
#include <map>

#include "gui/document/picked_range.h"

namespace foreshard {

std::vector<ChainHop> binding_hops(const Document& document, Picked picked, Arrows arrows, int most) {
  if (arrows == Arrows::None || arrows == Arrows::Critical) return {};
  std::vector<ChainHop> hops;
  std::int32_t span = span_of(document, picked);
  if (arrows == Arrows::Direct) most = 1;
  const std::size_t limit = std::min(static_cast<std::size_t>(std::max(most, 0)), document.bindings.size());
  while (span >= 0 && hops.size() < limit) {
    const Binding& binding = document.bindings[static_cast<std::size_t>(span)];
    if (binding.before < 0) break;
    hops.push_back({binding.before, span});
    span = binding.before;
  }
  return hops;
}

namespace {

// Merges consecutive stretches that are too short to be seen until together they are long enough.
class PathThinning {
 public:
  explicit PathThinning(Nanoseconds least) : least_(least) {}

  void add(const PathStretch& stretch) {
    if (stretch.end - stretch.begin >= least_) {
      flush();
      return append(stretch);
    }
    if (held_.empty()) begin_ = stretch.begin;
    held_[stretch.who] += stretch.end - stretch.begin;
    end_ = stretch.end;
    if (end_ - begin_ >= least_) flush();
  }

  std::vector<PathStretch> done() {
    flush();
    return std::move(kept_);
  }

 private:
  void flush() {
    if (held_.empty()) return;
    const auto most = std::ranges::max_element(held_, {}, [](const auto& one) { return one.second; });
    append({most->first, begin_, end_});
    held_.clear();
  }

  void append(const PathStretch& stretch) {
    if (!kept_.empty() && kept_.back().who == stretch.who)
      kept_.back().end = stretch.end;
    else
      kept_.push_back(stretch);
  }

  Nanoseconds least_;
  std::map<ClassId, Nanoseconds> held_ = {};
  Nanoseconds begin_ = {}, end_ = {};
  std::vector<PathStretch> kept_ = {};
};

}  // namespace

std::vector<PathStretch> critical_stretches(const Document& document, TimeRange visible, Nanoseconds least) {
  const std::vector<ChainStep>& chain = document.critical;
  PathThinning thinning(std::max(least, Nanoseconds{1}));
  auto link = std::ranges::upper_bound(chain, visible.begin, {}, &ChainStep::end);
  while (link != chain.end() && link->begin < visible.end) {
    const auto who = [&] { return document.trace().spans[static_cast<std::size_t>(link->span)].who; };
    PathStretch stretch{who(), link->begin, link->end};
    for (++link; link != chain.end() && link->begin < visible.end && who() == stretch.who; ++link) stretch.end = link->end;
    if (stretch.end > stretch.begin) thinning.add(stretch);
  }
  return thinning.done();
}

}  // namespace foreshard
