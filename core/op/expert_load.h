// How unevenly tokens choose experts: what a simulation has to assume, for no cost model knows the data. Times follow the most loaded rank
// of an expert group, and so does memory: a rank has room for the rows that this load gives the most loaded one.
#pragma once

#include <cstdint>
#include <string>

namespace foreshard {

struct ExpertLoad {
  enum class Kind : std::uint8_t {
    Balanced,  // every rank has as many rows as every other; what forced balancing gives
    Equal,     // every expert is as likely as every other: the spread of chance alone
    Gini,      // loads of experts are lognormal with this Gini coefficient (erf(sigma / 2)), experts placed at random
    Zipf,      // the i-th expert is chosen in proportion to i^-value, experts placed at random
    Factor,    // the most loaded rank has `value` times the mean
    Worst      // every token chooses experts of one rank as far as it can: room for whatever comes
  };
  Kind kind = Kind::Balanced;
  double value = 0;  // of Gini, Zipf and Factor
  bool operator==(const ExpertLoad&) const = default;
};

// "balanced", "equal", "gini:0.15", "zipf:0.5", "1.3", "worst". Throws Error; `where` says where the text stands.
ExpertLoad parse_expert_load(const std::string& text, const std::string& where);
std::string to_text(const ExpertLoad& load);

// What is chosen by whom.
struct ExpertChoices {
  std::int64_t experts = 1;  // [E] of a layer
  std::int64_t chosen = 1;   // [k] of them per token
  int ranks = 1;             // [ep] that share the experts
  double tokens = 1;         // of all these ranks together
};

// Rows of the most loaded rank over the mean of all: at least 1, at most `ranks`, and no more than tokens that choose min(k, E / ranks) experts
// of one rank. Equal: mean + z sigma with the hypergeometric variance m (1 - 1/ranks) (E - k) / (E - 1) and the normal quantile z of
// 0.5264^(1/ranks). Gini and Zipf: the mean over drawn placements, always the same ones.
double most_loaded(const ExpertLoad& load, const ExpertChoices& choices);

}  // namespace foreshard
