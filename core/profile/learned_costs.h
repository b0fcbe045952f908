// Learned costs: factors by which a user's own measured runs differ from predictions, for each part of an iteration and each shape of
// layers. `foreshard calibrate --runs` fits them and a MachineProfile holds them (docs/learning.md).
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace foreshard {

class JsonReader;
class JsonWriter;

// The parts of an iteration. Computation: Layer; Ends (embedding, head, loss); Update (optimizer). Communication: Tensor (collectives
// between the operators of a layer); Gradients (collectives of gradients and parameters); Transfer (between pipeline stages).
enum class CostPart : std::uint8_t { Layer, Ends, Update, Tensor, Gradients, Transfer };
const std::vector<std::string>& cost_part_words();  // "layer", "ends", ...

// A part of an iteration of a plan, as a point at which the factor is learned. `place` has base-2 logarithms of sizes: the nearer two
// places, the more similar the factors. `words` (framework, number format, attention) are equal or different. All shapes of one part have
// the same numbers of words and places.
struct PartShape {
  CostPart part = CostPart::Layer;
  std::vector<std::string> words = {};
  std::vector<double> place = {};
  auto operator<=>(const PartShape&) const = default;
};

// The covariance function of ln(measured time / predicted time): standard deviations of its components, and a length scale. Estimated from
// the runs.
struct LearnedScales {
  double machine = 0.05;       // of the component common to everything on the machine
  double compute = 0.1;        // of the component of a single shape: computation
  double communication = 0.1;  // the same for communication
  // Distance at which the correlation of shapes is 1/e, in doublings of sizes; a different word counts as 2.
  double reach = 2;
  double noise = 0.03;  // between whole runs
  bool operator==(const LearnedScales&) const = default;
};

struct LearnedShape {
  PartShape shape = {};
  int runs = 0;     // number of runs in which it took time
  double pull = 0;  // its weight in the posterior mean, see LearnedCosts
  bool operator==(const LearnedShape&) const = default;
};

// The posterior of a Gaussian process over shapes for ln(measured time / predicted time) (Rasmussen and Williams 2006, equations 2.25 and
// 2.26). Shape x has the mean k(x) . pull, shapes x and y have the covariance k(x, y) - k(x) doubt k(y). k(x) holds the prior covariances
// of x with all `shapes`.
struct LearnedCosts {
  std::string cluster = {};  // the cluster of the runs, in words
  int runs = 0;
  LearnedScales scales = {};
  std::vector<LearnedShape> shapes = {};
  // [shape][shape <= it], lower triangle: W^T (W C W^T + noise^2)^-1 W for the prior covariance C and the runs' weights W of the shapes.
  std::vector<std::vector<double>> doubt = {};
  bool operator==(const LearnedCosts&) const = default;
};

// The member "learned" of a profile. Reading throws Error with file, field, found and expected.
void write_learned(JsonWriter& json, const LearnedCosts& learned);
LearnedCosts read_learned(const JsonReader& json);

}  // namespace foreshard
