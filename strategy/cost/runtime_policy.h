// Runtime policies: what a framework does within its ZeRO stage (units of gathering, prefetch, release, buckets, host memory). Each is a
// named entry of "policies" in frameworks/*.json:
//
//   "policies": {
//     "NAME": {
//       "of": "BMTrain",                  the framework that has it; default: the name of the file
//       "summary": "...", "source": "...",
//       "zero": 3,
//       "layers": {"ahead": 1, "keep": true, "staging": true}                        rule of block_residency.h, or
//                 {"prefetch": 50000000, "live_cap": .., "reuse_distance": ..}       of module_residency.h, in elements
//       "chunks": {"size": 67108864, "kept": 0.5} or {"cap": 0.9},                   instead: ChunkRule of parameter_stays.h
//       "regions": {"window": 3},         or: a region is fetched during the backward of one of the next 3 (plan_offload)
//       "offload": ["optimizer", "gradients", "parameters"],                         what lies in host memory
//       "bucket": 500000000,              elements of gradients that are reduced together
//       "grad_dtype": "fp32", "overlap": "grad,param"
//     }
//   }
//
// The units of all policies are layers, or chunks or regions of whole layers. docs/offload-planning.md says where a framework's own units
// differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/strategy/strategy.h"
#include "strategy/residency/parameter_stays.h"

namespace foreshard {

struct RuntimePolicy {
  std::string name = {}, of = {}, summary = {}, source = {};
  int zero = 0;
  std::optional<ParameterStays> layers = {};  // when parameters are on the device; empty: always
  bool optimizer_on_host = false, gradients_on_host = false, parameters_on_host = false;
  std::int64_t bucket = 0;               // elements of gradients; 0: as the other options say
  std::optional<DType> grad_dtype = {};  // empty: as the other options say
  std::optional<Overlap> overlap = {};

  // Parameters may stay on the device from the forward of a layer to its backward.
  bool keeps() const { return layers && layers->keeps(); }
};

// All policies, in the order of policy_names(); read once. Throws Error for a bad file.
const std::vector<RuntimePolicy>& runtime_policies();
// Whether the backward of a micro-batch follows its forward on every rank, with no other action between them: what a policy that keeps
// parameters until the backward asks for. One pipeline rank with schedule 1f1b.
bool alternates(const Strategy& strategy);
// Null for "auto" and "none". Another unknown name is a bug.
const RuntimePolicy* find_policy(const std::string& name);
// The policy that the strategy names; with "auto" the one that its framework implies: the first of "implies" in frameworks/*.json that has
// the strategy's ZeRO stage and keeps in host memory nothing that the strategy keeps elsewhere. Null: none. Policies that keep parameters
// until the backward are implied only where forwards and backwards alternate, and none is with stages that have degrees of their own.
const RuntimePolicy* policy_of(const Strategy& strategy);
// The policies of one file; `framework` is the default of "of". Throws Error.
std::vector<RuntimePolicy> parse_policies(const std::string& text, const std::string& framework, const std::string& file_name);

}  // namespace foreshard
