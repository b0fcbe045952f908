// How unevenly tokens choose experts: the texts of the option, published tables of the most loaded rank, and laws of all kinds.
#include "core/op/expert_load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

#include "core/base/error.h"

namespace foreshard::expert_load_test {
namespace {

using Kind = ExpertLoad::Kind;

// ---- texts -----------------------------------------------------------------------------------------------------------------------

TEST(ExpertLoad, TextsAreReadAndWritten) {
  const struct {
    const char* text;
    ExpertLoad load;
  } rows[] = {{"balanced", {}},
              {"equal", {.kind = Kind::Equal}},
              {"worst", {.kind = Kind::Worst}},
              {"gini:0.15", {Kind::Gini, 0.15}},
              {"zipf:0.5", {Kind::Zipf, 0.5}},
              {"zipf:10", {Kind::Zipf, 10}},
              {"1.3", {Kind::Factor, 1.3}}};
  for (const auto& row : rows) {
    EXPECT_EQ(parse_expert_load(row.text, "test"), row.load) << row.text;
    EXPECT_EQ(to_text(row.load), row.text);
  }
  EXPECT_EQ(parse_expert_load("1", "test"), ExpertLoad{});  // as much as the mean is balanced
}

// Layer by layer, in any unit; the text of a file's loads lists them.
TEST(ExpertLoad, MeasuredLoadsAreReadAndWritten) {
  const ExpertLoad load = parse_expert_load("loads:3,1,0.5,0;1,1,1,1", "test");
  EXPECT_EQ(load, (ExpertLoad{.kind = Kind::Measured, .measured = {{3, 1, 0.5, 0}, {1, 1, 1, 1}}}));
  EXPECT_EQ(to_text(load), "loads:3,1,0.5,0;1,1,1,1");
  const std::string file = ::testing::TempDir() + "expert_loads.json";
  const auto reading = [&](const std::string& text) {
    std::ofstream(file) << text;
    try {
      return to_text(parse_expert_load("file:" + file, "test"));
    } catch (const Error& error) {
      return std::string(error.what()).substr(std::string(error.what()).find("expert_loads.json: ") + 19);
    }
  };
  const std::string begin = R"({"format": "foreshard-expert-loads", "layers": )";
  EXPECT_EQ(reading(begin + "[[3, 1, 0.5, 0], [1, 1, 1, 1]]}"), "loads:3,1,0.5,0;1,1,1,1");
  EXPECT_EQ(reading(begin + "[[3, 1], [1, 1, 1]]}"), "layers[1]: found 3 experts, expected 2, as in the first layer");
  EXPECT_EQ(reading(begin + "[[]]}"), "layers[0]: found 0 experts, expected at least one");
  EXPECT_EQ(reading(begin + "[[0, 0]]}"), "layers[0]: found no tokens, expected at least one expert that tokens chose");
  EXPECT_EQ(reading(begin + "[]}"), "layers: found none, expected the loads of at least one layer");
  EXPECT_NE(reading(begin + "[[1, -1]]}").find("layers[0][1]"), std::string::npos);
  EXPECT_NE(reading(R"({"format": "other", "layers": [[1]]})").find("format"), std::string::npos);
  EXPECT_THROW(parse_expert_load("file:/nowhere/loads.json", "test"), Error);
  EXPECT_THROW(parse_expert_load("loads:1,x", "test"), Error);
  EXPECT_THROW(parse_expert_load("loads:1,2;3", "test"), Error);
}

// Where the experts lie: consecutive ones on a rank, or dealt out over `dealt_over` ranks.
TEST(ExpertLoad, MeasuredLoadsOfRanks) {
  const ExpertLoad load{.kind = Kind::Measured, .measured = {{4, 2, 1, 1}, {1, 1, 1, 5}}};
  const ExpertChoices of = {.experts = 4, .chosen = 1, .ranks = 2, .tokens = 800};
  const auto with = [&](int mixture, int dealt_over, double capacity) {
    ExpertChoices c = of;
    c.mixture = mixture, c.dealt_over = dealt_over, c.capacity = capacity;
    return most_loaded(load, c);
  };
  EXPECT_DOUBLE_EQ(with(0, 0, 0), 2 * 6.0 / 8);  // experts 0 and 1
  EXPECT_DOUBLE_EQ(with(0, 2, 0), 2 * 5.0 / 8);  // experts 0 and 2
  EXPECT_DOUBLE_EQ(with(1, 0, 0), 2 * 6.0 / 8);  // experts 2 and 3
  EXPECT_DOUBLE_EQ(with(7, 0, 0), 2 * 6.0 / 8);  // a module after the last layer: its loads
  // 800 choices: 400, 200, 100, 100. At most 150 of an expert: 150 + 150 of 800.
  EXPECT_DOUBLE_EQ(with(0, 0, 150), 2 * 300.0 / 800);
}

TEST(ExpertLoad, WrongTextsAreRefusedWithWhatWouldDo) {
  for (const char* text :
       {"",       "Balanced", "balanced ", "even",  "gini",   "gini:",   "gini:0",    "gini:1",    "gini:1.5", "gini:-0.1",
        "gini:x", "gini:nan", "zipf",      "zipf:", "zipf:0", "zipf:-1", "zipf:11",   "zipf:inf",  "0.99",     "0",
        "-1",     "1.3x",     " 1.3",      "nan",   "inf",    "1e7",     "gini: 0.1", "gini:0.1x", "zipf:0.5 "})
    try {
      parse_expert_load(text, "strategy.json");
      ADD_FAILURE() << "taken: \"" << text << "\"";
    } catch (const Error& error) {
      const std::string message = error.what();
      for (const std::string& part : {std::string("strategy.json"), std::string("expert_load"),
                                      *text == 0 ? std::string("nothing") : "\"" + std::string(text) + "\"",
                                      std::string("gini:0.15"), std::string("zipf:0.5")})
        EXPECT_NE(message.find(part), std::string::npos) << message;
    }
}

// ---- numbers that others found ------------------------------------------------------------------------------------------------------

ExpertChoices choices(std::int64_t experts, std::int64_t chosen, int ranks, double tokens_of_a_rank = 4096) {
  return {.experts = experts, .chosen = chosen, .ranks = ranks, .tokens = tokens_of_a_rank * ranks};
}

// Simulated with equal experts. With few rows on many ranks the loads are skewed, which the normal formula, 1.31, does not see.
TEST(ExpertLoad, EqualExpertsAreAsSimulated) {
  const ExpertLoad equal{.kind = Kind::Equal};
  EXPECT_NEAR(most_loaded(equal, choices(256, 8, 8)), 1.008, 0.01);
  EXPECT_NEAR(most_loaded(equal, choices(256, 8, 64)), 1.014, 0.01);
  EXPECT_NEAR(most_loaded(equal, choices(8, 2, 8)), 1.014, 0.01);
  EXPECT_NEAR(most_loaded(equal, choices(8, 2, 8, 512)), 1.042, 0.01);
  EXPECT_NEAR(most_loaded(equal, choices(128, 8, 128, 8)), 1.31, 0.01);
  EXPECT_NEAR(most_loaded(equal, choices(128, 8, 128, 8)), 1.33, 0.03);
}

// Mean over `times` draws: every token chooses different experts, each as likely as any other.
double simulated(const ExpertChoices& c, int times) {
  std::mt19937 random(5);
  double sum = 0;
  std::vector<std::int64_t> all(static_cast<std::size_t>(c.experts));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  for (int n = 0; n < times; ++n) {
    std::vector<double> rows(static_cast<std::size_t>(c.ranks));
    for (double t = 0; t < c.tokens; ++t)
      for (std::size_t j = 0; j < static_cast<std::size_t>(c.chosen); ++j) {
        std::swap(all[j], all[j + random() % (all.size() - j)]);
        rows[static_cast<std::size_t>(all[j] / (c.experts / c.ranks))] += 1;
      }
    sum += *std::max_element(rows.begin(), rows.end()) * c.ranks / (c.tokens * static_cast<double>(c.chosen));
  }
  return sum / times;
}

TEST(ExpertLoad, EqualExpertsAreAsDrawn) {
  for (const ExpertChoices& c : {choices(8, 2, 8, 512), choices(8, 2, 4, 256), choices(64, 6, 8, 128), choices(64, 6, 16, 256),
                                 choices(32, 1, 32, 200), choices(16, 8, 2, 64)})
    EXPECT_NEAR(most_loaded({.kind = Kind::Equal}, c), simulated(c, 200), 0.01) << c.experts << " over " << c.ranks;
}

// max/mean of rank loads; the last column of a row with as many ranks as experts is the hottest expert.
TEST(ExpertLoad, LognormalExpertsAreAsInTheTable) {
  const double ginis[] = {0.105, 0.15, 0.24, 0.38};
  const struct {
    std::int64_t experts;
    int ranks;
    double factors[4];
  } rows[] = {{64, 8, {1.10, 1.14, 1.24, 1.45}},   {64, 16, {1.18, 1.26, 1.46, 1.88}},  {64, 64, {1.53, 1.82, 2.54, 4.23}},
              {128, 8, {1.07, 1.10, 1.17, 1.31}},  {128, 16, {1.12, 1.18, 1.31, 1.59}}, {128, 32, {1.21, 1.31, 1.56, 2.11}},
              {128, 64, {1.35, 1.54, 2.01, 3.09}}, {256, 8, {1.05, 1.07, 1.12, 1.22}},  {256, 16, {1.09, 1.13, 1.22, 1.40}},
              {256, 32, {1.15, 1.22, 1.38, 1.73}}, {256, 64, {1.24, 1.37, 1.66, 2.35}}, {128, 128, {1.60, 1.94, 2.84, 5.00}}};
  for (const auto& row : rows)
    for (std::size_t i = 0; i < 4; ++i) {
      const double found = most_loaded({Kind::Gini, ginis[i]}, choices(row.experts, 8, row.ranks));
      EXPECT_NEAR(found / row.factors[i], 1, 0.03) << row.experts << " over " << row.ranks << ", gini " << ginis[i];
    }
}

TEST(ExpertLoad, ZipfIsAsInTheTable) {
  const double exponents[] = {0.25, 0.5, 1};
  const struct {
    std::int64_t experts, chosen;
    int ranks;
    double factors[3];
  } rows[] = {{256, 8, 8, {1.08, 1.21, 1.70}},
              {256, 8, 16, {1.15, 1.44, 2.47}},
              {256, 8, 64, {1.50, 2.65, 6.99}},
              {8, 2, 8, {1.33, 1.72, 2.52}}};
  for (const auto& row : rows)
    for (std::size_t i = 0; i < 3; ++i) {
      const double found = most_loaded({Kind::Zipf, exponents[i]}, choices(row.experts, row.chosen, row.ranks));
      EXPECT_NEAR(found / row.factors[i], 1, 0.05) << row.experts << " over " << row.ranks << ", zipf " << exponents[i];
    }
}

// ranks x min(k, E / ranks) / k: every token sends as many rows as it can to one rank.
TEST(ExpertLoad, TheWorstCase) {
  EXPECT_EQ(most_loaded({.kind = Kind::Worst}, choices(256, 8, 64)), 32);
  EXPECT_EQ(most_loaded({.kind = Kind::Worst}, choices(256, 8, 8)), 8);
  EXPECT_EQ(most_loaded({.kind = Kind::Worst}, choices(8, 2, 8)), 4);
  EXPECT_EQ(most_loaded({.kind = Kind::Worst}, choices(8, 2, 4)), 4);
  EXPECT_EQ(most_loaded({.kind = Kind::Worst}, choices(8, 8, 4)), 1);  // all experts are chosen
  EXPECT_EQ(most_loaded({.kind = Kind::Worst}, choices(16, 1, 16)), 16);
}

// ---- laws ------------------------------------------------------------------------------------------------------------------------------

std::vector<ExpertLoad> all_loads() {
  return {{},
          {.kind = Kind::Equal},
          {Kind::Gini, 0.01},
          {Kind::Gini, 0.3},
          {Kind::Gini, 0.99},
          {Kind::Zipf, 0.1},
          {Kind::Zipf, 1},
          {Kind::Zipf, 10},
          {Kind::Factor, 1.25},
          {Kind::Factor, 1e6},
          {.kind = Kind::Worst}};
}

TEST(ExpertLoad, NeverBelowOneNorAboveTheWorstCase) {
  for (const ExpertLoad& load : all_loads())
    for (const std::int64_t experts : {8, 64})
      for (const std::int64_t chosen : {1, 2, 8})
        for (const int ranks : {1, 2, 8})
          for (const double tokens : {1.0, 3.0, 4096.0}) {
            const double found = most_loaded(load, choices(experts, chosen, ranks, tokens));
            const double worst = most_loaded({.kind = Kind::Worst}, choices(experts, chosen, ranks, tokens));
            EXPECT_GE(found, 1) << to_text(load);
            EXPECT_LE(found, worst) << to_text(load);
            if (ranks == 1 || load.kind == Kind::Balanced) {
              EXPECT_EQ(found, 1) << to_text(load);
            }
          }
  EXPECT_EQ(most_loaded({Kind::Factor, 1.25}, choices(64, 2, 8)), 1.25);
  EXPECT_EQ(most_loaded({Kind::Factor, 1e6}, choices(64, 2, 8)), 8);
}

TEST(ExpertLoad, MoreUnevenExpertsAndMoreRanksLoadOneRankMore) {
  for (const Kind kind : {Kind::Gini, Kind::Zipf})
    for (const std::int64_t experts : {64, 128}) {
      for (int ranks = 2; ranks <= 64; ranks *= 2) {
        EXPECT_GT(most_loaded({kind, 0.4}, choices(experts, 4, ranks)), most_loaded({kind, 0.2}, choices(experts, 4, ranks)));
        if (ranks == 64) continue;
        EXPECT_GT(most_loaded({kind, 0.3}, choices(experts, 4, 2 * ranks)),
                  most_loaded({kind, 0.3}, choices(experts, 4, ranks)));
      }
    }
}

// Others may be asked between, and from other threads; how many tokens there are does not matter to what is drawn.
TEST(ExpertLoad, TheSameNumberTwice) {
  std::vector<double> first, again(all_loads().size());
  for (const ExpertLoad& load : all_loads()) first.push_back(most_loaded(load, choices(32, 4, 16)));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < again.size(); ++i)
    threads.emplace_back([&again, i] {
      for (const int ranks : {8, 32}) most_loaded(all_loads()[i], choices(32, 4, ranks));
      again[i] = most_loaded(all_loads()[i], choices(32, 4, 16));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(first, again);
  for (const Kind kind : {Kind::Gini, Kind::Zipf})
    EXPECT_EQ(most_loaded({kind, 0.3}, choices(48, 4, 16, 10)), most_loaded({kind, 0.3}, choices(48, 4, 16, 1000)));
}

}  // namespace
}  // namespace foreshard::expert_load_test
