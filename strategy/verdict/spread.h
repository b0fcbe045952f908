// How far predictions are from measured runs of which they knew nothing: accuracy/residuals.json, which
// `foreshard validate FILE... --residuals FILE` writes, has the errors of every source whose runs were compared.
//
// An interval is a promise to somebody whose run is in no table, so it is made of errors between sources (docs/validation.md,
// "Prediction intervals").
// Of ln(measured / predicted), for a run with framework f on GPU generation g that trains a model of kind k:
//
//   centre   f was compared on g: m of the other sources' runs with f on g, of kind k: sum of their medians / (their number + 1).
//            Else the median over all sources of kind k
//   between  standard deviation of sources' medians around such centres, 1.25 times the mean of |deviation|. f was compared on g: of
//            sources with others like them, and of one as far off as any. That deviation s counts as one source beside the n with
//            f on g: variance (s^2 + sum (m_i - mean)^2) / n, times 1 + 1 / (n + 1). Else of all sources around the median of all
//   within   standard deviation of the runs of a source around its median, joined the same way
//   kind     factor of experts and of adapters on `between`: ratio of their mean |deviation| to that of dense models, with the weight of
//            their sources against eight sources with factor 1
//   length   factor on the whole, of times only: (6,000 / t) ^ 0.3 for micro-batches of t tokens that are short, (t / 60,000) ^ 0.3 for
//            long ones, whichever is larger, up to 3. Short ones are bound by the host, long ones by attention and by the exchange of
//            its keys and values; of both less is known
//
//   interval = centre + length sqrt(between^2 + within^2) [z(5 %), z(95 %)]
//
// where z are the quantiles of the errors of every source in the same units, predicted without it, every source with the same weight. Its
// tails are as heavy as those of the sources; with n sources 5 % (1 - 1/n) are cut from each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/result/summary.h"

namespace foreshard {

// Standard deviations from the mean of a normal distribution to each end of its central 90 %.
inline constexpr double kNinetyPercent = 1.6449;

enum class ModelKind : std::uint8_t { Dense, Experts, Adapters };

// The errors of one source's runs with one framework on one generation of GPU.
struct ComparedRuns {
  std::string source = {}, framework = {}, architecture = {};  // of peak memory, which no GPU changes: no architecture
  ModelKind kind = ModelKind::Dense;                           // of peak memory: Dense with experts, too
  bool memory = false;
  int rows = 0;
  struct Error {
    double log_ratio = 0;  // ln(measured / predicted) of the time, or of the memory
    double tokens = 0;     // of a micro-batch; 0: unknown
    bool operator==(const Error&) const = default;
  };
  std::vector<Error> errors = {};  // evenly spaced quantiles by log_ratio, or all
  bool operator==(const ComparedRuns&) const = default;
};
std::string to_json(const std::vector<ComparedRuns>& runs);
std::vector<ComparedRuns> parse_compared(const std::string& text, const std::string& file_name);  // throws Error

// In 90 of 100 cases measured / predicted lies between `low` and `high`.
struct Spread {
  enum class Basis : std::uint8_t {
    Nothing,    // there is no source
    ThisGpu,    // sources with this framework on this generation of GPU, and of this kind
    OtherGpus,  // the framework was compared, but not so
    NoRuns      // no run of the framework was ever compared
  };
  double low = 1, high = 1;
  Basis basis = Basis::Nothing;
  int sources = 0, rows = 0;  // of the framework, on this generation of GPU where `basis` says so; NoRuns: of all others
  bool gpu_compared = true;   // some run on this generation of GPU was compared
  bool operator==(const Spread&) const = default;
};

// What is known of a run that is predicted.
struct PredictedRun {
  std::string framework = {}, architecture = {};
  ModelKind kind = ModelKind::Dense;
  double tokens = 0;  // of a micro-batch; 0: unknown
};

class Comparisons {
 public:
  explicit Comparisons(std::vector<ComparedRuns> runs);
  Comparisons without(const std::string& source) const;
  const std::vector<ComparedRuns>& runs() const { return *runs_; }

  Spread times(const PredictedRun& run) const;
  Spread memory(const PredictedRun& run) const;  // `architecture` and `tokens` do not matter
  Spread constant(bool memory) const;            // of constant width, for comparison

 private:
  class Errors;  // of times, or of memory
  std::shared_ptr<const std::vector<ComparedRuns>> runs_;
  std::shared_ptr<const Errors> times_, memory_;
};

// What accuracy/residuals.json says; read once. Throws Error when it cannot be read.
const Comparisons& shipped_comparisons();

// The framework whose runs say most about this one: itself, or where no run of it was compared the one of which it is a variant.
std::string compared_framework(const Comparisons& of, const std::string& framework);

// How peak memory that is predicted for the strategy's framework compares with measured memory.
Spread memory_spread(const Comparisons& of, const std::string& framework, bool adapters);

// On what an interval rests, in one sentence without its full stop: "compared with 9 sources of this framework on this GPU generation (166
// runs)".
std::string words_of(const Spread& spread, const std::string& architecture);

// Whether a run that is predicted to fill this share of the device's memory may or may not run out of it, for all that is known: the limit
// lies within the spread.
bool is_close(double filled, const Spread& spread);

}  // namespace foreshard
