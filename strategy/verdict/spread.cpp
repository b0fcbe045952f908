#include "strategy/verdict/spread.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "core/base/data_path.h"
#include "core/base/error.h"
#include "core/base/quantile.h"
#include "core/json/json.h"
#include "strategy/cost/framework_preset.h"

namespace foreshard {

namespace {

constexpr double kKindWeight = 8;                            // sources with factor 1 against those of a kind
constexpr double kWithinWeight = 3;                          // sources with the mean of all against those of a kind
constexpr double kShortTokens = 6000, kLongTokens = 60'000;  // of a micro-batch, where `length` is 1
constexpr double kLengthPower = 0.3, kMostLength = 3;
constexpr double kOfAll = 1;  // sources as which the deviations of all count beside those of a framework on a GPU
constexpr double kMeanToDeviation = 1.2533;  // of |x| of a normal distribution
constexpr std::array<const char*, 3> kKinds = {"dense", "experts", "adapters"};

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

struct Weighted {
  double value = 0, weight = 1;
};
double weighted_quantile(std::vector<Weighted> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values, {}, &Weighted::value);
  double all = 0, sum = 0;
  for (const Weighted& each : values) all += each.weight;
  for (const Weighted& each : values)
    if ((sum += each.weight) >= share * all) return each.value;
  return values.back().value;
}

double length_factor(double tokens) {
  return tokens > 0 ? std::min(std::pow(std::max(kShortTokens / tokens, tokens / kLongTokens), kLengthPower), kMostLength) : 1;
}

std::size_t place(ModelKind kind) { return static_cast<std::size_t>(kind); }

}  // namespace

class Comparisons::Errors {
 public:
  Errors(const std::vector<ComparedRuns>& all, bool memory) {
    for (const ComparedRuns& runs : all)
      if (runs.memory == memory && !runs.errors.empty()) parts_.push_back(part_of(runs));
    measure_scales();
    measure_tails();
  }

  Spread spread(const PredictedRun& run) const {
    if (parts_.empty()) return {};
    const Scale scale = scale_of(run, "");
    const double width = length_factor(run.tokens) * scale.deviation;
    Spread spread{.low = std::exp(scale.centre + tails_[0] * width), .high = std::exp(scale.centre + tails_[1] * width)};
    std::set<std::string> here, elsewhere, others;
    std::array<int, 3> rows = {};
    spread.gpu_compared = false;
    for (const Part& part : parts_) {
      spread.gpu_compared |= part.runs->architecture == run.architecture;
      const bool same = part.runs->framework == run.framework,
                 like = same && part.runs->architecture == run.architecture && part.runs->kind == run.kind;
      (like ? here : same ? elsewhere : others).insert(part.runs->source);
      rows[like ? 0 : same ? 1 : 2] += part.runs->rows;
    }
    using enum Spread::Basis;
    spread.basis = !here.empty() ? ThisGpu : !elsewhere.empty() ? OtherGpus : NoRuns;
    spread.sources = static_cast<int>((!here.empty() ? here : !elsewhere.empty() ? elsewhere : others).size());
    spread.rows = rows[!here.empty() ? 0 : !elsewhere.empty() ? 1 : 2];
    return spread;
  }

  Spread constant() const {
    std::vector<Weighted> all;
    for (const Part& part : parts_)
      for (const ComparedRuns::Error& error : part.runs->errors) all.push_back({error.log_ratio, weight_of(part)});
    return {.low = std::exp(weighted_quantile(all, 0.05)), .high = std::exp(weighted_quantile(all, 0.95))};
  }

 private:
  struct Part {
    const ComparedRuns* runs = nullptr;
    double median = 0, length = 1, within = -1;  // -1: too few runs
  };
  struct Scale {
    double centre = 0, deviation = 0;
  };

