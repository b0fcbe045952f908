// What a searched plan gains over pure data parallelism and over GPipe with equal stages: eight GPUs on NVLink, on PCIe, and in eight
// nodes with 25 Gb/s Ethernet. All three are searched in their own space and simulated; 0: does not fit.
#include <benchmark/benchmark.h>

#include <algorithm>

#include "core/cluster_file/cluster_file.h"
#include "core/json/json.h"
#include "core/json/json_edit.h"
#include "sim/simulate.h"
#include "strategy/search/search.h"
#include "strategy/tune/tune.h"

namespace foreshard {

namespace {

Cluster cluster_of(const std::string& links) {
  if (links != "25gbe") return load_cluster(links == "nvlink" ? "dgx-a100" : "pcie-a100-8");
  const std::string path = cluster_file("eth25-a100").path;
  std::string text = with_json_value(read_file(path), "gpus_per_node", "1", "bench");
  text = with_json_value(text, "pcie.switches", "1", "bench");
  return with_nodes(parse_cluster(text, path), 8);
}

// Seconds of the best plan of a space on the simulator; 0: nothing fits.
double best(const Model& model, const Cluster& cluster, const SearchOptions& options) {
  auto answer = search(model, cluster, options);
  auto* result = std::get_if<SearchResult>(&answer);
  if (!result) return 0;
  rerank(result->ranked, 3, Objective::Time, 0, [&](const std::vector<const Candidate*>& next) {
    std::vector<std::optional<double>> seconds;
    for (const Candidate* candidate : next) {
      const auto lowered = tuned_plan(model, cluster, candidate->strategy);
      seconds.emplace_back(simulate(std::get<Lowered>(lowered).plan, cluster, {.granularity = Granularity::Stage}).makespan_s);
    }
    return seconds;
  });
  return result->ranked.front().seconds();
}

void hybrid(benchmark::State& state, const std::string& name, const std::string& links, std::int64_t batch, std::int64_t seq) {
  const Model model = load_model(name);
  const Cluster cluster = cluster_of(links);
  SearchOptions any;
  any.base.batch.global = batch, any.base.batch.seq = seq;
  SearchOptions data = any, pipeline = any;
  data.base.zero.stage = 0, data.fixed = {"tp", "cp", "pp", "zero"};
  pipeline.base.pipeline.schedule = Schedule::GPipe, pipeline.base.dp = 1;
  pipeline.balance = false;
  pipeline.fixed = {"tp", "cp", "dp", "schedule", "virtual_stages"};
  double found = 0, over_data = 0, over_pipeline = 0;
  for (auto _ : state) {
    found = best(model, cluster, any);
    over_data = best(model, cluster, data) / found, over_pipeline = best(model, cluster, pipeline) / found;
  }
  state.counters["hybrid_ms"] = 1e3 * found;
  state.counters["over_dp"] = over_data;
  state.counters["over_gpipe"] = over_pipeline;
}

const int registered = [] {
  struct Job {
    const char* model;
    std::int64_t batch, seq;
  };
  for (const Job& job :
       {Job{"vgg-16", 256, 0}, Job{"resnet-50", 256, 0}, Job{"bert-large", 64, 512}, Job{"gpt2-1.5b", 32, 1024}})
    for (const char* links : {"nvlink", "pcie", "25gbe"})
      benchmark::RegisterBenchmark((std::string("hybrid/") + job.model + "/" + links).c_str(),
                                   [=](benchmark::State& state) { hybrid(state, job.model, links, job.batch, job.seq); })
          ->Iterations(1)
          ->Unit(benchmark::kSecond);
  return 0;
}();

}  // namespace

}  // namespace foreshard
