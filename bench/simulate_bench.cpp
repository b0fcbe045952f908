// Lowering, simulation, memory timeline and summary of whole jobs; nothing is kept between repetitions. The targets stand in
// docs/performance.md.
#include <benchmark/benchmark.h>

#include <utility>

#include "core/cluster_file/cluster_file.h"
#include "report/summary/summarize.h"
#include "sim/simulate.h"
#include "strategy/tune/tune.h"

namespace foreshard {
namespace {

struct Job {
  const char* model;
  const char* cluster;
  int pp;
  Granularity granularity;
  Folding folding;
  int layers = 0;  // of the model; 0: its own
};

void play(benchmark::State& state, const Job& job) {
  Model model = load_model(job.model);
  if (job.layers > 0) std::get<Transformer>(model.shape).layers = job.layers;
  const Cluster cluster = load_cluster(job.cluster);
  Strategy strategy{.tp = 8, .pp = job.pp};
  strategy.batch.global = 1536;
  if (job.layers > 0) strategy.batch.global = 48 * 8;
  double events = 0;
  for (auto _ : state) {
    auto answer = tuned_plan(model, cluster, strategy, {.ignore_memory = true});
    Plan& plan = std::get<Lowered>(answer).plan;
    const Result result = simulate(std::move(plan), cluster, {.granularity = job.granularity, .folding = job.folding});
    const Summary summary = summarize(result, cluster, {.tokens_per_sample = 2048, .model_flops_per_sample = {1e15}});
    benchmark::DoNotOptimize(summary);
    events = static_cast<double>(result.engine_events);
  }
  state.counters["events"] = events;
}

#define FORESHARD_JOB(name, ...) BENCHMARK_CAPTURE(play, name, Job{__VA_ARGS__})->Unit(benchmark::kMillisecond)->MinTime(0.5)

FORESHARD_JOB(gpt3_4096_stage, "gpt3-175b", "dgx-a100-x512", 16, Granularity::Stage, Folding::Full);
FORESHARD_JOB(gpt3_4096_layer, "gpt3-175b", "dgx-a100-x512", 16, Granularity::Layer, Folding::Full);
FORESHARD_JOB(gpt3_16384_layer, "gpt3-175b", "dgx-a100-x2048", 16, Granularity::Layer, Folding::Full);
FORESHARD_JOB(gpt3_48_layers_512_unfolded_stage, "gpt3-175b", "dgx-a100-x64", 8, Granularity::Stage, Folding::None, 48);

void lower_only(benchmark::State& state) {
  const Model model = load_model("gpt3-175b");
  const Cluster cluster = load_cluster("dgx-a100-x512");
  const Strategy strategy{.tp = 8, .pp = 16, .batch = {.global = 1536}};
  for (auto _ : state) benchmark::DoNotOptimize(tuned_plan(model, cluster, strategy, {.ignore_memory = true}));
}
BENCHMARK(lower_only)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace foreshard