  static Part part_of(const ComparedRuns& runs) {
    constexpr int kLeastRows = 4;
    Part part{.runs = &runs};
    std::vector<double> ratios, around, lengths;
    for (const ComparedRuns::Error& error : runs.errors) ratios.push_back(error.log_ratio);
    part.median = quantile(ratios, 0.5);
    for (const ComparedRuns::Error& error : runs.errors) {
      around.push_back((error.log_ratio - part.median) / length_factor(error.tokens));
      lengths.push_back(std::log(length_factor(error.tokens)));
    }
    part.length = std::exp(mean(lengths));
    if (runs.rows >= kLeastRows) part.within = (quantile(around, 0.95) - quantile(around, 0.05)) / (2 * kNinetyPercent);
    return part;
  }

  // The weight of an error among all: sources alike, and the parts of a source.
  double weight_of(const Part& part) const {
    const auto parts =
        std::ranges::count_if(parts_, [&](const Part& other) { return other.runs->source == part.runs->source; });
    return 1.0 / static_cast<double>(static_cast<std::size_t>(parts) * part.runs->errors.size());
  }

  // The medians of sources, of several parts their mean.
  static std::vector<double> medians_of(const std::vector<const Part*>& parts) {
    std::map<std::string, std::vector<double>> by_source;
    for (const Part* part : parts) by_source[part->runs->source].push_back(part->median);
    std::vector<double> all;
    for (const auto& [source, values] : by_source) all.push_back(mean(values));
    return all;
  }

  // Parts of other sources than `without` with the run's framework, GPU generation and kind.
  std::vector<const Part*> like(const PredictedRun& run, const std::string& without) const {
    std::vector<const Part*> found;
    for (const Part& part : parts_)
      if (part.runs->source != without && part.runs->framework == run.framework &&
          part.runs->architecture == run.architecture && part.runs->kind == run.kind &&
          run.framework != "unknown")  // the word for frameworks without a preset
        found.push_back(&part);
    return found;
  }

  double usual(const PredictedRun& run, const std::string& without) const {
    constexpr std::size_t kLeastSources = 3;
    std::vector<const Part*> alike, all;
    for (const Part& part : parts_) {
      if (part.runs->source == without) continue;
      all.push_back(&part);
      if (part.runs->kind == run.kind) alike.push_back(&part);
    }
    const std::vector<double> of_kind = medians_of(alike);
    return quantile(of_kind.size() >= kLeastSources ? of_kind : medians_of(all), 0.5);
  }

  static PredictedRun as_run(const Part& part) {
    return {.framework = part.runs->framework, .architecture = part.runs->architecture, .kind = part.runs->kind};
  }

  static double centre_of(const std::vector<double>& medians) {
    return mean(medians) * static_cast<double>(medians.size()) / static_cast<double>(medians.size() + 1);
  }

