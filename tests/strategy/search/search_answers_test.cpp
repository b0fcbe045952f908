// What a search answers, drawn at random over models, clusters and frameworks: what it ranks is what a prediction of the same strategy says,
// and a part of the space has no faster winner than the whole.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>

#include "core/cluster_file/cluster_file.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/search/search.h"
#include "strategy/search/search_framework.h"
#include "strategy/tune/tune.h"
#include "strategy/verdict/verdict.h"
#include "tests/how_many.h"
#include "tests/strategy/support_search.h"

namespace foreshard::search_answers_test {
namespace {

struct Question {
  Model model;
  Cluster cluster;
  SearchOptions options;
  std::string said;  // what was drawn, in a person's words
};

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  template <class T>
  T one_of(const std::vector<T>& all) {
    return all[random_() % all.size()];
  }

 private:
  std::mt19937 random_;
};

Question draw(Draw& random, const std::string& framework) {
  struct Shape {
    const char* name;
    int layers;
  };
  const Shape shape = random.one_of<Shape>({{"llama-3-8b", 32},
                                            {"llama-2-13b", 10},
                                            {"gpt2-355m", 24},
                                            {"qwen3-30b-a3b", 8},
                                            {"llama-2-70b", 8},
                                            {"mixtral-8x7b", 4}});
  const auto cluster = random.one_of<std::string>({"dgx-a100", "dgx-h100", "dgx-h100-x2", "eth25-a100-x2", "dgx-a100-x4"});
  const auto batch = random.one_of<std::int64_t>({32, 64, 96, 128});
  const auto seq = random.one_of<std::int64_t>({2048, 4096, 8192});
  Question made{layers(shape.name, how_many(std::max(2, shape.layers / 6), shape.layers)),
                load_cluster(cluster),
                options(batch, seq),
                {}};
  made.options.base.framework = framework;
  made.options.noise = random.one_of<double>({0, 0.003});
  made.said = std::string(shape.name) + ", " + std::to_string(shape.layers) + " layers, " + cluster + ", " + framework +
              ", batch " + std::to_string(batch) + " of " + std::to_string(seq) + " tokens";
  return made;
}

// Empty: nothing fits.
std::vector<Candidate> ranked(const Question& asked, const SearchOptions& options) {
  auto answer = search(asked.model, asked.cluster, options);
  auto* result = std::get_if<SearchResult>(&answer);
  if (!result) return {};
  EXPECT_TRUE(result->failed.empty()) << asked.said << ": " << result->failed.front().why;
  return std::move(result->ranked);
}

// A row against a prediction of the strategy that its file holds.
void compare(const Question& asked, const Candidate& row) {
  const std::string file = to_json(row.strategy);
  SCOPED_TRACE(asked.said + ", " + file);
  const Strategy read = parse_strategy(file, "row.json");
  const auto made = tuned_plan(asked.model, asked.cluster, read, {.ignore_memory = true});
  const auto* lowered = std::get_if<Lowered>(&made);
  ASSERT_TRUE(lowered) << std::get<Infeasible>(made).reason;
  const Verdict judged = verdict(asked.model, asked.cluster, *lowered);
  EXPECT_STREQ(name_of(judged.kind), name_of(row.verdict.kind)) << judged.reason;
  EXPECT_NEAR(judged.probability, row.verdict.probability, 1e-9);
  const double seconds = refine(*lowered, asked.cluster).time.value;
  EXPECT_NEAR(seconds, row.estimate.time.value, 1e-9 * seconds);
  if (const auto runner = find_runner(read.framework)) EXPECT_EQ(why_not_run_by(*runner, lowered->strategy), "");
}

}  // namespace

// All frameworks in turn.
TEST(SearchAnswers, WhatIsRankedIsWhatAPredictionSays) {
  Draw random(61);
  const int rows = how_many(2, 500), each = how_many(1, 12);
  int compared = 0;
  std::map<std::string, int> by_framework;
  for (int i = 0; compared < rows; ++i) {
    ASSERT_LT(i, 10 * rows);
    const Question asked = draw(random, framework_names()[static_cast<std::size_t>(i) % framework_names().size()]);
    const std::vector<Candidate> found = ranked(asked, asked.options);
    for (std::size_t row = 0; row < found.size() && row < static_cast<std::size_t>(each); ++row, ++compared)
      compare(asked, found[row]), ++by_framework[asked.options.base.framework];
  }
  RecordProperty("rows", compared);
  for (const auto& [framework, count] : by_framework) std::printf("%s %d\n", framework.c_str(), count);
}

