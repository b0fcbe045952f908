// What screening says of families before all points are looked at.
#include "strategy/search/search_screening.h"

#include <gtest/gtest.h>

#include "tests/strategy/support_search.h"

namespace foreshard {

// Four nodes of eight GPUs with one NIC each: a family is as good as its best point that fits, played; what no play knows (more than 16 ranks, splitting
// schedules) says nothing, nor does what does not fit.
TEST(Screening, OnlyWhatIsPlayedSaysHowGoodAFamilyIs) {
  const Model model = layers("gpt2-355m", 32);
  const Cluster cluster = load_cluster("eth25-a100-x4");
  SearchOptions only = options(64, 512);
  only.base.reserve = 0.94;
  only.fixed = {"tp", "cp", "micro_batch", "recompute", "overlap", "sequence_parallel", "placement", "zero_group"};
  const SearchSpace space = search_space(model, cluster, only);
  const Screen screen(model, cluster, only.base);
  SearchCosts costs(screen, space, model, cluster, only);
  for (std::size_t job = 0; job < costs.jobs(); ++job) costs.measure(job);
  const Screening screening(cluster, only, space, &screen, &costs);
  Tally tally(1, 1, 0);
  int played = 0, full = 0, unknown = 0;
  for (std::size_t grid = 0; grid < space.grids.size(); ++grid)
    for (const Schedule schedule : {Schedule::OneFOneB, Schedule::GPipe, Schedule::ZeroBubbleH1}) {
      Point point = space.grids[grid];
      if (point.pp < 2 || 64 % point.dp != 0) continue;
      Family family;
      for (const std::int8_t zero : {0, 1, 2, 3})
        for (const int overlap : {0, 1, 2, 3}) {
          point.micro_batch = 1, point.zero = zero, point.schedule = schedule;
          point.overlap_gradients = overlap % 2 == 1, point.overlap_p2p = overlap / 2 == 1;
          const auto order = static_cast<std::int64_t>((grid << 32) + family.variants.size());
          family.variants.push_back({.order = order, .point = point});
        }
      const double best = screening.best_played(family, tally);
      if (point.pp > Ways::kMost || schedule == Schedule::ZeroBubbleH1) {
        EXPECT_EQ(best, kNever) << point.pp;
        ++unknown;
        continue;
      }
      double least = kNever, of_all = kNever;
      for (const Kept& kept : family.variants) {
        const Screened screened = screen.at(kept.point, *costs.shape(kept.point), costs.grid(grid, kept.point));
        of_all = std::min(of_all, screened.time);
        if (screened.needs <= screen.capacity()) least = std::min(least, screened.time);
      }
      EXPECT_EQ(best, least) << point.pp;
      played += (least < kNever);
      full += (least > of_all);
    }
  EXPECT_GE(played, 4);
  EXPECT_GE(full, 2);
  EXPECT_GE(unknown, 4);
}

}  // namespace foreshard
