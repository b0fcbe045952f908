#include "gui/document/choices.h"

#include <gtest/gtest.h>

#include <QTemporaryDir>

#include "core/base/error.h"
#include "core/json/json.h"
#include "core/strategy/strategy_options.h"
#include "gui/run/live_estimate.h"
#include "gui/strategy/suggestions.h"

namespace foreshard {

TEST(Choices, WordsOfACommandLine) {
  Choices choices = worked_example();
  choices.strategy["sequence_parallel"] = "true";
  choices.settings = {"model.n_layer=24"};
  const std::vector<std::string> words = job_words(choices, {"pp", "dp"});
  EXPECT_EQ(words, (std::vector<std::string>{"--model", "gpt3-175b", "--cluster", "dgx-a100", "--nodes", "128", "--set",
                                             "strategy.global_batch=1536", "--set", "strategy.sequence_parallel=true", "--set",
                                             "strategy.tp=8", "--set", "model.n_layer=24"}));
  EXPECT_EQ(command_line("simulate", choices),
            "foreshard simulate --model gpt3-175b --cluster dgx-a100 --nodes 128 --dp 8 --global-batch 1536 --pp 16 "
            "--sequence-parallel --tp 8 --set model.n_layer=24");
  choices.model = "it's mine.json";
  EXPECT_NE(command_line("simulate", choices).find("--model 'it'\\''s mine.json' "), std::string::npos);
}

TEST(Choices, AWrongValueIsNamedAndALaterOptionIsNot) {
  EXPECT_EQ(complaint_about("tp", "8"), "");
  EXPECT_NE(complaint_about("tp", "eight").find("eight"), std::string::npos);
  EXPECT_NE(complaint_about("schedule", "zigzag").find("expected"), std::string::npos);
  EXPECT_EQ(complaint_about("an_option_of_tomorrow", "anything"), "");
}

TEST(Choices, JsonGoesThereAndBack) {
  Choices choices = worked_example();
  choices.settings = {"cluster.fabric.oversubscription=2", "model.n_layer=24"};
  JsonWriter json;
  write_choices(json, choices);
  EXPECT_EQ(read_choices(JsonReader::parse(json.text(), "test")), choices);
  EXPECT_THROW(read_choices(JsonReader::parse(R"({"model": "a"})", "test")), Error);
}

TEST(Choices, ChosenIsWhatDiffersFromTheDefault) {
  const Strategy strategy = strategy_of(worked_example());
  EXPECT_EQ(chosen_in(strategy), worked_example().strategy);
  EXPECT_TRUE(chosen_in(Strategy{}).empty());
}

TEST(Choices, AReasonSpeaksOfAnOption) {
  const std::vector<std::string> paths = {"dp", "tp", "pp", "global_batch", "micro_batch", "schedule"};
  const std::string product = "tp 7 x cp 1 x pp 16 = 112 does not divide the 1024 GPUs of dgx-a100-x128";
  EXPECT_EQ(option_meant(product, "", paths), "tp");
  EXPECT_EQ(option_meant(product, "pp", paths), "pp");  // what was turned last
  EXPECT_EQ(option_meant("global batch 7 is not a multiple of micro-batch 1 x dp 8 = 8", "", paths), "global_batch");
  EXPECT_EQ(option_meant("the moon is full", "tp", paths), "");
}

TEST(Choices, RemediesOfTheEngineAreApplied) {
  Choices choices = worked_example();
  EXPECT_TRUE(apply_remedy(choices, "--recompute full: 41.3 GiB on stage 0 of 80.0 GiB"));
  EXPECT_EQ(choices.strategy["recompute"], "full");
  EXPECT_TRUE(apply_remedy(choices, "--sequence-parallel --zero 1: 60.0 GiB on stage 0 of 80.0 GiB"));
  EXPECT_EQ(choices.strategy["sequence_parallel"], "true");
  EXPECT_EQ(choices.strategy["zero"], "1");
  EXPECT_TRUE(apply_remedy(choices, "--pp 32: 30.0 GiB"));
  EXPECT_FALSE(choices.strategy.contains("dp"));  // its product with pp would be twice the GPUs
  const Choices before = choices;
  EXPECT_FALSE(apply_remedy(choices, "a larger cluster"));
  EXPECT_FALSE(apply_remedy(choices, "--no-such-option 3"));
  EXPECT_EQ(choices, before);
}

TEST(Choices, TheEstimateSaysHowLongOrWhyNot) {
  const EstimateAnswer good = estimate_of(worked_example());
  ASSERT_TRUE(good.estimate);
  EXPECT_EQ(good.refusal, "");
  EXPECT_GT(good.estimate->time.value, 1);
  EXPECT_EQ(good.resolved.at("schedule"), "1f1b");  // Auto came to this
  Choices odd = worked_example();
  odd.strategy["tp"] = "7";
  const EstimateAnswer refused = estimate_of(odd);
  EXPECT_FALSE(refused.estimate);
  EXPECT_FALSE(refused.wrong_input);
  EXPECT_NE(refused.refusal.find("7"), std::string::npos);
  odd.model = "no-such-model";
  EXPECT_TRUE(estimate_of(odd).wrong_input);
  Choices wider = worked_example();
  wider.settings = {"cluster.gpus_per_node=nonsense"};
  EXPECT_TRUE(estimate_of(wider).wrong_input);
}

// A what-if edits the file's text before the model's own reader sees it.
TEST(Choices, AModelThatIsNoJsonIsWrongInputAlsoUnderAWhatIf) {
  const QTemporaryDir folder;
  const std::string path = folder.filePath("bad.json").toStdString();
  write_file(path, R"({"architectures": ["LlamaForCausalLM", "hidden_size": })");
  Choices choices = worked_example();
  choices.model = path;
  const std::string plain = estimate_of(choices).refusal;
  EXPECT_NE(plain.find("bad.json"), std::string::npos) << plain;
  choices.settings = {"model.n_layer=4"};
  EXPECT_EQ(estimate_of(choices).refusal, plain);
  EXPECT_TRUE(estimate_of(choices).wrong_input);
}

// 125,000 micro-batches on each of 16 stages.
TEST(Choices, AMillionSequencesAreNotLoweredBetweenTwoKeystrokes) {
  Choices choices = worked_example();
  choices.strategy["global_batch"] = "1000000";
  EXPECT_FALSE(estimate_of(choices).estimate);
  EXPECT_TRUE(estimate_of(choices).too_large);
}

TEST(Choices, AnotherModelDropsWhatWasSetOfTheOneBefore) {
  Choices choices = worked_example();
  choices.settings = {"model.n_layer=4", "cluster.fabric.oversubscription=2"};
  EXPECT_EQ(with_model(choices, choices.model).settings, choices.settings);
  const Choices other = with_model(choices, "llama-2-7b");
  EXPECT_EQ(other.model, "llama-2-7b");
  EXPECT_EQ(other.settings, (std::vector<std::string>{"cluster.fabric.oversubscription=2"}));
}

// Every idea changes something, and every option that it names can be set.
TEST(Suggestions, IdeasAreChangesThatCanBeSaid) {
  const EstimateAnswer now = estimate_of(worked_example());
  for (int cause = 0; cause < kBubbleCauses; ++cause)
    for (const Suggestion& idea : ideas_against(static_cast<BubbleCause>(cause), worked_example(), now.resolved)) {
      EXPECT_NE(idea.choices, worked_example()) << idea.text;
      EXPECT_FALSE(idea.text.empty());
      EXPECT_NO_THROW(strategy_of(idea.choices)) << idea.text;
      for (const auto& [path, value] : idea.choices.strategy) EXPECT_EQ(complaint_about(path, value), "") << idea.text;
    }
  const auto warm_up = ideas_against(BubbleCause::WarmUp, worked_example(), now.resolved);
  ASSERT_FALSE(warm_up.empty());
  EXPECT_EQ(warm_up.front().choices.strategy.at("virtual_stages"), "2");  // interleaving is what fills a pipeline sooner
}

}  // namespace foreshard
