// What a training framework keeps in host memory instead of on the device, and how it goes about it. A preset says what the words
// of its command line mean: the "offload" list of frameworks/*.json.
//
//   "offload": [{"words": ["offload-opt-m"], "in_host": ["momentum"]},
//               {"words": ["shard-weights", "offload-master"], "in_host": ["weights"]}]      all of the words have to be there
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/json/json.h"
#include "core/strategy/strategy.h"

namespace foreshard {

struct Offload {
  bool master = false, momentum = false, variance = false;  // optimizer states
  bool gradients = false;                                   // those of the layers; each micro-batch's are added to them
  bool weights = false;                                     // of the layers: they come in for every forward and backward
  bool narrow_weights = false;                              // ... in the format of the products, 8 bits
  bool inputs = false;                                      // of the layers, from their forward to their backward
  bool activations = false;                                 // all that the first `activation_layers` layers keep
  int activation_layers = 0;
  bool host_update = false;    // the CPU runs the optimizer
  bool operator==(const Offload&) const = default;
};

struct OffloadRule {
  std::vector<std::string> words = {};
  Offload means = {};
  bool operator==(const OffloadRule&) const = default;
};
std::vector<OffloadRule> read_offload_rules(const JsonReader& json);  // throws Error

// What `text` asks for ("offload-opt-m offload-residual; flags --shard-weights"); empty when no rule knows a word of it, or when
// it has a word "offload-..." that none knows. "activations of 20 layers" says how many.
std::optional<Offload> offload_of(const std::vector<OffloadRule>& rules, const std::string& text);

// The options of a plan that moves the same: `lower` obeys them. A plan moves weights in the format of the parameters, and a master copy that
// is the parameters themselves stays with them.
OffloadChoice choice_of(const Offload& offload);

}  // namespace foreshard
