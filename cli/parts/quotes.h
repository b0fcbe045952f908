// Quotes: what a training costs on each of several clusters, with the best strategy of each.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/job/job.h"
#include "core/json/json.h"
#include "strategy/search/search.h"

namespace foreshard {

struct QuoteOptions {
  double tokens = 0;  // of the whole training; 0: per million tokens
  Objective objective = Objective::Time;
};

enum class Searched : std::uint8_t { All, Partly, Not };  // Partly, Not: interrupted
const char* name_of(Searched searched);                   // "complete", "partial", "not searched"

struct Quote {
  std::string cluster = {}, strategy = {};
  std::string why_not = {};  // nothing fits
  Searched searched = Searched::All;
  int gpus = 0;
  std::optional<Candidate> best = {};
  double tokens_per_s = 0;
  Seconds time = {};                // of the training
  std::optional<double> cost = {};  // in the currency of the cluster's price
  std::optional<double> energy_kwh = {};
  Seconds low = {}, high = {};  // 90 % interval of `time`; 0: none is known (a host)
};

// The best of a search, priced.
Quote quote(const Job& job, const std::variant<SearchResult, Infeasible>& answer, const QuoteOptions& options);
Quote not_searched(const std::string& cluster);
// Whether two predictions, each a time multiplied by a rate per second, differ by more than their errors.
bool distinguishable(const Quote& a, const Quote& b, double a_per_s = 1, double b_per_s = 1);

std::string quotes_text(const std::vector<Quote>& quotes, const QuoteOptions& options);
std::string quotes_json(const std::vector<Quote>& quotes, const QuoteOptions& options);
std::string quotes_csv(const std::vector<Quote>& quotes, const QuoteOptions& options);
// Of one cluster, below what a search prints: "Training on 2,000,000,000,000 tokens: 3.2 days (90 %: 2.9 days .. 3.5 days), ...".
std::string training_text(const Quote& quote, const QuoteOptions& options);
void write_training(JsonWriter& json, const Quote& quote, const QuoteOptions& options);  // an object

}  // namespace foreshard
