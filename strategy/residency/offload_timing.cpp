#include "strategy/residency/offload_timing.h"

#include <algorithm>

#include "core/base/at.h"
#include "core/base/error.h"
#include "strategy/residency/chunks.h"
#include "strategy/residency/live_intervals.h"

namespace foreshard {

Bytes OffloadJob::upload(int region) const {
  return regions[static_cast<std::size_t>(region)].parameters * (uploads_master ? 2 : 1);
}

Bytes OffloadJob::staging() const {
  Bytes largest;
  for (const OffloadRegion& region : regions) largest = std::max(largest, region.parameters);
  return uploads_master ? 2 * largest : Bytes{};
}

namespace {

class RegionPlayer {
 public:
  RegionPlayer(const OffloadJob& job, const std::vector<RegionChoice>& choices)
      : job_(job),
        choices_(choices),
        fetches_(choices.size(), -1),
        arrived_(choices.size()),
        ready_(choices.size()),
        began_(choices.size()) {
    FS_ASSERT(choices.size() == job.regions.size() && !choices.empty() && choices.back() == RegionChoice{});
    for (int r = 0; r < count(); ++r) {
      const int by = choices_[at(r)].fetched_by;
      if (by == RegionChoice::kKept || by == r) continue;
      FS_ASSERT(by > r && by < count() && fetches_[at(by)] < 0);
      fetches_[at(by)] = r;
    }
  }

  OffloadTiming play() {
    upload(0, {});
    for (int r = 0; r < count(); ++r) forward(r);
    for (int r = count() - 1; r >= 0; --r) backward(r);
    return {max(compute_, down_), live_.peak() + job_.staging(), live_.byte_seconds()};
  }

 private:
  int count() const { return static_cast<int>(choices_.size()); }
  bool offloaded(int r) const { return choices_[at(r)].fetched_by != RegionChoice::kKept; }

  // Copies a region's parameters to the device, at `issued` at the earliest. They take memory from the start of the copy.
  void upload(int r, Seconds issued) {
    arrived_[at(r)] = max(up_, issued);
    up_ = arrived_[at(r)] + job_.link.time(job_.upload(r));
    ready_[at(r)] = up_;
  }
  void leave(int r, Seconds when) { live_.add(arrived_[at(r)], when, job_.regions[at(r)].parameters); }

  void forward(int r) {
    const Seconds start = max(compute_, ready_[at(r)]);
    if (r + 1 < count()) upload(r + 1, start);
    began_[at(r)] = start;
    compute_ = start + job_.regions[at(r)].forward;
    if (offloaded(r)) leave(r, compute_);
  }

  void backward(int r) {
    const OffloadRegion& region = job_.regions[at(r)];
    if (choices_[at(r)].fetched_by == r) upload(r, compute_);
    const Seconds start = max(compute_, ready_[at(r)]);
    if (fetches_[at(r)] >= 0) upload(fetches_[at(r)], start);
    compute_ = start + region.backward;
    live_.add(began_[at(r)], compute_, region.activations);
    down_ = max(down_, compute_) + job_.link.time(region.parameters);
    if (job_.gradient_in_place) {
      leave(r, down_);
    } else {
      leave(r, compute_);
      if (!job_.gradient_apart) live_.add(start, down_, region.parameters);
    }
  }

  const OffloadJob& job_;
  const std::vector<RegionChoice>& choices_;
  std::vector<int> fetches_ = {};  // [region]: the region whose upload begins with its backward; -1: none
  std::vector<Seconds> arrived_ = {}, ready_ = {},
                       began_ = {};             // [region]: start and end of its last copy; start of its forward
  Seconds compute_ = {}, up_ = {}, down_ = {};  // when the compute stream and the two copy engines are free
  LiveIntervals live_ = {};
};

}  // namespace

OffloadTiming offload_timing(const OffloadJob& job, const std::vector<RegionChoice>& choices) {
  return RegionPlayer(job, choices).play();
}

std::vector<OffloadRegion> build_regions(const std::vector<OffloadRegion>& operations, const RegionSearch& search) {
  std::vector<std::int64_t> sizes;
  std::int64_t largest = search.least.value;
  for (const OffloadRegion& operation : operations) {
    sizes.push_back(operation.parameters.value);
    largest = std::max(largest, operation.parameters.value);
  }
  const Bytes block = {least_padding(sizes, largest, search.range.value, search.step.value)};
  std::vector<OffloadRegion> regions;
  for (const OffloadRegion& operation : operations) {
    if (regions.empty() || regions.back().parameters + operation.parameters > block) regions.emplace_back();
    OffloadRegion& region = regions.back();
    region.parameters += operation.parameters;
    region.activations += operation.activations;
    region.forward += operation.forward;
    region.backward += operation.backward;
  }
  return regions;
}

std::vector<ParameterUnit> region_units(const OffloadJob& job) {
  std::vector<ParameterUnit> units;
  for (const OffloadRegion& region : job.regions)
    units.push_back({"region " + std::to_string(units.size()), region.parameters.value / 2});
  return units;
}

std::vector<int> regions_of_least(const std::vector<Bytes>& operations, Bytes least) {
  std::vector<int> regions;
  int now = 0;
  Bytes here = {};
  for (const Bytes bytes : operations) {
    if (here > Bytes{} && here >= least) ++now, here = {};
    regions.push_back(now);
    here += bytes;
  }
  if (here >= least || now == 0) return regions;
  std::ranges::replace(regions, now, now - 1);
  return regions;
}

namespace {

struct Visits {  // moments of one pass
  int first = -1, last = -1;
  void add(int moment) { first = first < 0 ? moment : first, last = moment; }
};

}  // namespace

Residency region_residency(const std::vector<RegionChoice>& choices, const std::vector<UnitUse>& uses) {
  Residency residency;
  std::vector<Visits> forward(choices.size()), backward(choices.size());
  for (int moment = 0; moment < static_cast<int>(uses.size()); ++moment) {
    const UnitUse& use = uses[at(moment)];
    (use.phase == Phase::Forward ? forward : backward)[at(use.unit)].add(moment);
  }
  int before = -1;  // the first moment of the region before
  for (int r = 0; r < static_cast<int>(choices.size()); ++r) {
    const int by = choices[at(r)].fetched_by;
    const Visits &there = forward[at(r)], &again = backward[at(r)];
    if (there.first < 0) continue;  // layers without parameters
    const int brought = before < 0 ? there.first : before;
    before = there.first;
    const bool kept = by == RegionChoice::kKept && again.first >= 0;
    residency.stays.push_back({r, brought, there.first, kept ? again.last : there.last});
    if (kept || again.first < 0) continue;
    const int from = backward[at(by)].first;
    residency.stays.push_back({r, from < 0 ? again.first : std::min(from, again.first), again.first, again.last});
  }
  // Within a moment what is used first comes first: a region that its own backward fetches, before those that this backward fetches ahead.
  std::stable_sort(residency.stays.begin(), residency.stays.end(), [](const Stay& a, const Stay& b) {
    return a.brought != b.brought ? a.brought < b.brought : a.first_use < b.first_use;
  });
  return residency;
}

}  // namespace foreshard
