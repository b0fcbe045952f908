#include "strategy/residency/parameter_stays.h"

#include <gtest/gtest.h>

namespace foreshard {

// Four layers, the first one twice as large. One ahead: two are there at once, and the places of a pass alternate.
//
//   moment      0   1   2   3 | 4   5   6   7
//   use         0   1   2   3 | 3   2   1   0
//   first stays [0] ...         a stay from its `brought` to its `released_after`
TEST(ParameterStays, PlacesOfOneSizeAreARing) {
  const std::vector<ParameterUnit> units = {{"0", 20}, {"1", 10}, {"2", 10}, {"3", 10}};
  const std::vector<UnitUse> uses = step_order(4);
  const Residency residency = residency_of({.rule = BlockRule{.ahead_forward = 1, .ahead_backward = 1}}, units, uses);
  const Places places = places_of_stays(units, residency, true);
  ASSERT_EQ(places.sizes.size(), 1U);
  EXPECT_EQ(places.sizes[0].elements, 20);
  EXPECT_EQ(places.sizes[0].places, 2);
  std::vector<int> taken;
  for (const Places::Place& place : places.of_stay) taken.push_back(place.place);
  EXPECT_EQ(taken, (std::vector<int>{0, 1, 0, 1, 0, 1, 0, 1}));
}

// Of 10 elements: two at once; of 20: layer 0 is alone.
TEST(ParameterStays, PlacesOfOwnSizeAreAsManyAsLieThereAtOnce) {
  const std::vector<ParameterUnit> units = {{"0", 20}, {"1", 10}, {"2", 10}, {"3", 10}};
  const std::vector<UnitUse> uses = step_order(4);
  const Residency residency = residency_of({.rule = BlockRule{.ahead_forward = 1, .ahead_backward = 1}}, units, uses);
  const Places places = places_of_stays(units, residency, false);
  ASSERT_EQ(places.sizes.size(), 2U);
  EXPECT_EQ(places.sizes[0].places, 2);
  EXPECT_EQ(places.sizes[1].elements, 20);
  EXPECT_EQ(places.sizes[1].places, 1);
  const Residency all = residency_of({.rule = BlockRule{.keep_after_forward = true}}, units, uses);
  EXPECT_EQ(places_of_stays(units, all, false).sizes[0].places, 3);
}

// Two stays in one place do not overlap.
TEST(ParameterStays, NoTwoInOnePlace) {
  const std::vector<ParameterUnit> units = {{"0", 3}, {"1", 5}, {"2", 5}, {"3", 5}, {"4", 5}, {"5", 3}};
  const std::vector<UnitUse> uses = step_order(6, {{1, 2}, {3, 4}});
  for (const std::int64_t reuse : {0, 6, 20, 100})
    for (const std::int64_t prefetch : {0, 4, 9})
      for (const bool one_size : {true, false}) {
        const ModuleRule rule{.persist_threshold = 0, .prefetch = prefetch, .live_cap = 14, .reuse_distance = reuse};
        const Residency residency = residency_of({.rule = rule}, units, uses);
        const Places places = places_of_stays(units, residency, one_size);
        for (std::size_t a = 0; a < residency.stays.size(); ++a)
          for (std::size_t b = a + 1; b < residency.stays.size(); ++b) {
            const bool together =
                places.of_stay[a].size == places.of_stay[b].size && places.of_stay[a].place == places.of_stay[b].place;
            if (!together) continue;
            EXPECT_LT(residency.stays[a].released_after, residency.stays[b].brought);
          }
      }
}

TEST(ParameterStays, SaysWhatKeeps) {
  EXPECT_FALSE((ParameterStays{.rule = BlockRule{.ahead_forward = 2}}.keeps()));
  EXPECT_TRUE((ParameterStays{.rule = BlockRule{.keep_after_forward = true}}.keeps()));
  EXPECT_TRUE((ParameterStays{.rule = ModuleRule{}}.keeps()));
  EXPECT_FALSE((ParameterStays{.rule = ModuleRule{.prefetch = 0, .reuse_distance = 0}}.keeps()));
}

}  // namespace foreshard
