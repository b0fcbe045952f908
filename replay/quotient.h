// Quotient: the smallest problem that behaves like the whole one. Ranks that do the same at the same time are one
// class, played by one representative; so are flows and links. Found by colour refinement on the incidence of ranks,
// flows and links:
//
//   flow colour  <- what it is, colours of its parties, colours of the links that can limit it, as often as it crosses them
//   link colour  <- its capacity, colours of the flows that cross it
//   rank colour  <- its role and speed, colours of the flows of its slots
//
// until no class splits any more. The partition is then equitable: every link of class K is crossed equally often by
// flows of class F, and every flow of F crosses equally many links of K. Max-min sharing with equal penalties gives
// equitable systems the same rates as their quotient in which a flow uses `times` shares of a link (simgrid.md section
// 6), so folding is exact.
#pragma once

#include <cstdint>
#include <vector>

#include "core/result/result.h"
#include "core/result/trace.h"
#include "replay/flows.h"

namespace foreshard::player {

// Flow class `flow` crosses each link of a bundle `times` times; `example` is a flow of it that crosses the first link,
// and `several` says whether there are others.
struct Crossing {
  int flow = 0;
  int times = 0;
  int example = 0;
  bool several = false;
};

// Link classes that the same flows cross equally often: they carry the same bytes at the same time, only the narrowest
// matters.
struct Bundle {
  BytesPerSecond narrowest = {};
  std::vector<Crossing> crossings = {};
};

struct FlowClass {
  int example = 0;                     // index into Flows
  double bytes = 0;                    // per byte of the instruction
  std::vector<Crossing> bundles = {};  // Crossing::flow is the bundle here
};

struct Quotient {
  std::vector<RankClass> classes = {};   // in the order of their first members
  std::vector<ClassId> class_of = {};    // [rank]
  std::vector<std::int32_t> twins = {};  // [rank]: equal for ranks that do the same at the same time, folded or not
  std::vector<FlowClass> flows = {};
  std::vector<std::int32_t> flow_of = {};  // [flow of Flows]
  std::vector<Bundle> bundles = {};
  std::vector<LinkClass> links = {};         // without names and loads
  std::vector<std::int32_t> bundle_of = {};  // [link class]
};

// `speed` per rank: how much slower its compute is. Twins are found when asked for, or when folding is full.
Quotient fold(const Plan& plan, const Ranks& ranks, const Network& network, const Patterns& patterns, const Flows& flows,
              const std::vector<double>& slowdown, Folding folding, bool find_twins, bool one_class_per_role = false);

}  // namespace foreshard::player
