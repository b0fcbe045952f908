// The largest model that can be trained on a cluster when more and more of it lies in host memory or on drives, and what that costs.
// Sizes are those of one family of decoders whose hidden size is 128 times the number of layers, as in GPT-3 175B (12288 / 96) and
// Llama-2-7B (4096 / 32).
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

// Number `step` of the family, 2 and up, each larger than the one before: `step` layers, a hidden size of 256 x (step / 2).
Model family_member(SizedFamily family, int step, std::int64_t seq);
inline constexpr int kLargestStep = 256;  // hidden 32768: some 3.3e12 parameters

// One way to train: what lies where. ZeRO shards over all GPUs.
struct FitWay {
  std::string name = {};
  std::string what = {};  // one line for people
  int zero = 0;           // of several GPUs
  OffloadChoice offload = {};
  std::string policy = Strategy{}.policy;  // a runtime policy says the two above
};
std::vector<FitWay> fit_ways(bool drives);
// The first way of fit_ways, and each of these runtime policies.
std::vector<FitWay> fit_policies(const std::vector<std::string>& policies);

enum class Binds : std::uint8_t { GpuMemory, HostMemory, Drives, Family };  // Family: its largest member fits
const char* name_of(Binds binds);

struct Fit {
  FitWay way = {};
  std::optional<Model> model = {};  // the largest; empty: none fits
  std::int64_t parameters = 0;
  std::int64_t micro_batch = 0;  // the fastest one, in sequences
  Seconds iteration = {};        // of it, as the light clock plays it
  double tokens_per_s = 0;       // of all GPUs
  Binds binds = Binds::GpuMemory;
  std::string why = {};  // what is in the way of the next larger one, in full
  // Against the way that keeps everything on the GPUs, both on the largest model of that way: 1 is as fast. Empty: no such model.
  std::optional<double> speed = {};
};

struct FitOptions {
  SizedFamily family = SizedFamily::Llama;
  int gpus = 1;
  std::int64_t seq = 2048;
  std::vector<std::string> policies = {};     // these instead of offload with nobody's name
  Strategy base = {};                         // precision, recomputation, framework ...
  const std::atomic<bool>* stop = nullptr;    // set: no further way is looked at
  std::function<void(double)> progress = {};  // share done
};
// In the order of fit_ways or fit_policies, whose first one keeps everything on the GPUs.
std::vector<Fit> largest_models(const Cluster& cluster, const FitOptions& options);

}  // namespace foreshard
