// What screening keeps of the points it sees: the best families, each with its best variants. Internal to strategy/.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "strategy/search/search.h"

namespace foreshard {

// What an objective ranks by: seconds, bytes or GPU seconds; smaller is better.
double score(Objective objective, const Point& point, double time, double peak);

struct Kept {
  double score = 0, time = 0;
  std::int64_t order = 0;  // where it stands in the space: equal scores keep one order whatever the threads do
  Point point = {};
  Screened screened = {};
  bool operator<(const Kept& other) const {
    return std::tie(score, time, order) < std::tie(other.score, other.time, other.order);
  }
};

// Points with the same degrees, micro-batch and schedule: they differ in ZeRO, overlap, recomputation, sequence parallelism and
// rank order. The best first. What the screen gets wrong it gets wrong for a ZeRO stage as a whole, so none may crowd out the
// others: of one stage at most `most_of_zero` are kept.
struct Family {
  std::vector<Kept> variants = {};
  bool operator<(const Family& other) const { return variants.front() < other.variants.front(); }
  const Kept& best_of(std::int8_t zero) const {  // there is one
    return *std::find_if(variants.begin(), variants.end(), [&](const Kept& kept) { return kept.point.zero == zero; });
  }
  static constexpr std::size_t kMost = 16, kMostOfZero = 6;  // for a search
  static constexpr double kNear = 1.04;                      // variants this far behind the best of their ZeRO stage have lost
  static constexpr double kNearStage = 1.2;                  // ZeRO stages this far behind the best of all have lost
  // Whose place another one of that ZeRO stage would take; end: there is room.
  std::vector<Kept>::const_iterator last(std::int8_t zero, std::size_t most = kMost,
                                         std::size_t most_of_zero = kMostOfZero) const {
    const auto alike = [&](const Kept& other) { return other.point.zero == zero; };
    if (static_cast<std::size_t>(std::count_if(variants.begin(), variants.end(), alike)) >= most_of_zero)
      return std::find_if(variants.rbegin(), variants.rend(), alike).base() - 1;
    return variants.size() >= most ? variants.end() - 1 : variants.end();
  }
  void offer(const Kept& kept, std::size_t most = kMost, std::size_t most_of_zero = kMostOfZero) {
    if (const auto place = last(kept.point.zero, most, most_of_zero); place != variants.end()) {
      if (!(kept < *place)) return;
      variants.erase(place);
    }
    variants.insert(std::upper_bound(variants.begin(), variants.end(), kept), kept);
  }
};

// Layers recomputed one by one, stages with degrees of their own, and layers split in more than three runs (2,3x14,2) are not.
bool is_simple(const Strategy& strategy);
inline bool better(const Candidate& a, const Candidate& b) { return a.score * a.handicap < b.score * b.handicap; }
// Of two with the same degrees, micro-batch and schedule.
Candidate better_of(Candidate a, Candidate b);
bool same_family(const Point& a, const Point& b);
std::vector<Candidate> best_of_families(const std::vector<Candidate>& all);
// In the order of scores; in the place of one of the same family, unless that is no worse.
void take_place(std::vector<Candidate>& ranked, const Candidate& candidate);

// The best families that one thread has seen.
class BestFamilies {
 public:
  explicit BestFamilies(int most) : most_(static_cast<std::size_t>(std::max(1, most))) {}
  // No family whose best is above it is kept.
  double worst() const { return heap_.size() < most_ ? 1e300 : heap_.front().variants.front().score; }
  double best() const { return best_; }
  void offer(Family family) {
    if (family.variants.empty()) return;
    best_ = std::min(best_, family.variants.front().score);
    if (heap_.size() >= most_) {
      if (!(family < heap_.front())) return;
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.pop_back();
    }
    heap_.push_back(std::move(family));
    std::push_heap(heap_.begin(), heap_.end());
  }
  const std::vector<Family>& all() const { return heap_; }

 private:
  std::size_t most_;
  double best_ = 1e300;
  std::vector<Family> heap_ = {};
};

inline constexpr double kNever = 1e300;
inline constexpr int kMemoryBins = 128;  // for the Pareto front

// Points from all over the space, the same whatever the threads do: those whose numbers hash to the smallest values.
class Sample {
 public:
  explicit Sample(int most) : most_(static_cast<std::size_t>(std::max(0, most))) {}
  void offer(const Kept& kept) {
    if (most_ == 0) return;
    const std::uint64_t hash = hashed(kept.order);
    if (found_.size() >= most_ && hash > found_.rbegin()->first) return;
    found_.emplace(hash, kept);
    if (found_.size() > most_) found_.erase(std::prev(found_.end()));
  }
  void offer(const Sample& other) {
    for (const auto& [hash, kept] : other.found_) offer(kept);
  }
  const std::map<std::uint64_t, Kept>& all() const { return found_; }

 private:
  // Sebastiano Vigna's splitmix64: numbers in a row become numbers all over the place.
  static std::uint64_t hashed(std::int64_t order) {
    std::uint64_t z = static_cast<std::uint64_t>(order) + 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::size_t most_;
  std::map<std::uint64_t, Kept> found_ = {};
};

struct ScreeningTotals {
  ScreeningTotals(int most, int filled, int samples) : best(most), filled(filled), sample(samples) {}
  BestFamilies best;
  BestFamilies filled;                                     // of points with --recompute best
  std::array<std::optional<Kept>, kMemoryBins> bins = {};  // fastest by memory
  std::int64_t enumerated = 0, evaluated = 0;
  double bound = kNever;  // of all that seem to fit
  PrunedBy pruned = {};
  std::map<const char*, std::int64_t> refusals = {};  // by a framework
  Sample sample;
  Kept without_memory_limit{.score = kNever}, without_framework{.score = kNever};
};

bool bounded(const SearchOptions& options);  // what is slower than all that is kept is passed over
// The frameworks recompute layers or modules, not what is best inside a layer; nor is it the least memory.
bool tries_schedules(const SearchOptions& options);
void add_up(const std::vector<ScreeningTotals>& tallies, SearchResult& result);  // counts, and what was passed over

std::vector<Candidate> front_of(std::vector<Candidate> all);  // by time: each needs less memory than all before

// All threads together: the best `most` families in order, without variants that another thread would have passed over.
std::vector<Family> merged(const std::vector<ScreeningTotals>& tallies, BestFamilies ScreeningTotals::*which, int most);

// Of candidates with their memory filled those near the `best` score: all other variants of their families that the screen sees near
// the best of their ZeRO stage, and no further than `enough`.
std::vector<Kept> near_variants(const std::vector<Family>& families, std::span<const Candidate> of, double best, double enough);

// Likewise the fastest of every memory bin, and a sample of `most` points in the order of the space.
std::vector<Family> merged_bins(const std::vector<ScreeningTotals>& tallies);
std::vector<Kept> merged_sample(const std::vector<ScreeningTotals>& tallies, int most);

}  // namespace foreshard
