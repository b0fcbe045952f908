// The largest model that a cluster can train when more and more of it is offloaded to host memory or to drives, and how much slower that
// is. Models are members of one family of decoders whose hidden size is 128 times the number of layers, as in GPT-3 175B (12288 / 96)
// and Llama-2-7B (4096 / 32).
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"

namespace foreshard {

enum class SizedFamily : std::uint8_t { Gpt, Llama };
const char* name_of(SizedFamily family);  // gpt, llama

// The member of the family with `step` layers (2 or more) and a hidden size of 256 x (step / 2), rounded down; `seq`: tokens of a sequence.
// Each member is larger than the one before.
Model family_member(SizedFamily family, int step, std::int64_t seq);
inline constexpr int kLargestStep = 256;  // hidden 32768: some 3.3e12 parameters

// One way to train: what is offloaded to where. ZeRO shards over all GPUs.
struct FitWay {
  std::string name = {};
  std::string what = {};  // description for a table
  int zero = 0;           // ZeRO stage, where there are several GPUs
  OffloadChoice offload = {};
  std::string policy = Strategy{}.policy;  // a runtime policy, which decides the two above; its default: none
};
// Ways from no offload to the most; `drives`: with those that use NVMe drives.
std::vector<FitWay> fit_ways(bool drives);
// The first way of fit_ways (no offload), then one way for each of these runtime policies.
std::vector<FitWay> fit_policies(const std::vector<std::string>& policies);

// Which memory is too small for the next larger member. Family: none, the largest member fits.
enum class Binds : std::uint8_t { GpuMemory, HostMemory, Drives, Family };
const char* name_of(Binds binds);

struct Fit {
  FitWay way = {};
  std::optional<Model> model = {};  // the largest that fits; empty: none fits
  std::int64_t parameters = 0;
  std::int64_t micro_batch = 0;  // in sequences; the one with the most tokens per second
  Seconds iteration = {};        // time of one iteration with it, replayed on the light clock
  double tokens_per_s = 0;       // of all GPUs together
  Binds binds = Binds::GpuMemory;
  std::string why = {};  // the reason why the next larger member does not fit
  bool bug = false;      // the way met a bug of ours, which `why` says; nothing else is known of it
  // Tokens per second over those of the first way, which keeps everything on the GPUs, both with the largest model of that first way.
  // Empty: the first way fits no model, or this way does not fit that model.
  std::optional<double> speed = {};
};

struct FitOptions {
  SizedFamily family = SizedFamily::Llama;
  int gpus = 1;
  std::int64_t seq = 2048;
  std::vector<std::string> policies = {};     // runtime policies to compare; empty: the ways of fit_ways
  Strategy base = {};                         // all other choices: precision, recomputation, framework ...
  const std::atomic<bool>* stop = nullptr;    // when it becomes true, no further way is tried
  std::function<void(double)> progress = {};  // share of the ways that are done
};
// One Fit per way, in the order of fit_ways or fit_policies.
std::vector<Fit> largest_models(const Cluster& cluster, const FitOptions& options);

}  // namespace foreshard
