#include "core/op/expert_load.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <tuple>
#include <vector>

#include "core/base/error.h"
#include "core/json/json.h"

namespace foreshard {

namespace {

constexpr const char* kExpectedLoad =
    "balanced, equal, worst, gini:0.15 (above 0, below 1), zipf:0.5 (above 0, at most 10), a number of at least 1, or file:F "
    "with "
    "measured loads";

// x with P(N(0, 1) < x) = p, by bisection of the error function.
double normal_quantile(double p) {
  double low = -10, high = 10;
  for (int i = 0; i < 80; ++i) {
    const double middle = 0.5 * (low + high);
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

// sigma with erf(sigma / 2) = gini.
double lognormal_width(double gini) { return std::sqrt(2.0) * normal_quantile(0.5 * (1 + gini)); }

// The share of all choices that each expert gets if a token chooses k different experts, one after the other, in proportion to `weights`.
// An expert gets at most 1 / k. Solves for c so that the sum of 1 - exp(-c w) over the experts is k.
std::vector<double> chosen_shares(const std::vector<double>& weights, double k) {
  double low = 0, high = 1;
  const auto sum = [&](double c) {
    double all = 0;
    for (const double w : weights) all += -std::expm1(-c * w);
    return all;
  };
  while (sum(high) < k && high < 1e18) high *= 2;
  for (int i = 0; i < 100; ++i) {
    const double middle = 0.5 * (low + high);
    (sum(middle) < k ? low : high) = middle;
  }
  std::vector<double> shares;
  for (const double w : weights) shares.push_back(-std::expm1(-high * w) / k);
  return shares;
}

double largest_part(const std::vector<double>& loads, int ranks) {
  const std::size_t each = loads.size() / static_cast<std::size_t>(ranks);
  double largest = 0, all = 0;
  for (std::size_t first = 0; first < loads.size(); first += each) {
    const double part = std::accumulate(loads.begin() + static_cast<std::ptrdiff_t>(first),
                                        loads.begin() + static_cast<std::ptrdiff_t>(first + each), 0.0);
    largest = std::max(largest, part), all += part;
  }
  return largest * ranks / all;
}

// Mean over random placements, drawn with a fixed seed, of the load of the most loaded rank.
double drawn(const ExpertLoad& load, const ExpertChoices& c) {
  constexpr int kPlacements = 400;
  std::mt19937_64 random(20260823);
  const auto count = static_cast<std::size_t>(c.experts);
  std::vector<double> loads(count);
  if (load.kind == ExpertLoad::Kind::Zipf) {
    for (std::size_t i = 0; i < count; ++i) loads[i] = std::pow(static_cast<double>(i + 1), -load.value);
    loads = chosen_shares(loads, static_cast<double>(c.chosen));
  }
  const double width = load.kind == ExpertLoad::Kind::Gini ? lognormal_width(load.value) : 0;
  // Uniform numbers of 53 bits and our own transforms: the standard's distributions differ between libraries.
  const auto uniform = [&] { return (static_cast<double>(random() >> 11U) + 0.5) * 0x1p-53; };
  double sum = 0;
  for (int i = 0; i < kPlacements; ++i) {
    if (width > 0)
      for (double& l : loads)
        l = std::exp(width * std::sqrt(-2 * std::log(uniform())) * std::cos(2 * 3.14159265358979323846 * uniform()));
    else
      for (std::size_t at = count; at > 1; --at)
        std::swap(loads[at - 1], loads[static_cast<std::size_t>(uniform() * static_cast<double>(at))]);
    sum += largest_part(loads, c.ranks);
  }
  return sum / kPlacements;
}

double drawn_once(const ExpertLoad& load, const ExpertChoices& c) {
  static std::mutex mutex;
  static std::map<std::tuple<int, double, std::int64_t, std::int64_t, int>, double> known;
  const std::lock_guard lock(mutex);
  const auto [at, fresh] = known.try_emplace({static_cast<int>(load.kind), load.value, c.experts, c.chosen, c.ranks}, 0);
  if (fresh) at->second = drawn(load, c);
  return at->second;
}

double by_chance(const ExpertChoices& c) {
  const auto experts = static_cast<double>(c.experts), k = static_cast<double>(c.chosen);
  const double mean = c.tokens * k / c.ranks;
  if (experts <= 1 || mean <= 0) return 1;
  const double variance = mean * (1.0 - 1.0 / c.ranks) * (experts - k) / (experts - 1);
  return 1 + normal_quantile(std::pow(0.5264, 1.0 / c.ranks)) * std::sqrt(variance) / mean;
}

// Of the most loaded rank over the mean of all ranks, if no expert had a limit.
double where_they_lie(const std::vector<double>& loads, const ExpertChoices& c) {
  FS_ASSERT(loads.size() == static_cast<std::size_t>(c.experts));
  const double all = std::accumulate(loads.begin(), loads.end(), 0.0), choices = c.tokens * static_cast<double>(c.chosen);
  std::vector<double> ranks(static_cast<std::size_t>(c.ranks));
  for (std::int64_t e = 0; e < c.experts; ++e) {
    const std::int64_t rank = c.dealt_over > 0 ? e % c.dealt_over / (c.dealt_over / c.ranks) : e / (c.experts / c.ranks);
    const double load = loads[static_cast<std::size_t>(e)] / all;
    ranks[static_cast<std::size_t>(rank)] += c.capacity > 0 ? std::min(load, c.capacity / choices) : load;
  }
  return *std::ranges::max_element(ranks) * c.ranks;
}

std::vector<double> parse_loads(const std::string& text, const std::string& where) {
  std::vector<double> loads;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find(',', from), text.size());
    double load = 0;
    const auto [stop, error] = std::from_chars(text.data() + from, text.data() + to, load);
    if (error != std::errc() || stop != text.data() + to || !(load >= 0 && load <= 1e18))
      throw Error(where, "expert_load", "\"" + text.substr(from, to - from) + "\"",
                  "tokens that chose an expert: a number of at least 0");
    loads.push_back(load);
    from = to + 1;
  }
  return loads;
}

// Throws Error unless each layer has tokens, and equally many experts.
void check_loads(const std::vector<std::vector<double>>& layers, const std::string& where) {
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const std::string field = "layers[" + std::to_string(l) + "]";
    if (layers[l].size() != layers[0].size() || layers[l].empty())
      throw Error(where, field, std::to_string(layers[l].size()) + " experts",
                  layers[0].empty() ? "at least one" : std::to_string(layers[0].size()) + ", as in the first layer");
    if (std::accumulate(layers[l].begin(), layers[l].end(), 0.0) <= 0)
      throw Error(where, field, "no tokens", "at least one expert that tokens chose");
  }
}

}  // namespace