  void measure_scales() {
    std::map<std::pair<ModelKind, std::string>, std::vector<double>> known, any, within;
    for (const Part& part : parts_) {
      const PredictedRun run = as_run(part);
      const std::pair key{part.runs->kind, part.runs->source};
      const std::vector<const Part*> others = like(run, part.runs->source);
      if (!others.empty()) known[key].push_back(std::abs(part.median - centre_of(medians_of(others))) / part.length);
      any[key].push_back(std::abs(part.median - usual(run, part.runs->source)) / part.length);
      if (part.within >= 0) within[key].push_back(part.within);
    }
    std::array<std::vector<double>, 3> of_kind, within_of;
    std::vector<double> within_all;
    for (const auto& [key, values] : any) of_kind[place(key.first)].push_back(mean(values));
    for (const auto& [key, values] : within)
      within_of[place(key.first)].push_back(mean(values)), within_all.push_back(mean(values));
    const double dense = mean(of_kind[place(ModelKind::Dense)]);
    for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
      const auto n = static_cast<double>(of_kind[kind].size()), m = static_cast<double>(within_of[kind].size());
      factor_[kind] = dense > 0 ? (mean(of_kind[kind]) * n / dense + kKindWeight) / (n + kKindWeight) : 1;
      within_[kind] = (mean(within_of[kind]) * m + kWithinWeight * mean(within_all)) / (m + kWithinWeight);
    }
    const auto deviation = [&](const auto& of) {
      std::vector<double> scaled;
      for (const auto& [key, values] : of) scaled.push_back(mean(values) / factor_[place(key.first)]);
      return kMeanToDeviation * mean(scaled);
    };
    const auto n = static_cast<double>(known.size());
    between_new_ = deviation(any);
    between_known_ = std::min(between_new_, (deviation(known) * n + between_new_) / (n + 1));
  }

  Scale scale_of(const PredictedRun& run, const std::string& without) const {
    const double factor = factor_[place(run.kind)];
    double within = within_[place(run.kind)] * within_[place(run.kind)];
    const std::vector<const Part*> others = like(run, without);
    if (others.empty()) {
      const double between = between_new_ * factor;
      return {.centre = usual(run, without), .deviation = std::sqrt(between * between + within)};
    }
    const std::vector<double> medians = medians_of(others);
    const auto n = static_cast<double>(medians.size());
    const double centre = mean(medians);
    double squares = kOfAll * between_known_ * factor * between_known_ * factor;
    for (const double median : medians) squares += (median - centre) * (median - centre);
    double counted = kOfAll;
    within *= kOfAll;
    for (const Part* part : others)
      if (part->within >= 0) within += part->within * part->within, ++counted;
    return {.centre = centre_of(medians),
            .deviation = std::sqrt(squares / (kOfAll + n - 1) * (1 + 1 / (n + 1)) + within / counted)};
  }

  void measure_tails() {
    std::vector<Weighted> all;
    std::set<std::string> sources;
    for (const Part& part : parts_) {
      sources.insert(part.runs->source);
      const Scale scale = scale_of(as_run(part), part.runs->source);
      for (const ComparedRuns::Error& error : part.runs->errors)
        if (scale.deviation > 0)
          all.push_back({(error.log_ratio - scale.centre) / (scale.deviation * length_factor(error.tokens)), weight_of(part)});
    }
    if (all.empty()) return;
    const double tail = 0.05 * (1 - 1 / static_cast<double>(sources.size()));
    tails_ = {weighted_quantile(all, tail), weighted_quantile(all, 1 - tail)};
  }

  std::vector<Part> parts_ = {};
  std::array<double, 3> factor_ = {1, 1, 1}, within_ = {};  // [kind]
  double between_known_ = 0, between_new_ = 0;
  std::array<double, 2> tails_ = {-kNinetyPercent, kNinetyPercent};
};

Comparisons::Comparisons(std::vector<ComparedRuns> runs) {
  const auto kept = std::make_shared<const std::vector<ComparedRuns>>(std::move(runs));
  runs_ = kept;
  times_ = std::make_shared<const Errors>(*kept, false), memory_ = std::make_shared<const Errors>(*kept, true);
}

Comparisons Comparisons::without(const std::string& source) const {
  std::vector<ComparedRuns> others = *runs_;
  std::erase_if(others, [&](const ComparedRuns& each) { return each.source == source; });
  return Comparisons(std::move(others));
}

Spread Comparisons::times(const PredictedRun& run) const { return times_->spread(run); }
Spread Comparisons::memory(const PredictedRun& run) const {
  Spread spread =
      memory_->spread({.framework = run.framework, .kind = run.kind == ModelKind::Experts ? ModelKind::Dense : run.kind});
  spread.gpu_compared = true;
  return spread;
}
Spread Comparisons::constant(bool memory) const { return (memory ? memory_ : times_)->constant(); }

const Comparisons& shipped_comparisons() {
  static const std::string path = data_directory() + "/accuracy/residuals.json";
  static const Comparisons comparisons(parse_compared(read_file(path), path));
  return comparisons;
}

