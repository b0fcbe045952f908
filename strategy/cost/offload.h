// What a training framework keeps in host memory instead of on the device, as the words of its command line say. The "offload" list of
// frameworks/*.json says what the words mean; a rule holds when all of its words are there.
//
//   "offload": [{"words": ["offload-opt-m"], "in_host": ["momentum"]},
//               {"words": ["shard-weights", "offload-master"], "in_host": ["weights"]}]
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "core/json/json.h"
#include "core/strategy/strategy.h"

namespace foreshard {

struct Offload {
  bool master = false, momentum = false, variance = false;  // optimizer states
  bool gradients = false;                                   // of the layers; each micro-batch adds to them
  bool weights = false;                                     // of the layers; copied in for every forward and backward
  bool narrow_weights = false;                              // the weights are copied in the format of the products, 8 bits
  bool inputs = false;                                      // of the layers, from their forward to their backward
  bool activations = false;                                 // everything that the first `activation_layers` layers keep
  int activation_layers = 0;
  bool host_update = false;  // the CPU runs the optimizer
  auto operator<=>(const Offload&) const = default;
};

struct OffloadRule {
  std::vector<std::string> words = {};
  Offload means = {};
  bool operator==(const OffloadRule&) const = default;
};
std::vector<OffloadRule> read_offload_rules(const JsonReader& json);  // throws Error

// The offload that `text` asks for ("offload-opt-m offload-residual; flags --shard-weights"): the union of all rules that hold. The number
// of activation layers is the one in "activations of 20 layers". Empty: no rule holds, or the text has a word "offload-..." that is in no
// rule.
std::optional<Offload> offload_of(const std::vector<OffloadRule>& rules, const std::string& text);

// The offload options of a strategy that moves the same data. `narrow_weights` has no counterpart: a plan moves weights in the format of
// the parameters. Nor has `master`: all optimizer states move where momentum or variance does.
OffloadChoice choice_of(const Offload& offload);
// What the options of a strategy keep in host memory: the master copy with momentum and variance. Drives count as host memory.
Offload offload_of(const OffloadChoice& choice);

}  // namespace foreshard