const std::vector<double>& ExpertLoad::of_layer(int mixture) const {
  FS_ASSERT(!measured.empty());
  return measured[std::min(static_cast<std::size_t>(mixture), measured.size() - 1)];
}

std::vector<std::vector<double>> read_expert_loads(const std::string& file) {
  const JsonReader json = JsonReader::load(file);
  json.only({"format", "layers"});
  json.at("format").as_choice({"foreshard-expert-loads"});
  std::vector<std::vector<double>> layers;
  for (const JsonReader& layer : json.at("layers").elements()) {
    layers.emplace_back();
    for (const JsonReader& load : layer.elements()) layers.back().push_back(load.as_double(0, 1e18));
  }
  if (layers.empty()) throw Error(file, "layers", "none", "the loads of at least one layer");
  check_loads(layers, file);
  return layers;
}

ExpertLoad parse_expert_load(const std::string& text, const std::string& where) {
  using Kind = ExpertLoad::Kind;
  const auto refuse = [&]() -> ExpertLoad {
    throw Error(where, "expert_load", text.empty() ? "nothing" : "\"" + text + "\"", kExpectedLoad);
  };
  const auto number = [&](std::size_t from) {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + from, end, value);
    if (error != std::errc() || stop != end || !std::isfinite(value)) refuse();
    return value;
  };
  if (text == "balanced") return {};
  if (text == "equal") return {.kind = Kind::Equal};
  if (text == "worst") return {.kind = Kind::Worst};
  if (text.starts_with("file:")) return {.kind = Kind::Measured, .measured = read_expert_loads(text.substr(5))};
  if (text.starts_with("loads:")) {
    ExpertLoad load{.kind = Kind::Measured};
    for (std::size_t from = 6; from <= text.size();) {
      const std::size_t to = std::min(text.find(';', from), text.size());
      load.measured.push_back(parse_loads(text.substr(from, to - from), where));
      from = to + 1;
    }
    check_loads(load.measured, where);
    return load;
  }
  if (text.starts_with("gini:")) {
    const double value = number(5);
    return value > 0 && value < 1 ? ExpertLoad{Kind::Gini, value} : refuse();
  }
  if (text.starts_with("zipf:")) {
    const double value = number(5);
    return value > 0 && value <= 10 ? ExpertLoad{Kind::Zipf, value} : refuse();
  }
  const double value = number(0);
  if (value == 1) return {};
  return value > 1 && value <= 1e6 ? ExpertLoad{Kind::Factor, value} : refuse();
}

std::string to_text(const ExpertLoad& load) {
  const auto text = [](double number) {
    char digits[32];
    return std::string(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
  };
  const std::string value = text(load.value);
  switch (load.kind) {
    case ExpertLoad::Kind::Balanced: return "balanced";
    case ExpertLoad::Kind::Equal: return "equal";
    case ExpertLoad::Kind::Gini: return "gini:" + value;
    case ExpertLoad::Kind::Zipf: return "zipf:" + value;
    case ExpertLoad::Kind::Factor: return value;
    case ExpertLoad::Kind::Worst: return "worst";
    case ExpertLoad::Kind::Measured: break;
  }
  std::string list;
  for (const std::vector<double>& layer : load.measured)
    for (std::size_t e = 0; e < layer.size(); ++e) list += (e > 0 ? "," : list.empty() ? "loads:" : ";") + text(layer[e]);
  return list;
}

double most_loaded(const ExpertLoad& load, const ExpertChoices& c) {
  FS_ASSERT(c.ranks >= 1 && c.experts % c.ranks == 0 && c.chosen >= 1 && c.chosen <= c.experts);
  if (c.ranks == 1 && c.capacity == 0) return 1;
  const double worst = c.ranks * static_cast<double>(std::min(c.chosen, c.experts / c.ranks)) / static_cast<double>(c.chosen);
  double factor = 1;
  switch (load.kind) {
    case ExpertLoad::Kind::Balanced: break;
    case ExpertLoad::Kind::Equal: factor = by_chance(c); break;
    case ExpertLoad::Kind::Gini:
    case ExpertLoad::Kind::Zipf: factor = drawn_once(load, c); break;
    case ExpertLoad::Kind::Factor: factor = load.value; break;
    case ExpertLoad::Kind::Worst: factor = worst; break;
    case ExpertLoad::Kind::Measured: factor = where_they_lie(load.of_layer(c.mixture), c); break;
  }
  return std::clamp(factor, c.capacity > 0 ? 0.0 : 1.0, worst);
}

}  // namespace foreshard