std::string to_json(const std::vector<ComparedRuns>& all) {
  JsonWriter json;
  json.begin_object().field("source", "foreshard validate FILE... --residuals FILE");
  json.key("runs").begin_array();
  for (const ComparedRuns& runs : all) {
    json.begin_object().field("source", runs.source).field("framework", runs.framework);
    if (!runs.memory) json.field("architecture", runs.architecture);
    if (runs.memory) json.field("memory", true);
    if (runs.kind != ModelKind::Dense) json.field("kind", kKinds[place(runs.kind)]);
    json.field("rows", runs.rows);
    for (const auto& [name, value] :
         {std::pair("errors", &ComparedRuns::Error::log_ratio), {"tokens", &ComparedRuns::Error::tokens}}) {
      if (runs.memory && value == &ComparedRuns::Error::tokens) continue;
      json.key(name).begin_line_array();
      for (const ComparedRuns::Error& error : runs.errors) json.value(error.*value);
      json.end_array();
    }
    json.end_object();
  }
  return json.end_array().end_object().text();
}

std::vector<ComparedRuns> parse_compared(const std::string& text, const std::string& file_name) {
  const JsonReader json = JsonReader::parse(text, file_name);
  json.only({"source", "runs"});
  std::vector<ComparedRuns> all;
  for (const JsonReader& each : json.at("runs").elements()) {
    each.only({"source", "framework", "architecture", "memory", "kind", "rows", "errors", "tokens"});
    ComparedRuns runs{.source = each.at("source").as_string(),
                      .framework = each.at("framework").as_string(),
                      .architecture = each.has("architecture") ? each.at("architecture").as_string() : "",
                      .memory = each.has("memory") && each.at("memory").as_bool(),
                      .rows = static_cast<int>(each.at("rows").as_int(1, 1'000'000))};
    if (each.has("kind")) {
      const std::string word = each.at("kind").as_string();
      const auto found = std::ranges::find(kKinds, word);
      if (found == kKinds.end()) throw Error(file_name, "kind", word, "dense, experts or adapters");
      runs.kind = static_cast<ModelKind>(found - kKinds.begin());
    }
    for (const JsonReader& error : each.at("errors").elements()) runs.errors.push_back({.log_ratio = error.as_double(-7, 7)});
    std::size_t at = 0;
    if (each.has("tokens"))
      for (const JsonReader& tokens : each.at("tokens").elements())
        if (at < runs.errors.size()) runs.errors[at++].tokens = tokens.as_double(0, 1e12);
    all.push_back(std::move(runs));
  }
  return all;
}

std::string compared_framework(const Comparisons& of, const std::string& framework) {
  const auto is = [&](const ComparedRuns& runs) { return runs.framework == framework; };
  if (std::ranges::any_of(of.runs(), is) || !std::ranges::count(framework_names(), framework)) return framework;
  const std::string& like = framework_preset(framework).like;
  return like.empty() ? framework : like;
}

Spread memory_spread(const Comparisons& of, const std::string& framework, bool adapters) {
  return of.memory({.framework = compared_framework(of, framework), .kind = adapters ? ModelKind::Adapters : ModelKind::Dense});
}

std::string words_of(const Spread& spread, const std::string& architecture) {
  const auto percent = [](double share) { return std::to_string(std::lround(100 * std::max(0.0, share))) + " %"; };
  const auto count = [](int n, const std::string& what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); };
  const std::string such =
      "such came out " + percent(1 - 1 / spread.high) + " too fast to " + percent(1 / spread.low - 1) + " too slow";
  std::string words;
  switch (spread.basis) {
    case Spread::Basis::Nothing: return "no run was ever compared";
    case Spread::Basis::ThisGpu:
      words = "compared with " + count(spread.sources, "source") + " of this framework on this GPU generation (" +
              count(spread.rows, "run") + ")";
      break;
    case Spread::Basis::OtherGpus:
      words = "this framework was compared, but not with such models on this GPU generation (" +
              count(spread.sources, "source") + "): " + such;
      break;
    case Spread::Basis::NoRuns: words = "no run of this framework was ever compared: " + such; break;
  }
  if (!spread.gpu_compared) words += "; no run on a GPU of generation " + architecture + " was ever compared";
  return words;
}

bool is_close(double filled, const Spread& spread) {
  return filled <= 1 ? filled * std::max(1.0, spread.high) > 1 : filled * std::min(1.0, spread.low) <= 1;
}

}  // namespace foreshard