// One option is fixed to a value: the fastest of that part is no faster than the fastest of the whole space.
TEST(SearchAnswers, APartHasNoFasterWinnerThanTheWhole) {
  Draw random(62);
  const int pairs = how_many(1, 40);
  int compared = 0;
  for (int i = 0; compared < pairs; ++i) {
    ASSERT_LT(i, 10 * pairs);
    const std::vector<std::string> frameworks = {"megatron", "torchtitan", "nemo", "deepspeed", "nanotron", "foreshard"};
    Question asked = draw(random, frameworks[static_cast<std::size_t>(i) % frameworks.size()]);
    asked.options.noise = 0;
    const std::vector<Candidate> whole = ranked(asked, asked.options);
    if (whole.empty()) continue;
    for (int part = 0; part < 2 && compared < pairs; ++part) {
      SearchOptions fixed = asked.options;
      const auto axis = random.one_of<std::string>({"tp", "pp", "cp", "ep", "micro_batch", "zero", "recompute"});
      // Of any ranked strategy, so that the part is not empty.
      const Strategy& some = whole[random.one_of<std::size_t>({1, 3, 7, 15, 31}) % whole.size()].strategy;
      if (!some.stages.empty()) continue;
      Strategy& base = fixed.base;
      fixed.fixed = {axis};
      if (axis == "tp") base.tp = some.tp;
      if (axis == "pp") base.pp = some.pp;
      if (axis == "cp") base.cp = some.cp;
      if (axis == "ep") base.experts.ep = some.experts.ep;
      if (axis == "micro_batch") base.batch.micro = some.batch.micro;
      if (axis == "zero") base.zero = some.zero;
      if (axis == "recompute") base.recompute = some.recompute;
      const std::vector<Candidate> of_part = ranked(asked, fixed);
      if (of_part.empty()) continue;
      ++compared;
      const Candidate &best = of_part.front(), &best_of_all = whole.front();
      EXPECT_LE(best_of_all.seconds(), best.seconds() * 1.003)
          << asked.said << ", " << axis << " fixed: " << best_of_all.seconds() << " s by " << to_json(best_of_all.strategy)
          << "\nagainst " << best.seconds() << " s by " << to_json(best.strategy);
    }
  }
}

// Spaces of published runs of which a part once had a faster winner: tensor collectives and experts' all-to-alls on streams of their own
// were not counted.
TEST(SearchAnswers, KnownPartsHaveNoFasterWinner) {
  if (!all_of_it()) GTEST_SKIP() << "takes minutes: scripts/long_checks.sh tests";
  struct Known {
    const char *model, *cluster, *framework;
    DType precision;
    std::int64_t seq, batch;
    std::function<void(SearchOptions&)> part;
  };
  const std::vector<Known> all = {
      {"gpt3-175b", "dgx-a100-x8", "megatron", DType::BF16, 2048, 64, [](SearchOptions& o) { o.max_tp = 8; }},
      {"qwen3-235b-a22b", "dgx-h100-x32", "megatron-bridge", DType::F8, 4096, 2048,
       [](SearchOptions& o) { o.base.experts.ep = 8, o.fixed = {"ep"}; }},
      {"deepseek-v3", "gb200-nvl72-x4", "megatron-bridge", DType::F8, 4096, 4608, [](SearchOptions& o) {
         o.base.tp = 8, o.base.pp = 9, o.base.experts.ep = 8, o.fixed = {"tp", "pp", "ep"};
       }}};
  for (const Known& known : all) {
    Question asked{load_model(known.model), load_cluster(known.cluster), options(known.batch, known.seq), known.model};
    asked.options.base.framework = known.framework, asked.options.base.precision = known.precision, asked.options.threads = 0;
    SearchOptions part = asked.options;
    known.part(part);
    const std::vector<Candidate> whole = ranked(asked, asked.options), of_part = ranked(asked, part);
    ASSERT_FALSE(whole.empty() || of_part.empty()) << known.model;
    std::printf("%s: %.3f s, of a part %.3f s\n", known.model, whole.front().seconds(), of_part.front().seconds());
    EXPECT_LE(whole.front().seconds(), of_part.front().seconds() * 1.003) << known.model;
  }
}

}  // namespace foreshard::search_answers_test
