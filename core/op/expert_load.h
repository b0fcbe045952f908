// Expert load: how unevenly tokens choose experts. A simulation has to assume it, because it depends on the data. The most loaded rank of
// an expert group determines the times, and the memory of every rank: a rank has room for the rows that the most loaded one gets.
#pragma once

#include <cstdint>
#include <string>

namespace foreshard {

struct ExpertLoad {
  enum class Kind : std::uint8_t {
    Balanced,  // all ranks get equal numbers of rows, as with forced balancing
    Equal,     // all experts are equally likely; ranks differ only by chance
    Gini,      // loads of experts are lognormal with this Gini coefficient (erf(sigma / 2)), experts placed at random
    Zipf,      // the i-th expert is chosen in proportion to i^-value, experts placed at random
    Factor,    // the most loaded rank gets `value` times the mean
    Worst      // every token chooses as many experts of one rank as it can: the room is enough in every case
  };
  Kind kind = Kind::Balanced;
  double value = 0;  // of Gini, Zipf and Factor
  bool operator==(const ExpertLoad&) const = default;
};

// "balanced", "equal", "gini:0.15", "zipf:0.5", "1.3", "worst". Throws Error; `where` says where the text stands.
ExpertLoad parse_expert_load(const std::string& text, const std::string& where);
std::string to_text(const ExpertLoad& load);

// The mixture of experts whose load is wanted.
struct ExpertChoices {
  std::int64_t experts = 1;  // [E] of a layer
  std::int64_t chosen = 1;   // [k] experts that a token chooses
  int ranks = 1;             // [ep] ranks that share the experts
  double tokens = 1;         // tokens of all these ranks together
};

// Rows of the most loaded rank over the mean of all ranks: at least 1, and at most the factor of Worst, ranks min(k, E / ranks) / k.
// Equal: mean + z sigma with the hypergeometric variance m (1 - 1/ranks) (E - k) / (E - 1) and the normal quantile z of 0.5264^(1/ranks).
// Gini and Zipf: the mean over random placements from a fixed seed.
double most_loaded(const ExpertLoad& load, const ExpertChoices& choices);

}  // namespace foreshard
