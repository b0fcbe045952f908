// compare: sets two results of one plan (simulated, emulated or measured) side by side. Instructions are matched by rank, action
// and index; classes are split into ranks, and spans of several instructions into instructions, where the results differ in it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "core/result/summary.h"

namespace foreshard {

struct Compared {
  double predicted = 0, measured = 0;
  // predicted / measured - 1; 0 when both are 0, infinite when only `measured` is.
  double signed_error() const;
  double difference() const { return predicted - measured; }
  bool operator==(const Compared&) const = default;
};

// "matmul forward", "all_reduce": instructions of all ranks together.
struct ComparedKind {
  std::string kind = {};
  std::int64_t instructions = 0;
  Compared seconds = {};  // summed over the instructions
  bool operator==(const ComparedKind&) const = default;
};

// One instruction of one action, on `ranks` ranks that are in one class in both results.
struct ComparedSpan {
  RankId rank = {};  // the first of them
  int ranks = 1;
  std::int32_t action = 0, instruction = 0;
  std::string action_name = {}, instruction_name = {};  // "F3", "h.2.qkv"
  Compared begin = {}, seconds = {};                    // seconds: begin and duration
  bool operator==(const ComparedSpan&) const = default;
};

struct Comparison {
  std::string plan_hash = {};
  Origin predicted = Origin::Simulated, measured = Origin::Measured;
  std::string predicted_device = {}, measured_device = {};  // device_words
  bool same_device = true;  // false: no errors are printed for times and shares of time (report/words/devices.h)
  int ranks = 0;
  Compared iteration_time = {};  // seconds
  Compared bubble = {};          // idle compute streams as a share of the iteration, mean over ranks
  std::array<Compared, kBubbleCauses> bubble_by_cause = {};
  Compared memory = {};  // bytes: the largest live peak of any rank's device memory, and its categories at that moment
  std::array<Compared, kCategories> memory_by_category = {};
  std::vector<ComparedKind> op_kinds = {};    // longest measured first
  std::vector<ComparedSpan> spans = {};       // largest difference of durations first
  std::int64_t joined = 0, without_twin = 0;  // instructions of all ranks that both results have, and that only one has
  bool operator==(const Comparison&) const = default;
};

struct CompareOptions {
  std::string predicted_name = "A", measured_name = "B";  // for messages of errors
  std::size_t most_spans = 10;                            // in Comparison::spans
};

// Both may be simulated or measured results. Throws Error when their plans differ or one of them has no spans.
Comparison compare(const Result& predicted, const Result& measured, const CompareOptions& options = {});

// Ranks that are in class `predicted` of one result and in class `measured` of the other.
struct ClassPair {
  ClassId predicted = {}, measured = {};
  RankId first = {};
  int ranks = 0;
  bool operator==(const ClassPair&) const = default;
};
std::vector<ClassPair> class_pairs(const Trace& predicted, const Trace& measured);  // by first rank

}  // namespace foreshard
