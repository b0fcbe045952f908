// Quotes: what a training costs on each of several clusters, with the best strategy of each.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/job.h"
#include "strategy/search.h"

namespace foreshard {

struct QuoteOptions {
  double tokens = 0;  // of the whole training; 0: per million tokens
};

struct Quote {
  std::string cluster = {}, strategy = {};
  std::string why_not = {};  // nothing fits
  int gpus = 0;
  std::optional<Candidate> best = {};
  double tokens_per_s = 0;
  Seconds time = {};                // of the training
  std::optional<double> cost = {};  // in the currency of the cluster's price
  std::optional<double> energy_kwh = {};
  Seconds low = {}, high = {};  // 90 % interval of `time`
};

// The best of a search, priced.
Quote quote(const Job& job, const std::variant<SearchResult, Infeasible>& answer, const QuoteOptions& options);
// Whether what is known about the error of predictions tells them apart.
bool distinguishable(const Quote& a, const Quote& b);

std::string quotes_text(const std::vector<Quote>& quotes, const QuoteOptions& options);
std::string quotes_json(const std::vector<Quote>& quotes, const QuoteOptions& options);
std::string quotes_csv(const std::vector<Quote>& quotes, const QuoteOptions& options);

}  // namespace foreshard
