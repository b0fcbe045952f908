// Hardware that can only help makes no plan slower: whole iterations, simulated. Links that are shared by load can make a plan slower when one
// of them gets faster, for another transfer then arrives earlier and shares with a third: by at most 1 %. More NICs move the places at
// which rings enter a node, and can make them longer: at most one in a hundred of such pairs is slower by more.
#include <gtest/gtest.h>

#include <cstdio>

#include "sim/simulate.h"
#include "tests/how_many.h"
#include "tests/strategy/support_machine.h"
#include "tests/strategy/support_search.h"

namespace foreshard::whole_plan_laws_test {
namespace {

// Degrees of all GPUs of the machine.
Strategy on_all(RandomChoice& random, int gpus) {
  Strategy s = random_strategy(random);
  s.precision = DType::BF16, s.batch.seq = 512;
  s.cp = 1, s.zero.group = 0;
  s.dp = gpus / (s.tp * s.pp);
  s.batch.global = s.batch.micro * s.dp * s.pp * random(1, 3);
  return s;
}

// Seconds of one iteration; empty: this strategy is refused.
std::optional<double> seconds(const Model& model, const Cluster& cluster, const Strategy& strategy) {
  const auto made = tuned_plan(model, cluster, strategy, {.ignore_memory = true});
  const auto* lowered = std::get_if<Lowered>(&made);
  return lowered ? std::optional(simulate(lowered->plan, cluster).makespan_s) : std::nullopt;
}

}  // namespace

TEST(HardwareLaws, WholePlansAreNotSlowerOnBetterHardware) {
  RandomChoice random(62);
  const int wanted = how_many(40, 1000);
  int pairs = 0, faster = 0, slower = 0, more_nics = 0, longer_rings = 0;
  for (int draw = 0; pairs < wanted && draw < 4 * wanted; ++draw) {
    Machine before = random_machine(random), after = before;
    const bool gpus = random(0, 2) == 0;
    std::string what = gpus ? "" : improve(after, random);
    const Cluster slow = parse_cluster(before.text(), "before.json");
    Cluster fast = parse_cluster(after.text(), "after.json");
    if (gpus) what = improve_gpus(fast, random);
    const Model model = layers(random.toss() ? "gpt2-355m" : "llama-2-7b", 8);
    const Strategy strategy = on_all(random, 8 * before.nodes);
    const auto first = seconds(model, slow, strategy), second = seconds(model, fast, strategy);
    ASSERT_EQ(first.has_value(), second.has_value()) << what << "\n" << before.text();
    if (!first) continue;
    ++pairs, faster += *second < *first ? 1 : 0;
    if (*second > *first * (1 + 1e-4)) {
      ++slower;
      std::printf("%.6g ms, with better %s %.6g ms: %s, %s\n", 1e3 * *first, what.c_str(), 1e3 * *second, after.text().c_str(),
                  to_json(strategy).c_str());
    }
    more_nics += what == "NICs" ? 1 : 0;
    if (what == "NICs" && *second > *first * 1.01) {
      ++longer_rings;
      continue;
    }
    EXPECT_LE(*second, *first * 1.01) << what << "\n" << before.text() << "\n" << after.text() << "\n" << to_json(strategy);
  }
  EXPECT_LE(longer_rings, 0.01 * more_nics + 1);
  EXPECT_EQ(pairs, wanted);
  EXPECT_GT(faster, wanted / 3);
  std::printf("%d pairs, %d of them slower by more than 0.01 %%\n", pairs, slower);
}

}  // namespace foreshard::whole_plan_laws_test
