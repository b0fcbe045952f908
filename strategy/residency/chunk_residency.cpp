#include "strategy/residency/chunk_residency.h"

#include <algorithm>
#include <cmath>

#include "core/base/count_text.h"

namespace foreshard {

namespace {

// Which chunks are on the device, while the planners go through the uses in order. Collects the stays.
class ChunkWalk {
 public:
  ChunkWalk(const std::vector<ParameterUnit>& chunks, const std::vector<UnitUse>& uses)
      : chunks_(chunks), uses_(uses), stay_(chunks.size(), kAbsent), moments_(chunks.size()) {
    for (int moment = 0; moment < step(); ++moment) moments_[used(moment)].push_back(moment);
  }

  int step() const { return static_cast<int>(uses_.size()); }
  std::size_t used(int moment) const { return static_cast<std::size_t>(uses_[static_cast<std::size_t>(moment)].unit); }
  bool is_there(std::size_t chunk) const { return stay_[chunk] != kAbsent; }
  std::int64_t size(std::size_t chunk) const { return chunks_[chunk].elements; }
  std::int64_t total() const { return total_; }  // elements on the device

  // The first use of the chunk at `moment` or later; step(): there is none.
  int next_use(std::size_t chunk, int moment) const {
    const auto found = std::lower_bound(moments_[chunk].begin(), moments_[chunk].end(), moment);
    return found == moments_[chunk].end() ? step() : *found;
  }

  void bring(std::size_t chunk, int moment) {
    stay_[chunk] = static_cast<int>(residency_.stays.size());
    residency_.stays.push_back({static_cast<int>(chunk), moment, next_use(chunk, moment), step()});
    total_ += size(chunk);
  }

  // Before the use at `moment`: the chunk's stay ends with the moment before.
  void evict(std::size_t chunk, int moment) { leave(chunk, moment - 1); }

  void leave_after_last_use(int moment) {
    if (next_use(used(moment), moment + 1) == step()) leave(used(moment), moment);
  }

  // The idle chunk to evict before the use at `moment`; the number of chunks: there is none.
  std::size_t choose(Evict rule, int moment) const {
    std::size_t chosen = chunks_.size();
    for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
      if (!is_there(chunk) || chunk == used(moment)) continue;
      const bool first = chosen == chunks_.size();
      if (first || (rule == Evict::FarthestNextUse && next_use(chunk, moment) > next_use(chosen, moment))) chosen = chunk;
    }
    return chosen;
  }

  Residency result() {
    std::erase_if(residency_.stays, [](const Stay& stay) { return stay.released_after < stay.first_use; });
    return std::move(residency_);
  }

 private:
  static constexpr int kAbsent = -1;  // values of stay_: this, or an index into residency_.stays

  void leave(std::size_t chunk, int moment) {
    residency_.stays[static_cast<std::size_t>(stay_[chunk])].released_after = moment;
    stay_[chunk] = kAbsent;
    total_ -= size(chunk);
  }

  const std::vector<ParameterUnit>& chunks_;
  const std::vector<UnitUse>& uses_;
  std::vector<int> stay_ = {};
  std::vector<std::vector<int>> moments_ = {};  // [chunk]: the moments of its uses
  std::int64_t total_ = 0;
  Residency residency_ = {};
};

// Brings chunks of the next uses as long as they fit beside the chunks on the device at every moment until they are used.
void prefetch(ChunkWalk& walk, const BudgetRule& rule, int moment) {
  int looked_at = 0;
  std::int64_t room = rule.budget[static_cast<std::size_t>(moment)] - walk.total();
  std::vector<std::size_t> seen = {walk.used(moment)};
  for (int later = moment + 1; later < walk.step() && looked_at < rule.prefetch; ++later) {
    room = std::min(room, rule.budget[static_cast<std::size_t>(later)] - walk.total());
    const std::size_t next = walk.used(later);
    if (std::find(seen.begin(), seen.end(), next) != seen.end()) continue;
    seen.push_back(next);
    ++looked_at;
    if (walk.is_there(next)) continue;
    if (walk.size(next) > room) return;
    walk.bring(next, moment);
    room -= walk.size(next);
  }
}

Infeasible too_small(const std::string& what, std::int64_t needed, std::int64_t budget) {
  return {what + " has " + count_text(needed) + " elements, the budget is " + count_text(budget),
          {"smaller chunks", "a larger budget"}};
}

}  // namespace

Residency fixed_share_residency(const std::vector<ParameterUnit>& chunks, const std::vector<UnitUse>& uses, std::int64_t kept) {
  ChunkWalk walk(chunks, uses);
  for (int moment = 0; moment < walk.step(); ++moment) {
    const std::size_t used = walk.used(moment);
    const auto idle = [&] { return walk.total() - (walk.is_there(used) ? walk.size(used) : 0); };
    while (idle() > kept) walk.evict(walk.choose(Evict::InOrder, moment), moment);
    if (!walk.is_there(used)) walk.bring(used, moment);
    walk.leave_after_last_use(moment);
  }
  return walk.result();
}

std::variant<Residency, Infeasible> budget_residency(const std::vector<ParameterUnit>& chunks, const std::vector<UnitUse>& uses,
                                                     const BudgetRule& rule) {
  FS_ASSERT(rule.budget.size() == uses.size());
  ChunkWalk walk(chunks, uses);
  for (std::size_t chunk = 0; chunk < static_cast<std::size_t>(rule.there_at_start); ++chunk)
    if (walk.next_use(chunk, 0) < walk.step()) walk.bring(chunk, Stay::kBeforeStep);
  if (walk.step() > 0 && walk.total() > rule.budget[0])
    return too_small("what is on the device at the start", walk.total(), rule.budget[0]);
  for (int moment = 0; moment < walk.step(); ++moment) {
    const std::size_t used = walk.used(moment);
    const std::int64_t budget = rule.budget[static_cast<std::size_t>(moment)];
    if (walk.size(used) > budget) return too_small(chunks[used].name, walk.size(used), budget);
    const auto needed = [&] { return walk.total() + (walk.is_there(used) ? 0 : walk.size(used)); };
    while (needed() > budget) walk.evict(walk.choose(rule.evict, moment), moment);
    if (!walk.is_there(used)) walk.bring(used, moment);
    prefetch(walk, rule, moment);
    walk.leave_after_last_use(moment);
  }
  return walk.result();
}

ElementCurve traced_budget(Bytes device, double cap_ratio, const std::vector<Bytes>& others, std::int64_t element_bytes) {
  const auto cap = static_cast<std::int64_t>(std::floor(cap_ratio * static_cast<double>(device.value)));
  ElementCurve budget;
  for (std::size_t moment = 0; moment < others.size(); ++moment) {
    const Bytes next = moment + 1 < others.size() ? others[moment + 1] : others[moment];
    budget.push_back(std::max<std::int64_t>(cap - std::max(others[moment], next).value, 0) / element_bytes);
  }
  return budget;
}

ElementCurve warmup_budget(Bytes device, double warmup_ratio, std::size_t moments, std::int64_t element_bytes) {
  const auto share = static_cast<std::int64_t>(std::floor(warmup_ratio * static_cast<double>(device.value)));
  return ElementCurve(moments, share / element_bytes);
}

int optimizer_chunks_on_device(Bytes device, Bytes others_peak, Bytes parameter_chunks, std::int64_t chunk_elements) {
  const double room = 0.8 * static_cast<double>(device.value) - static_cast<double>((others_peak + parameter_chunks).value);
  return room <= 0 ? 0 : static_cast<int>(room / (12.0 * static_cast<double>(chunk_elements)) * 0.8);
}

}  // namespace foreshard
