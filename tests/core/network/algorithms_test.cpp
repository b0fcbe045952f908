// The table of algorithms: every enumerator has an entry and a word, and a ring takes the place of what does not apply.
#include "core/network/algorithms.h"

#include <gtest/gtest.h>

#include <set>

#include "core/plan/plan_words.h"

namespace foreshard::algorithms_test {
namespace {

TEST(AlgorithmTable, EveryAlgorithmHasOneEntryAndOneWord) {
  std::set<Algorithm> seen;
  for (const AlgorithmEntry& entry : algorithm_table()) {
    EXPECT_TRUE(seen.insert(entry.algorithm).second) << word(entry.algorithm);
    EXPECT_TRUE(entry.applies && entry.phases && entry.volume) << word(entry.algorithm);
    EXPECT_EQ(&algorithm_entry(entry.algorithm), &entry);
  }
  EXPECT_EQ(seen.size(), words<Algorithm>().size());
  EXPECT_EQ(std::set<std::string>(words<Algorithm>().begin(), words<Algorithm>().end()).size(), seen.size());
  EXPECT_EQ(algorithm_table().front().algorithm, Algorithm::Ring);  // what others are compared with
}

// Whatever the kind and the number of members: where an algorithm does not apply its messages, links and volume are a ring's.
TEST(AlgorithmTable, ARingTakesThePlaceOfWhatDoesNotApply) {
  int rings = 0;
  for (const AlgorithmEntry& entry : algorithm_table())
    for (const CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter, CollectiveKind::AllGather,
                                      CollectiveKind::Broadcast, CollectiveKind::Reduce})
      for (int n = 2; n <= 12; ++n) {
        const Collective what{.kind = kind, .algorithm = entry.algorithm, .bytes = {6400}}, ring{.kind = kind, .bytes = {6400}};
        if (algorithm_applies(what, n)) continue;
        ++rings;
        EXPECT_EQ(collective_rounds(what, n).rounds, collective_rounds(ring, n).rounds);
      }
  EXPECT_GT(rings, 100);
  EXPECT_EQ(collective_volume(CollectiveKind::AllGather, Algorithm::Tree, {6400}, 5).bytes,
            collective_volume(CollectiveKind::AllGather, Algorithm::Ring, {6400}, 5).bytes);
}

}  // namespace
}  // namespace foreshard::algorithms_test
