// Expert load: how unevenly tokens choose experts. A simulation has to assume it, because it depends on the data. The most loaded rank of
// an expert group determines the times, and the memory of every rank: a rank has room for the rows that the most loaded one gets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace foreshard {

struct ExpertLoad {
  enum class Kind : std::uint8_t {
    Balanced,  // all ranks get equal numbers of rows, as with forced balancing
    Equal,     // all experts are equally likely; ranks differ only by chance
    Gini,      // loads of experts are lognormal with this Gini coefficient (erf(sigma / 2)), experts placed at random
    Zipf,      // the i-th expert is chosen in proportion to i^-value, experts placed at random
    Factor,    // the most loaded rank gets `value` times the mean
    Worst,     // every token chooses as many experts of one rank as it can: the room is enough in every case
    Measured   // `measured`: the tokens that chose each expert in a run
  };
  Kind kind = Kind::Balanced;
  double value = 0;  // of Gini, Zipf and Factor
  // Measured: [layer with experts][expert] the choices, in any unit; one list: of all layers. Layers after the last list have its loads.
  std::vector<std::vector<double>> measured = {};

  // The loads of layer `mixture` among those with experts. Only for Measured.
  const std::vector<double>& of_layer(int mixture) const;
  bool operator==(const ExpertLoad&) const = default;
};

// "balanced", "equal", "gini:0.15", "zipf:0.5", "1.3", "worst", "loads:5,3,2,6;4,4,4,4" (measured, layer by layer) and "file:F"
// (read_expert_loads). Throws Error; `where` names the source of the text. The text of measured loads lists them.
ExpertLoad parse_expert_load(const std::string& text, const std::string& where);
std::string to_text(const ExpertLoad& load);
// A file {"format": "foreshard-expert-loads", "layers": [[5, 3, 2, 6], [4, 4, 4, 4]]}. Throws Error.
std::vector<std::vector<double>> read_expert_loads(const std::string& file);

// The mixture of experts whose load is wanted.
struct ExpertChoices {
  std::int64_t experts = 1;  // [E] of a layer
  std::int64_t chosen = 1;   // [k] experts that a token chooses
  int ranks = 1;             // [ep] ranks that share the experts
  double tokens = 1;         // tokens of all these ranks together
  int mixture = 0;           // the layer, among those with experts
  int dealt_over = 0;        // expert e is on rank (e mod this number) / (this number / ranks); 0: experts are consecutive
  double capacity = 0;       // the most choices of one expert, of `tokens` tokens; 0: no limit
};

// Rows of the most loaded rank over the mean of all ranks: at least 1, and at most the factor of Worst, ranks min(k, E / ranks) / k.
// Equal: 1 + z sigma / m. m: mean rows; sigma^2 = m (1 - 1/ranks) (E - k) / (E - 1), hypergeometric; z: the normal quantile of
// 0.5264^(1/ranks), the expected maximum of `ranks` normal values (Chen and Tyler 1999). Gini and Zipf: the mean over random placements
// from a fixed seed. Measured: with the placement of ExpertChoices, each expert at most its capacity.
double most_loaded(const ExpertLoad& load, const ExpertChoices& choices);

}  // namespace foreshard
