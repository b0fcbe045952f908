// The points that screening keeps: the best families, each with its best variants. A family is the set of points with the same
// degrees, micro-batch and schedule. Internal to strategy/.
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
  double score = 0, time = 0;  // by the screen; time in seconds
  // Its number in the space: breaks ties between equal scores the same way for any number of threads.
  std::int64_t order = 0;
  Point point = {};
  Screened screened = {};
  bool operator<(const Kept& other) const {
    return std::tie(score, time, order) < std::tie(other.score, other.time, other.order);
  }
};

// Points with the same degrees, micro-batch and schedule, best first. They differ in ZeRO, overlap, recomputation, sequence
// parallelism and rank order. The screen's errors are common to all variants of a ZeRO stage; so a stage keeps at most
// `most_of_zero` variants, and no stage can displace all others.
struct Family {
  std::vector<Kept> variants = {};
  bool operator<(const Family& other) const { return variants.front() < other.variants.front(); }
  const Kept& best_of(std::int8_t zero) const {  // of a ZeRO stage that has a variant
    return *std::find_if(variants.begin(), variants.end(), [&](const Kept& kept) { return kept.point.zero == zero; });
  }
  static constexpr std::size_t kMost = 16, kMostOfZero = 6;  // variants that a search keeps of a family, and of its ZeRO stage
  // A variant is not refined when its score exceeds the best of its ZeRO stage kNear times, or the best of the family kNearStage times.
  static constexpr double kNear = 1.04;
  static constexpr double kNearStage = 1.2;
  // The variant that a new one of ZeRO stage `zero` would replace; end(): there is room without replacing any.
  std::vector<Kept>::const_iterator last(std::int8_t zero, std::size_t most = kMost,
                                         std::size_t most_of_zero = kMostOfZero) const {
    const auto alike = [&](const Kept& other) { return other.point.zero == zero; };
    if (static_cast<std::size_t>(std::count_if(variants.begin(), variants.end(), alike)) >= most_of_zero)
      return std::find_if(variants.rbegin(), variants.rend(), alike).base() - 1;
    return variants.size() >= most ? variants.end() - 1 : variants.end();
  }
  // Keeps the variant where there is room, or where it is better than the one it replaces.
  void offer(const Kept& kept, std::size_t most = kMost, std::size_t most_of_zero = kMostOfZero) {
    if (const auto place = last(kept.point.zero, most, most_of_zero); place != variants.end()) {
      if (!(kept < *place)) return;
      variants.erase(place);
    }
    variants.insert(std::upper_bound(variants.begin(), variants.end(), kept), kept);
  }
};

// False for recomputation chosen per layer or inside layers, stages with degrees of their own, and layer splits of more than three
// runs (2,3x14,2 has three).
bool is_simple(const Strategy& strategy);
// Whether `a` ranks before `b`, handicaps included.
inline bool better(const Candidate& a, const Candidate& b) { return a.score * a.handicap < b.score * b.handicap; }
// The better of two candidates of one family. If the other has the lower score without handicap, it becomes less_simple.
Candidate better_of(Candidate a, Candidate b);
bool same_family(const Point& a, const Point& b);
std::vector<Candidate> best_of_families(const std::vector<Candidate>& all);  // one candidate per family, best first
// Adds `candidate` to `ranked`, which is sorted and has one candidate per family: of its family only the better_of stays.
void take_place(std::vector<Candidate>& ranked, const Candidate& candidate);

// The best `most` families that one thread has seen.
class BestFamilies {
 public:
  explicit BestFamilies(int most) : most_(static_cast<std::size_t>(std::max(1, most))) {}
  // A family whose best score is above this is not kept; 1e300 while there is room.
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

// A pseudo-random sample of the space, the same for any number of threads: the points whose numbers have the smallest hashes.
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
  // splitmix64 of Sebastiano Vigna: spreads consecutive numbers over all 64-bit values.
  static std::uint64_t hashed(std::int64_t order) {
    std::uint64_t z = static_cast<std::uint64_t>(order) + 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::size_t most_;
  std::map<std::uint64_t, Kept> found_ = {};
};

// Everything that one thread keeps and counts while it screens.
struct ScreeningTotals {
  ScreeningTotals(int most, int filled, int cells, int samples) : best(most), filled(filled), cells(cells), sample(samples) {}
  BestFamilies best;
  BestFamilies filled;                                     // of points with --recompute best
  BestFamilies cells;                                      // of points whose schedules have cells that nobody asked for
  std::array<std::optional<Kept>, kMemoryBins> bins = {};  // the fastest point of each range of peak memory
  std::int64_t enumerated = 0, evaluated = 0;
  double bound = kNever;  // the least lower bound of all points that fit by the screen
  PrunedBy pruned = {};
  std::map<const char*, std::int64_t> refusals = {};  // how often a framework refused, by reason
  Sample sample;
  Kept without_memory_limit{.score = kNever}, without_framework{.score = kNever};
};

// Whether screening skips points whose lower bound is above the scores of all families that are kept.
bool bounded(const SearchOptions& options);
// Whether recomputation inside layers (recompute graph) is tried: not with a framework, since none has it, and not for the least memory.
bool tries_recompute_graphs(const SearchOptions& options);
// Adds the counts of all threads to `result`, and sets its `bound`, `without_memory_limit` and `without_framework`.
void add_up(const std::vector<ScreeningTotals>& tallies, SearchResult& result);

// The Pareto front, fastest first: each candidate needs less memory than all before it.
std::vector<Candidate> front_of(std::vector<Candidate> all);

// The best `most` families of all threads, best first. Variants that score worse than the last of these families are removed, so that
// the result does not depend on how grids were dealt to threads.
std::vector<Family> merged(const std::vector<ScreeningTotals>& tallies, BestFamilies ScreeningTotals::*which, int most);

// Further variants that are worth refining: for each candidate in `of` within 1 % of the score `best`, the other variants of its family
// whose screened score is within 1 % of the best of their ZeRO stage and at most `enough`.
std::vector<Kept> near_variants(const std::vector<Family>& families, std::span<const Candidate> of, double best, double enough);

// From all threads: the fastest point of every memory bin, each as a family; the sample of `most` points in the order of the space.
std::vector<Family> merged_bins(const std::vector<ScreeningTotals>& tallies);
std::vector<Kept> merged_sample(const std::vector<ScreeningTotals>& tallies, int most);

}  // namespace foreshard
