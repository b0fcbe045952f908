// What search and sweep say of several clusters and points: money, marks, and what was not searched.
#include "cli/parts/quotes.h"

#include <gtest/gtest.h>

#include <regex>

#include "core/json/json.h"
#include "tests/cli/run_line.h"

namespace foreshard::quotes_test {

// Intervals of +-10 %: 100 s and 200 s are apart, 100 s and 105 s are not.
static Quote priced(const std::string& cluster, double seconds, double cost, int gpus) {
  Quote q{.cluster = cluster,
          .gpus = gpus,
          .best = Candidate{},
          .time = {seconds},
          .low = {0.9 * seconds},
          .high = {1.1 * seconds}};
  if (cost > 0) q.cost = cost, q.energy_kwh = cost / 10;
  return q;
}

static std::vector<std::string> notes(const std::vector<Quote>& quotes, Objective objective) {
  std::vector<std::string> all;
  const JsonReader json = JsonReader::parse(quotes_json(quotes, {.objective = objective}), "quotes");
  for (const JsonReader& quote : json.at("quotes").elements())
    all.push_back(quote.has("note") ? quote.at("note").as_string() : "");
  return all;
}

using Notes = std::vector<std::string>;

TEST(Quotes, TheMarkIsOfTheObjective) {
  const std::vector<Quote> quotes = {priced("small", 200, 10, 8), priced("large", 100, 40, 64), priced("like", 105, 60, 64)};
  EXPECT_EQ(notes(quotes, Objective::Time), (Notes{"cheapest", "fastest", "not distinguishable from the fastest"}));
  EXPECT_EQ(notes(quotes, Objective::Cost), (Notes{"cheapest", "", ""}));
  EXPECT_EQ(notes(quotes, Objective::Energy), (Notes{"least energy", "", ""}));
  // Without a price of every cluster nobody is the cheapest: 200 s x 8 GPUs against 100 s x 64.
  const std::vector<Quote> unpriced = {priced("small", 200, 0, 8), priced("large", 100, 40, 64)};
  EXPECT_EQ(notes(unpriced, Objective::Time), (Notes{"", "fastest"}));
  EXPECT_EQ(notes(unpriced, Objective::Cost), (Notes{"least GPU time", ""}));
}

TEST(Quotes, NothingIsComparedWithWhatWasNotSearched) {
  std::vector<Quote> quotes = {priced("a", 200, 10, 8), priced("b", 100, 40, 64), not_searched("c")};
  quotes[1].searched = Searched::Partly;
  const std::string text = quotes_text(quotes, {});
  EXPECT_EQ(text.find("fastest"), std::string::npos) << text;
  EXPECT_NE(text.find("Interrupted. Searched in part: b. Not searched: c. Nothing is compared."), std::string::npos) << text;
  const JsonReader json = JsonReader::parse(quotes_json(quotes, {}), "quotes");
  EXPECT_TRUE(json.at("interrupted").as_bool());
  EXPECT_EQ(json.at("quotes").at(1).at("search").as_string(), "partial");
  EXPECT_EQ(json.at("quotes").at(2).at("search").as_string(), "not searched");
  EXPECT_TRUE(json.at("quotes").at(2).at("feasible").is_null());
  const std::string csv = quotes_csv(quotes, {});
  EXPECT_NE(csv.find("partial\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find("c,,\"not searched\","), std::string::npos) << csv;
}

static const std::string kSearch =
    "search --model gpt2-124m --seq 256 --global-batch 16 --top 0 --refine 4 --fix recompute=none --threads 1 ";

TEST(Quotes, TokensCountForOneClusterToo) {
  const RanLine text = run_line(kSearch + "--cluster dgx-a100 --tokens 2e12");
  EXPECT_NE(text.out.find("\nTraining on 2,000,000,000,000 tokens: "), std::string::npos) << text.out;
  const JsonReader json = JsonReader::parse(run_line(kSearch + "--cluster dgx-a100 --tokens 2e12 --json").out, "search");
  const double step = json.at("results").at(0).at("strategy").at("global_batch").as_double() * 256;  // tokens
  const double seconds = json.at("results").at(0).at("interval").at(0).as_double();
  EXPECT_NEAR(json.at("training").at("interval").at(0).as_double() / (seconds * 2e12 / step), 1, 1e-9);
  EXPECT_FALSE(JsonReader::parse(run_line(kSearch + "--cluster dgx-a100 --json").out, "search").has("training"));
  EXPECT_EQ(run_line(kSearch + "--cluster dgx-a100 --tokens 2e12 --csv").code, ExitCode::WrongInput);
}

TEST(Quotes, TheTableOfAnObjectiveHasItsColumn) {
  EXPECT_EQ(run_line(kSearch + "--cluster dgx-a100").out.find("GPU s  "), std::string::npos);
  const std::string cost = run_line(kSearch + "--cluster dgx-a100 --objective cost --set cluster.price_per_gpu_hour=2").out;
  EXPECT_NE(cost.find("  GPU s  cost per 1M\n"), std::string::npos) << cost;
  EXPECT_NE(run_line(kSearch + "--cluster dgx-a100 --objective energy").out.find("  GPU s  kWh per 1M\n"), std::string::npos);
}

// Below two minutes seconds, then minutes, hours and days; GPU time has four digits.
TEST(Quotes, TimesHaveTheUnitThatSaysSomething) {
  const std::string training = run_line(kSearch + "--cluster dgx-a100 --tokens 2e8 --objective energy").out;
  EXPECT_NE(training.find(" min .. "), std::string::npos) << training;
  EXPECT_FALSE(std::regex_search(training, std::regex(R"(\d\.\d{7})"))) << training;
}

// What an objective needs and the cluster file does not have is said, and nothing is called cheaper.
TEST(Quotes, AnUnknownPriceIsSaid) {
  const RanLine cost = run_line(kSearch + "--cluster dgx-a100 --objective cost");
  EXPECT_NE(on_one_line(cost.out).find("the cluster file has no price (price_per_gpu_hour)"), std::string::npos) << cost.out;
  for (const char* word : {"cheaper", "expensive"}) EXPECT_EQ(cost.out.find(word), std::string::npos) << cost.out;
  EXPECT_NE(on_one_line(cost.out).find(" more GPU time"), std::string::npos) << cost.out;
  const RanLine energy = run_line(kSearch + "--cluster pcie-a100-8 --objective energy");
  EXPECT_NE(on_one_line(energy.out).find("has no power (power_per_gpu)"), std::string::npos) << energy.out;
  const RanLine known = run_line(kSearch + "--cluster dgx-a100 --objective cost --set cluster.price_per_gpu_hour=2");
  EXPECT_EQ(on_one_line(known.out).find("no price"), std::string::npos) << known.out;
  EXPECT_NE(known.out.find(" more expensive"), std::string::npos) << known.out;
  const RanLine two = run_line(kSearch + "--cluster dgx-a100 --cluster dgx-a100-x2 --objective cost");
  EXPECT_NE(two.out.find("Not every cluster file has a price (price_per_gpu_hour): GPU time is compared, not cost.\n"),
            std::string::npos)
      << two.out;
  const RanLine free = run_line(kSearch + "--cluster dgx-a100 --set cluster.price_per_gpu_hour=0");
  EXPECT_EQ(free.code, ExitCode::WrongInput);
  EXPECT_NE(free.err.find("found 0, expected more than 0"), std::string::npos) << free.err;
}

TEST(Search, AFormatThatTheGpuLacksIsTold) {
  const RanLine ran = run_line("search --model gpt2-124m --global-batch 64 --top 0 --cluster dgx1-v100");
  EXPECT_EQ(ran.code, ExitCode::Infeasible);
  EXPECT_NE(ran.err.find("v100-32 has no bf16 arithmetic, only fp16, fp32, fp64\n  would help: --precision fp16\n"),
            std::string::npos)
      << ran.err;
}

TEST(Search, OfAnUnknownFrameworkNothingIsKnown) {
  const RanLine ran = run_line(kSearch + "--cluster dgx-a100 --framework hetu-galvatron");
  EXPECT_NE(ran.out.find("Nothing is known of what hetu-galvatron can run: the space is not restricted.\n"), std::string::npos)
      << ran.out;
}

TEST(Search, TheHeaderHasSequenceAndBatch) {
  EXPECT_TRUE(run_line(kSearch + "--cluster dgx-a100")
                  .out.starts_with("gpt2-124m on dgx-a100, 8 GPUs, global batch 16, sequence 256: best by time\n"));
}

// 131,072 tokens that nobody asked for decide everything.
TEST(Search, ALongDefaultSequenceIsSaid) {
  const std::string note = "sequences of 131,072 tokens, the maximum of llama-3-405b: no --seq was given";
  for (const std::string verb : {"simulate", "lower"}) {
    const std::string line = verb + " --model llama-3-405b --cluster dgx-h100 --global-batch 8 ";
    EXPECT_EQ(run_line(line).err.find("foreshard: " + note + "\n"), 0u) << verb;
    EXPECT_EQ(run_line(line + "--seq 4096").err.find("sequences of"), std::string::npos) << verb;
  }
  const RanLine lines = run_line("simulate --model llama-3-405b --cluster dgx-h100 --global-batch 8 --progress json");
  EXPECT_EQ(JsonReader::parse(lines.err, "line").at("note").as_string(), note);
}

// 16 of the 72 GPUs of a rack: what is found is what simulate plays with the same option.
TEST(Search, TakesAPartOfANode) {
  const std::string job = "--model gpt2-1.5b --cluster gb200-nvl72 --gpus 16 --global-batch 64 ";
  const RanLine found =
      run_line("search " + job + "--json --top 1 --threads 1 --save-strategy /tmp/foreshard-slice.strategy.json");
  ASSERT_EQ(found.code, ExitCode::Ok) << found.err;
  const JsonReader best = JsonReader::parse(found.out, "search").at("results").at(0);
  const RanLine played =
      run_line("simulate " + job + "--granularity stage --json --strategy /tmp/foreshard-slice.strategy.json");
  ASSERT_EQ(played.code, ExitCode::Ok) << played.err;
  EXPECT_NEAR(JsonReader::parse(played.out, "simulate").at("simulation").at("makespan_s").as_double() /
                  best.at("simulated").as_double(),
              1, 1e-9);
  EXPECT_EQ(run_line("search --model gpt2-124m --cluster dgx-a100-x2 --gpus 12 --global-batch 24").err,
            "foreshard: command line: --gpus: found 12, expected whole nodes or a part of one: all GPUs of a cluster "
            "are used\n");
}

TEST(Partition, TakesTheGpusThatAreNamed) {
  const RanLine found = run_line("partition --model gpt2-355m --cluster eth100-a100 --gpus 4 --global-batch 16");
  ASSERT_EQ(found.code, ExitCode::Ok) << found.err;
  EXPECT_NE(found.out.find("on 4 GPUs of eth100-a100,"), std::string::npos) << found.out;
}

TEST(Sweep, AnAxisIsGivenOnce) {
  const std::string job = "sweep --model gpt2-124m --cluster dgx-a100 --global-batch 16 ";
  EXPECT_EQ(run_line(job + "--vary nodes=1,2 --vary nodes=3").code, ExitCode::WrongInput);
  EXPECT_EQ(run_line(job + "--nodes 2 --vary nodes=1,2").code, ExitCode::WrongInput);
}

TEST(Lower, DoesNotWriteOverItsModel) {
  EXPECT_EQ(run_line("lower --model here.json --cluster dgx-a100 --save-plan here.json").err,
            "foreshard: command line: --save-plan: found here.json, expected another file than that of --model, which it would "
            "replace\n");
}

TEST(Search, OfAFrameworkAndALayerListNothingIsKnown) {
  const RanLine found = run_line("search --model vgg-16 --cluster dgx-a100 --global-batch 64 --framework megatron --top 1");
  EXPECT_NE(found.out.find("Nothing is known of how megatron trains a layer list"), std::string::npos) << found.out;
}

}  // namespace foreshard::quotes_test
