// The timeline with 1024 lanes and a million slices: building its levels of detail, one frame of 1600 x 1024 pixels zoomed out and
// in, and finding what is under the mouse. CPU time of all threads, software raster.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <random>

#include "gui/document/timeline_frame.h"

namespace foreshard {
namespace {

constexpr int kLanes = 1024, kSlices = 1'000'000 / kLanes;

Document make_scene() {
  Document document;
  std::mt19937 random(1);
  std::int64_t end = 0;
  for (int c = 0; c < kLanes; ++c) {
    const ClassId who = {c};
    document.result.trace.classes.push_back({{0}, {{c}}});
    document.lanes.of_class.push_back({c, -1, -1, -1});
    document.lanes.first_bubble.push_back(static_cast<std::int32_t>(document.bubbles.size()));
    Lane lane{.who = who};
    std::int64_t at = 0;
    for (int i = 0; i < kSlices; ++i) {
      const std::int64_t idle = random() % 4 == 0 ? static_cast<std::int64_t>(random() % 100'000) : 0;
      const std::int64_t length = 20'000 + static_cast<std::int64_t>(random() % 180'000);
      if (idle > 0)
        document.bubbles.push_back({who, {at}, {at + idle}, static_cast<BubbleCause>(random() % kBubbleCauses), -1});
      lane.push({at + idle}, {at + idle + length}, i, {static_cast<Paint>(random() % 5), 0, true});
      at += idle + length;
    }
    end = std::max(end, at);
    document.lanes.all.push_back(std::move(lane));
  }
  document.lanes.first_bubble.push_back(static_cast<std::int32_t>(document.bubbles.size()));
  document.result.trace.makespan = {end};
  return document;
}

struct Scene {
  Document document = make_scene();
  Paints paints = paints_of(theme_of(ThemeName::Dark));
  TimeRange whole = {{0}, document.trace().makespan};
  std::vector<LaneLevels> levels = make_levels(document.lanes, whole, paints);
  std::vector<Row> rows = {};

  Scene() {
    for (int c = 0; c < kLanes; ++c) rows.push_back({.key = {c, {}}, .members = {{{c}, 1}}, .top = c, .height = 1});
  }
};

const Scene& scene() {
  static const Scene shared;
  return shared;
}

void Levels(benchmark::State& state) {
  for (auto step : state) benchmark::DoNotOptimize(make_levels(scene().document.lanes, scene().whole, scene().paints));
}
BENCHMARK(Levels)->Unit(benchmark::kMillisecond);

// Arguments: one part in this many of the time is visible; pixels of a row; with levels of detail or all slices drawn.
void Frame(benchmark::State& state) {
  std::vector<Row> rows = scene().rows;
  for (Row& row : rows) row.height = static_cast<int>(state.range(1)), row.top = row.key.group * row.height;
  const FrameSources sources{.document = &scene().document,
                             .levels = state.range(2) ? &scene().levels : nullptr,
                             .theme = theme_of(ThemeName::Dark),
                             .paints = scene().paints};
  const std::int64_t length = scene().whole.end.value / state.range(0), begin = (scene().whole.end.value - length) / 2;
  const FrameView view{{{begin}, {begin + length}}, 1600, 1024, 0, 1};
  for (auto step : state) benchmark::DoNotOptimize(draw_frame(sources, rows, view));
}
BENCHMARK(Frame)
    ->ArgNames({"part", "row", "levels"})
    ->Args({1, 1, 1})
    ->Args({1, 1, 0})
    ->Args({3, 1, 1})
    ->Args({100, 1, 1})
    ->Args({1, 24, 1})
    ->Args({100, 24, 1})
    ->Args({10'000, 24, 1})
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

void Hit(benchmark::State& state) {
  std::mt19937 random(2);
  std::uint64_t found = 0;
  for (auto step : state) {
    const int row = row_at(scene().rows, static_cast<int>(random() % kLanes));
    const ClassId who = scene().rows[static_cast<std::size_t>(row)].shown();
    const auto when = static_cast<std::int64_t>(random()) * scene().whole.end.value / 4'294'967'296;
    const auto slice = scene().document.lanes.find(who, LaneKind::Compute)->slice_at(when);
    found +=
        slice ? *slice : static_cast<std::uint64_t>(bubble_at(scene().document.lanes, scene().document.bubbles, who, when));
  }
  benchmark::DoNotOptimize(found);
}
BENCHMARK(Hit);

void Memory(benchmark::State& state) {
  for (auto step : state) benchmark::DoNotOptimize(scene().levels.size());
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_MB"] = static_cast<double>(usage.ru_maxrss) / 1024;
}
BENCHMARK(Memory)->Iterations(1);

}  // namespace
}  // namespace foreshard
