// A candidate that meets a bug of ours is reported, and the search goes on.
#include "strategy/search/search_failures.h"

#include <gtest/gtest.h>

#include <new>

#include "core/base/error.h"
#include "core/profile/machine_profile.h"
#include "tests/strategy/support_search.h"

namespace foreshard::search_failures_test {

namespace {

Strategy of_tp(int tp) {
  Strategy strategy;
  strategy.tp = tp;
  return strategy;
}

// A search over three strategies, of which some throw. Its result has those that did not.
SearchResult searched(const SearchOptions& options, const std::function<void(int tp)>& evaluate) {
  SearchResult result;
  for (const int tp : {4, 2, 1})
    if (isolated(
            options, [&] { return of_tp(tp); }, [&] { evaluate(tp); }))
      result.ranked.push_back({.strategy = of_tp(tp)});
  return result;
}

std::variant<SearchResult, Infeasible> collected(const std::function<void(int tp)>& evaluate) {
  return collecting_failures({}, [&](const SearchOptions& options) -> std::variant<SearchResult, Infeasible> {
    SearchResult result = searched(options, evaluate);
    if (result.ranked.empty()) return Infeasible{.reason = "no strategy fits"};
    return result;
  });
}

}  // namespace

// Both met the same bug: one entry, with the first strategy in the order of their files (tp 2 before tp 4), whatever came first.
TEST(SearchFailures, TheRestIsFound) {
  const auto answer = collected([](int tp) {
    if (tp > 1) throw Bug("tp is 1 is false (here.cpp:1)");
  });
  const auto& result = std::get<SearchResult>(answer);
  ASSERT_EQ(result.ranked.size(), 1U);
  EXPECT_EQ(result.ranked[0].strategy.tp, 1);
  ASSERT_EQ(result.failed.size(), 1U);
  EXPECT_EQ(result.failed[0].candidates, 2);
  EXPECT_EQ(result.failed[0].strategy.tp, 2);
  EXPECT_EQ(result.failed[0].why, "tp is 1 is false (here.cpp:1)");
}

// Nothing is called infeasible because of a bug.
TEST(SearchFailures, NothingFoundIsNoAnswer) {
  try {
    (void)collected([](int tp) { throw Bug("bug " + std::to_string(tp)); });
    FAIL() << "an answer";
  } catch (const Bug& bug) {
    EXPECT_EQ(std::string(bug.what()), "bug 1; bug 2; bug 4; the search found nothing beside it (no strategy fits)");
  }
}

// What is wrong with the input of all of them is wrong input, and what would hit every other candidate is no matter of one.
TEST(SearchFailures, OtherKindsOfErrors) {
  EXPECT_THROW((void)collected([](int) { throw Error("model: heads: found 0, expected 1"); }), Error);
  EXPECT_THROW((void)collected([](int) { throw std::bad_alloc(); }), std::bad_alloc);
  EXPECT_THROW((void)collected([](int) { throw DeviceError("start of a thread", "none"); }), DeviceError);
}

// Without a collector a candidate's bug is thrown on.
TEST(SearchFailures, NobodyCollects) {
  EXPECT_THROW((void)searched({}, [](int) { throw Bug("bug"); }), Bug);
}

// A real search with a profile that no file can state: all-reduces of two ranks take 116 days, which is more than the costs of a plan can hold. A
// pipeline of two stages has none.
TEST(SearchFailures, ASearchGoesOn) {
  Model model = layers("gpt2-355m", 4);
  std::get<Transformer>(model.shape).tied_embeddings = false;  // else both stages sum the gradients of the table
  const Cluster two = workstation(2);
  MachineProfile profile{.device = two.gpus.front().name, .link_bandwidth = {1e10}};
  for (const MeasuredLink link : {MeasuredLink::Process, MeasuredLink::NvLink, MeasuredLink::Pcie})
    for (const CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter})
      profile.collectives.push_back({.kind = kind, .link = link, .ranks = 2, .bytes = {1 << 20}, .time = {1e7}});
  SearchOptions all = options(8, 128);
  all.refine = 100, all.prune = all.stages = false, all.profile = &profile;
  all.fixed = {"overlap", "zero_group", "sequence_parallel", "placement", "recompute"};
  const auto answer = search(model, two, all);
  const auto* result = std::get_if<SearchResult>(&answer);
  ASSERT_NE(result, nullptr) << std::get<Infeasible>(answer).reason;
  ASSERT_FALSE(result->ranked.empty());
  for (const Candidate& found : result->ranked) EXPECT_EQ(found.point.pp, 2);
  ASSERT_FALSE(result->failed.empty());
  EXPECT_EQ(result->failed[0].strategy.pp, 1);
  EXPECT_NE(result->failed[0].why.find("costs of"), std::string::npos) << result->failed[0].why;
}

}  // namespace foreshard::search_failures_test
