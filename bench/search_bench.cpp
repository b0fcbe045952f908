// How many strategies a core screens per second, and what the steps around it cost.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cmath>

#include "core/cluster_file/cluster_file.h"
#include "strategy/estimate/estimate_screen.h"
#include "strategy/partition/partition_hybrid.h"
#include "strategy/recompute/layer_choice.h"

namespace foreshard {

namespace {

struct Gpt3 {
  Model model = load_model("gpt3-175b");
  Cluster cluster = load_cluster("dgx-a100-x512");
  Strategy base = {};
  Gpt3() { base.batch.global = 4096; }
};
constexpr Point kPoint{.tp = 8,
                       .pp = 16,
                       .virtual_stages = 2,
                       .dp = 32,
                       .micro_batch = 1,
                       .sequence_parallel = true,
                       .zero = 1,
                       .schedule = Schedule::Interleaved};

void screen_point(benchmark::State& state) {
  const Gpt3 job;
  const Screen screen(job.model, job.cluster, job.base);
  const ShapeCosts shape = screen.shape(kPoint).value();
  const GridCosts grid = screen.grid(kPoint);
  Point point = kPoint;
  for (auto _ : state) {
    point.zero = static_cast<std::int8_t>((point.zero + 1) % 4);
    benchmark::DoNotOptimize(screen.at(point, shape, grid));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(screen_point);

void screen_shape(benchmark::State& state) {
  const Gpt3 job;
  const Screen screen(job.model, job.cluster, job.base);
  for (auto _ : state) benchmark::DoNotOptimize(screen.shape(kPoint));
}
BENCHMARK(screen_shape)->Unit(benchmark::kMillisecond);

void screen_grid(benchmark::State& state) {
  const Gpt3 job;
  const Screen screen(job.model, job.cluster, job.base);
  for (auto _ : state) benchmark::DoNotOptimize(screen.grid(kPoint));
}
BENCHMARK(screen_grid)->Unit(benchmark::kMillisecond);

// Exponents of the time of an exact partition in devices and in layers around 96 layers on 512 devices: log2 of what twice as many take, the least of
// three measurements each.
template <class Partition>
void exponents(benchmark::State& state, Partition run) {
  const auto seconds = [&](int layers, int devices) {
    double least = 1e300;
    for (int again = 0; again < 3; ++again) {
      const auto begin = std::chrono::steady_clock::now();
      run(layers, devices);
      least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    return least;
  };
  for (auto _ : state) {
    const double one = seconds(96, 512);
    state.counters["seconds"] = one;
    state.counters["in_devices"] = std::log2(seconds(96, 1024) / one);
    state.counters["in_layers"] = std::log2(seconds(192, 512) / one);
  }
}

// With tensor groups of 1, 2, 4 and 8, each a little less than twice as fast as half as many; memory for a third of the layers.
void partition_hybrid_exponents(benchmark::State& state) {
  exponents(state, [](int layers, int devices) {
    HybridJob job{.devices = devices, .microbatches = 64, .link = 10, .capacity = layers / 3.0};
    double times = 1;
    for (const int degree : {1, 2, 4, 8}) {
      TensorDegree each{.degree = degree, .inside = 8 / degree, .near = 10, .far = 1};
      for (int i = 0; i < layers; ++i)
        each.layers.push_back({times * (1 + 0.01 * (i % 7)), times * (2 + 0.02 * (i % 5)), 1.0 / degree, 0.1, 1.0 / degree});
      job.degrees.push_back(std::move(each));
      times *= 0.55;
    }
    benchmark::DoNotOptimize(partition_hybrid(job));
  });
}
BENCHMARK(partition_hybrid_exponents)->Iterations(1);

// 96 layers, 22 strategies that are the faster the more memory they take, three kinds of layers in turn, 80 GiB; on a grid of
// 64 MiB and exactly. How much slower the grid's answer is.
LayerChoiceJob many_layers() {
  constexpr double kGib = 1 << 30;
  LayerChoiceJob job{.memory = 80 * kGib};
  for (int i = 0; i < 96; ++i) {
    std::vector<LayerOption> options;
    for (int s = 0; s < 22; ++s) {
      const double bytes = (0.2 + 0.1 * s + 0.013 * ((i % 3) * s % 5)) * kGib;
      options.push_back({0.01 * (1 + (i % 3)) * (1 + 1.0 / (1 + s)) + 0.0001 * (s * 7 % 5), bytes});
    }
    job.layers.push_back(std::move(options));
  }
  job.switching.assign(22, std::vector<double>(22, 0.0005));
  for (std::size_t s = 0; s < 22; ++s) job.switching[s][s] = 0;
  return job;
}

void layer_choice_grid(benchmark::State& state) {
  const LayerChoiceJob job = many_layers();
  LayerChoice found;
  for (auto _ : state) found = layer_choice_on_grid(job, 80 * 16);
  state.counters["seconds"] = found.seconds;
  state.counters["over_exact"] = found.seconds / layer_choice_exact(job).seconds - 1;
}
BENCHMARK(layer_choice_grid)->Unit(benchmark::kMillisecond)->Iterations(3);

void layer_choice_pareto(benchmark::State& state) {
  const LayerChoiceJob job = many_layers();
  std::size_t front = 0;
  for (auto _ : state) front = layer_choice_front(job).size();
  state.counters["front"] = static_cast<double>(front);
}
BENCHMARK(layer_choice_pareto)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace

}  // namespace foreshard
