// Quotient: the folding of a simulation. Ranks that do the same at the same time are one class, simulated by one representative; flows
// and links have classes likewise. Classes are found by colour refinement on the incidence of ranks, flows and links:
//
//   flow colour  <- its kind, colours of its parties, colours of the links that can limit it, counted as often as it crosses them
//   link colour  <- its capacity, colours of the flows that cross it
//   rank colour  <- its role and speed, colours of the flows of its slots
//
// This is repeated until no class splits any more. The partition is then equitable: every link of class K is crossed equally often by
// flows of class F, and every flow of F crosses equally many links of K. Max-min sharing with equal weights gives an equitable system
// the same rates as its quotient in which a flow uses `times` shares of a link, so folding is exact.
#pragma once

#include <cstdint>
#include <vector>

#include "core/result/result.h"
#include "core/result/trace.h"
#include "replay/flows.h"
#include "replay/rank_speed.h"

namespace foreshard::player {

// Flow class `flow` crosses each link of a bundle `times` times. `example` is a flow of the class that crosses the first of these links;
// `several`: other flows of the class cross that link, too.
struct Crossing {
  int flow = 0;
  int times = 0;
  int example = 0;
  bool several = false;
};

// Link classes that the same flow classes cross equally often. They carry the same bytes at the same time, so only the narrowest counts.
struct Bundle {
  BytesPerSecond narrowest = {};  // of the links that can limit; 0: none can
  std::vector<Crossing> crossings = {};
};

struct FlowClass {
  int example = 0;                     // a flow of the class, as index into Flows
  double bytes = 0;                    // Flows::bytes of each
  std::vector<Crossing> bundles = {};  // the bundles that it crosses; Crossing::flow is the index of the bundle here
};

struct Quotient {
  std::vector<RankClass> classes = {};   // in the order of their first members
  std::vector<ClassId> class_of = {};    // [rank]
  std::vector<std::int32_t> twins = {};  // [rank]: equal for ranks that do the same at the same time, whether folded or not
  std::vector<FlowClass> flows = {};
  std::vector<std::int32_t> flow_of = {};  // [flow of Flows]: its class
  std::vector<Bundle> bundles = {};
  std::vector<LinkClass> links = {};         // link classes, without names, bytes and busy times
  std::vector<std::int32_t> bundle_of = {};  // [link class]
};

// `paces` [rank]. Without find_twins, `twins` are the classes. one_class_per_role: see ReplayOptions.
Quotient fold(const Plan& plan, const Ranks& ranks, const Network& network, const Patterns& patterns, const Flows& flows,
              const std::vector<RankSpeed>& paces, Folding folding, bool find_twins, bool one_class_per_role = false);

}  // namespace foreshard::player
