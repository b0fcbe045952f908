// Quotes: the time, money and energy of a training on each of several clusters, with the best strategy for each.
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
  double tokens = 0;  // of the whole training; 0: quote per million tokens
  Objective objective = Objective::Time;
};

enum class Searched : std::uint8_t { All, Partly, Not };  // how much of the search space was covered; Partly, Not: interrupted
const char* name_of(Searched searched);                   // "complete", "partial", "not searched"

struct Quote {
  std::string cluster = {}, strategy = {};
  std::string why_not = {};  // why no strategy fits; empty: `best` does
  Searched searched = Searched::All;
  int gpus = 0;
  std::optional<Candidate> best = {};
  double tokens_per_s = 0;          // samples per second for a CNN
  Seconds time = {};                // of the whole training
  std::optional<double> cost = {};  // in the currency of the cluster's price
  std::optional<double> energy_kwh = {};
  Seconds low = {}, high = {};  // 90 % interval of `time`; 0: none is known (a host)
};

// The quote for the best strategy of a search.
Quote quote(const Job& job, const std::variant<SearchResult, Infeasible>& answer, const QuoteOptions& options);
Quote not_searched(const std::string& cluster);  // for a cluster that an interrupt left out
// Whether the intervals of two predictions do not overlap. Each is a time multiplied by a rate, such as money per second; 1 compares
// the times. False when an interval is unknown.
bool distinguishable(const Quote& a, const Quote& b, double a_per_s = 1, double b_per_s = 1);

std::string quotes_text(const std::vector<Quote>& quotes, const QuoteOptions& options);
std::string quotes_json(const std::vector<Quote>& quotes, const QuoteOptions& options);
std::string quotes_csv(const std::vector<Quote>& quotes, const QuoteOptions& options);
// For one cluster, below the output of `search`: "Training on 2,000,000,000,000 tokens: 3.2 days (90 %: 2.9 days .. 3.5 days), ...".
std::string training_text(const Quote& quote, const QuoteOptions& options);
void write_training(JsonWriter& json, const Quote& quote, const QuoteOptions& options);  // an object

}  // namespace foreshard
