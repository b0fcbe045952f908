// What a user's own measured runs taught about a machine: how much longer than predicted the parts of an iteration take there,
// by the shape of the layers. `foreshard calibrate --runs` fits it, a MachineProfile carries it; docs/learning.md.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace foreshard {

class JsonReader;
class JsonWriter;

// Computes of layers, of what stands before and behind them (embedding, head, loss), of the optimizer; collectives between
// the operators of a layer; those of gradients and parameters; transfers between stages.
enum class CostPart : std::uint8_t { Layer, Ends, Update, Tensor, Gradients, Transfer };
const std::vector<std::string>& cost_part_words();  // "layer", "ends", ...

// A part as it occurs in a plan. Kernels of two shapes are the more alike the nearer their places, base-2 logarithms of sizes; words
// (framework, number format, attention) are alike or not. Parts of one kind have equally many of both.
struct PartShape {
  CostPart part = CostPart::Layer;
  std::vector<std::string> words = {};
  std::vector<double> place = {};
  auto operator<=>(const PartShape&) const = default;
};

// What ln(measured time / predicted time) of a part's shape is made of: standard deviations, estimated from the runs.
struct LearnedScales {
  double machine = 0.05;       // common to everything on the machine
  double compute = 0.1;        // of a shape of its own, computes ...
  double communication = 0.1;  // ... and communication
  double reach = 2;            // distance at which shapes have 1/e in common: doublings of sizes; another word counts as two
  double noise = 0.03;         // of a whole run, from one to the next
  bool operator==(const LearnedScales&) const = default;
};

struct LearnedShape {
  PartShape shape = {};
  int runs = 0;  // in which it took time
  double pull = 0;
  bool operator==(const LearnedShape&) const = default;
};

// The posterior of a Gaussian process (Rasmussen and Williams 2006, equations 2.25 and 2.26) over shapes, with mean k(x) . pull and
// covariance k(x, y) - k(x) doubt k(y) of ln(time / predicted time) of parts of the shapes x and y.
struct LearnedCosts {
  std::string cluster = {};  // where the runs were, in words
  int runs = 0;
  LearnedScales scales = {};
  std::vector<LearnedShape> shapes = {};
  std::vector<std::vector<double>> doubt = {};  // [shape][shape <= it]: lower triangle
  bool operator==(const LearnedCosts&) const = default;
};

// The member "learned" of a profile. Reading throws Error with file, field, found and expected.
void write_learned(JsonWriter& json, const LearnedCosts& learned);
LearnedCosts read_learned(const JsonReader& json);

}  // namespace foreshard
