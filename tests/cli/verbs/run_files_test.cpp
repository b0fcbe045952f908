// foreshard run with data and checkpoints, and its answers to what is wrong with them.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/base/file_lock.h"
#include "core/json/json.h"
#include "strategy/tune/tune.h"
#include "tests/cli/run_line.h"
#include "tests/cli/session.h"

namespace foreshard::run_files_test {
namespace {

namespace fs = std::filesystem;

struct RunFiles : testing::Test {
  void SetUp() override {
    folder = fs::temp_directory_path() / ("foreshard-run-files-" + std::to_string(::getpid()));
    fs::create_directories(folder);
    std::ofstream(path("model.json")) << R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 2, "vocab_size": 256,
                                             "n_positions": 16})";
    ASSERT_EQ(tuned_plan("--tp 2 --pp 2", "plan.json").code, ExitCode::Ok);
  }
  void TearDown() override { fs::remove_all(folder); }
  std::string path(const std::string& name) const { return (folder / name).string(); }
  RanLine tuned_plan(const std::string& split, const std::string& plan) const {
    return run_line("lower --model " + path("model.json") + " --cluster dgx-a100 --dp 1 --global-batch 4 --micro-batch 2 " +
                    "--precision fp64 " + split + " --save-plan " + path(plan));
  }
  RanLine train(const std::string& options, const std::string& plan = "plan.json") const {
    return run_line("run " + path(plan) + " --progress none " + options);
  }
  fs::path folder = {};
};

const std::string kText = std::string(FORESHARD_SOURCE) + "/LICENSE";

// The last line of the text: "loss 5.54 -> 5.50 after 3 steps".
std::string last_loss(const RanLine& ran) {
  const std::size_t arrow = ran.out.find("-> ");
  return arrow == std::string::npos ? ran.out + ran.err : ran.out.substr(arrow + 3, 7);
}

TEST_F(RunFiles, TrainsOnATextAndGoesOnUnderAnotherSplit) {
  ASSERT_EQ(tuned_plan("", "one.json").code, ExitCode::Ok);
  const RanLine whole = train("--steps 5 --seed 9 --data " + kText);
  EXPECT_EQ(whole.code, ExitCode::Ok) << whole.err;
  const RanLine first = train("--steps 3 --seed 9 --save " + path("a") + " --save-every 2 --data " + kText);
  EXPECT_EQ(first.code, ExitCode::Ok) << first.err;
  EXPECT_NE(last_loss(first), last_loss(whole));
  const RanLine rest = train("--steps 2 --resume " + path("a") + " --data " + kText, "one.json");
  EXPECT_EQ(last_loss(rest), last_loss(whole)) << rest.out << rest.err;
}

TEST_F(RunFiles, WhatIsWrongIsSaid) {
  std::ofstream(path("short.txt")) << "too short";
  const auto complaint = [&](const std::string& options) {
    const RanLine ran = train(options);
    EXPECT_EQ(ran.code, ExitCode::WrongInput) << options;
    EXPECT_EQ(ran.out, "") << options;
    return ran.err;
  };
  EXPECT_NE(complaint("--ranks 8").find("--ranks: found 8, expected 4, which the plan is for"), std::string::npos);
  EXPECT_NE(complaint("--data " + path("short.txt")).find("found 9 tokens, expected at least 17"), std::string::npos);
  EXPECT_NE(complaint("--data " + path("nothing")).find("No such file"), std::string::npos);
  EXPECT_NE(complaint("--data-format u16").find("--data-format: found no --data"), std::string::npos);
  EXPECT_NE(complaint("--data-format u8 --data " + kText).find("u16"), std::string::npos);
  EXPECT_NE(complaint("--save-every 2").find("--save-every: found no --save"), std::string::npos);
  EXPECT_NE(complaint("--save " + path("no/such/folder")).find("No such file"), std::string::npos);
  EXPECT_NE(complaint("--resume " + path("short.txt")).find("a whole safetensors file"), std::string::npos);
}

// A disk that is full, here a limit on the size of files: whatever is written, the run says which file it was and leaves the one
// that was there.
TEST_F(RunFiles, AFullDiskIsToldAndLeavesWhatWasThere) {
  const auto limited = [&](const std::string& option, const std::string& name) {
    std::ofstream(path(name)) << "what was there";
    const std::string said = run_in_shell(
        "trap '' XFSZ; ulimit -f 4; foreshard run plan.json --progress none --steps 1 " + option + " " + name, folder.string());
    EXPECT_EQ(read_text(path(name)), "what was there") << option;
    EXPECT_EQ(said.find("iteration"), std::string::npos) << said;
    for (const auto& entry : fs::directory_iterator(folder)) EXPECT_NE(entry.path().extension(), ".part") << entry.path();
    return said;
  };
  for (const char* option : {"--save", "--save-result", "--trace"}) {
    const std::string said = limited(option, "there");
    EXPECT_NE(said.find("there"), std::string::npos) << option << ": " << said;
    EXPECT_NE(said.find("File too large"), std::string::npos) << option << ": " << said;
    EXPECT_NE(said.find("[exit "), std::string::npos) << option << ": " << said;
  }
}

// What a run writes never falls on what it reads, under whatever name.
TEST_F(RunFiles, WhatItReadsIsNotOverwritten) {
  std::ofstream(path("book.txt")) << read_text(kText);
  fs::create_symlink(path("book.txt"), path("link.txt"));
  const std::string plan = read_text(path("plan.json"));
  const auto complaint = [&](const std::string& options) {
    const RanLine ran = train("--steps 1 " + options);
    EXPECT_EQ(ran.code, ExitCode::WrongInput) << options << ran.out;
    return ran.err;
  };
  const std::string data = "--data " + path("book.txt") + " ";
  EXPECT_NE(complaint(data + "--save " + path("book.txt")).find("expected another file than that of --data"),
            std::string::npos);
  EXPECT_NE(complaint(data + "--save " + path("link.txt")).find("expected another file than that of --data"),
            std::string::npos);
  EXPECT_NE(complaint("--loss-log " + path("plan.json")).find("expected another file than that of PLAN"), std::string::npos);
  EXPECT_NE(complaint("--save " + path("x") + " --loss-log " + path("x")).find("than that of --save"), std::string::npos);
  EXPECT_EQ(read_text(path("book.txt")), read_text(kText));
  EXPECT_EQ(read_text(path("plan.json")), plan);
  const RanLine nothing = run_words({"run", path("plan.json"), "--save", ""});
  EXPECT_EQ(nothing.err, "foreshard: command line: --save: found nothing, expected the name of a file\n");
}

TEST_F(RunFiles, ALossThatIsNoNumberIsTold) {
  // The decay multiplies the weights by 1 - 10^12 a step: after 30 of them they are past the largest double.
  const RanLine ran = train("--steps 40 --learning-rate 1000000 --weight-decay 1000000");
  EXPECT_NE(ran.out.find(" -> nan after 40 steps"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("note: the loss is no number from step "), std::string::npos) << ran.out;
  EXPECT_NE(train("--beta1 1").err.find("--beta1: found \"1\""), std::string::npos);
}

// A training that has diverged does not cost the state before it: the run ends where it would save, and says which file stays.
TEST_F(RunFiles, ASaveThatIsNotFiniteIsNoSave) {
  const std::string diverging = "--steps 60 --learning-rate 1000000 --weight-decay 1000000 --save " + path("kept");
  ASSERT_EQ(train("--steps 1 --save " + path("kept")).code, ExitCode::Ok);
  const std::string before = read_text(path("kept"));
  const RanLine ran = train(diverging);
  EXPECT_EQ(ran.code, ExitCode::WrongInput);
  EXPECT_NE(ran.out.find(" after 60 steps"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.err, "foreshard: after step 60 the loss is nan; that is not saved to " + path("kept") +
                         ", and the run ends here (--save-not-finite saves it all the same)\n");
  EXPECT_TRUE(read_text(path("kept")) == before);
  EXPECT_EQ(JsonReader::parse(train(diverging + " --json").out, "out").at("not_saved").as_string(),
            "after step 60 the loss is nan");
  EXPECT_EQ(train(diverging + " --save-not-finite").code, ExitCode::Ok);
  EXPECT_FALSE(read_text(path("kept")) == before);
  EXPECT_NE(train("--save-not-finite").err.find("--save-not-finite: found no --save"), std::string::npos);
}

// Of two runs on one file, the second ends before it trains.
TEST_F(RunFiles, AFileThatAnotherRunWritesIsRefused) {
  for (const char* option : {"--save", "--loss-log"}) {
    const FileLock other(path("both"), FileLock::IfHeld::Refuse);
    const RanLine ran = train("--steps 1 " + std::string(option) + " " + path("both"));
    EXPECT_EQ(ran.code, ExitCode::WrongInput) << option;
    EXPECT_EQ(ran.err.find("foreshard: " + path("both") + ": found a file that process "), 0U) << ran.err;
    EXPECT_FALSE(fs::exists(path("both"))) << option;
  }
}

// The samples are those of the file and the seed, whatever the plan cuts.
TEST_F(RunFiles, PartsOfAMicroBatchReadTheSameSamples) {
  ASSERT_EQ(tuned_plan("--tp 2 --pp 2 --parts 2", "parts.json").code, ExitCode::Ok);
  const std::string data = "--steps 2 --seed 9 --data " + kText;
  EXPECT_EQ(last_loss(train(data, "parts.json")), last_loss(train(data)));
  std::ofstream(path("short.txt")) << "sixteen tokens..";
  EXPECT_NE(train("--data " + path("short.txt"), "parts.json").err.find("found 16 tokens, expected at least 17"),
            std::string::npos);
}

// What a checkpoint was trained on goes with it: a training that goes on with something else would be another one.
TEST_F(RunFiles, ACheckpointKnowsItsDataAndItsStep) {
  const auto save = [&](const std::string& options, const std::string& name) {
    const RanLine ran = train("--steps 2 --seed 9 --save " + path(name) + " " + options);
    ASSERT_EQ(ran.code, ExitCode::Ok) << ran.err;
  };
  save("--data " + kText, "of_text");
  save("", "of_random");
  std::ofstream(path("zeros.txt")) << std::string(2000, '\0');
  save("--data " + path("zeros.txt"), "of_zeros");
  std::ofstream(path("other.txt")) << std::string(2000, 'x');
  std::ofstream(path("renamed.txt")) << read_text(kText);
  const auto complaint = [&](const std::string& options) {
    const RanLine ran = train("--steps 1 --resume " + options);
    EXPECT_EQ(ran.code, ExitCode::WrongInput) << options << ran.out;
    return ran.err;
  };
  EXPECT_NE(complaint(path("of_text")).find("command line: --data: found nothing, expected " + kText), std::string::npos)
      << complaint(path("of_text"));
  EXPECT_NE(complaint(path("of_text") + " --data " + path("other.txt")).find("other.txt (2,000 bytes"), std::string::npos);
  EXPECT_NE(complaint(path("of_zeros") + " --data-format u16 --data " + path("zeros.txt"))
                .find("--data-format: found u16, expected bytes"),
            std::string::npos);
  EXPECT_NE(complaint(path("of_random") + " --data " + kText)
                .find("expected no file: " + path("of_random") + " was trained on random tokens"),
            std::string::npos)
      << complaint(path("of_random") + " --data " + kText);
  EXPECT_NE(complaint(path("of_random") + " --seed 5").find("command line: --seed: found 5, expected 9, the seed of"),
            std::string::npos);
  // The same bytes under another name are the same data; the seed may be said again; --force goes on with what there is.
  for (const std::string& options : {path("of_text") + " --data " + path("renamed.txt"), path("of_random") + " --seed 9",
                                     path("of_text") + " --force", path("of_random") + " --force --data " + kText}) {
    const RanLine ran = train("--steps 1 --resume " + options);
    EXPECT_EQ(ran.code, ExitCode::Ok) << options << ran.err;
    EXPECT_NE(ran.err.find(" after step 2 on "), std::string::npos) << ran.err;
  }
}

// A file of an earlier version does not say what it was trained on: the run goes on, and says that it cannot know.
TEST_F(RunFiles, ACheckpointWithoutItsDataIsTold) {
  ASSERT_EQ(train("--steps 1 --save " + path("new")).code, ExitCode::Ok);
  std::string text = read_text(path("new"));
  for (const auto& [word, other] : {std::pair<std::string, std::string>{"data_format", "daten_forma"},
                                    {"checksum", "chequsum"},
                                    {"checkpoint-2", "checkpoint-1"}})
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at))
      text.replace(at, word.size(), other);
  std::ofstream(path("old")) << text;
  const RanLine ran = train("--steps 1 --resume " + path("old") + " --data " + kText);
  EXPECT_EQ(ran.code, ExitCode::Ok) << ran.err;
  EXPECT_NE(ran.err.find("old does not say what it was trained on"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("old has no checksums; an earlier version wrote it\n"), std::string::npos) << ran.err;
}

TEST_F(RunFiles, ARunSaysWhatItIsTrainedOn) {
  const RanLine random = train("--steps 2"), text = train("--steps 2 --data " + kText);
  EXPECT_NE(random.out.find(" after 2 steps on random tokens\n"), std::string::npos) << random.out;
  EXPECT_NE(text.out.find(" after 2 steps on " + kText + "\n"), std::string::npos) << text.out;
  const auto data = [&](const std::string& options) {
    return JsonReader::parse(train("--json --steps 1 " + options).out, "out").at("data").as_string();
  };
  EXPECT_EQ(data(""), "random tokens");
  EXPECT_EQ(data("--data " + kText), kText);
}

// One line a step, with the step of the training: a resumed run goes on below, and what an earlier one wrote after its last checkpoint is not there
// twice, nor a line that it did not end.
TEST_F(RunFiles, ALossLogGoesOnWithTheTraining) {
  const std::string log = path("loss.csv");
  const RanLine whole = train("--steps 6 --seed 3 --json --loss-log " + path("whole.csv"));
  ASSERT_EQ(whole.code, ExitCode::Ok) << whole.err;
  const auto lines = [](const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> all;
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  };
  const auto losses = [&](const std::string& file) {  // step and loss of every line below the head
    std::vector<std::pair<int, double>> all;
    for (const std::string& line : lines(read_text(file)))
      if (line.find("step") == std::string::npos) all.emplace_back(std::stoi(line), std::stod(line.substr(line.find(',') + 1)));
    return all;
  };
  ASSERT_EQ(lines(read_text(path("whole.csv"))).at(0), "step,loss,time_s,loss_scale,skipped");
  ASSERT_EQ(losses(path("whole.csv")).size(), 6U);
  const JsonReader steps = JsonReader::parse(whole.out, "out").at("steps");
  for (std::size_t s = 0; s < 6; ++s) {
    EXPECT_EQ(losses(path("whole.csv"))[s].first, static_cast<int>(s) + 1);
    EXPECT_EQ(losses(path("whole.csv"))[s].second, steps.at(s).at("loss").as_double());
  }
  ASSERT_EQ(train("--steps 2 --seed 3 --save " + path("kept") + " --loss-log " + log).code, ExitCode::Ok);
  ASSERT_EQ(train("--steps 2 --resume " + path("kept") + " --loss-log " + log).code, ExitCode::Ok);  // not saved: steps 3, 4
  std::ofstream(log, std::ios::app) << "5,5.4";
  ASSERT_EQ(train("--steps 4 --resume " + path("kept") + " --loss-log " + log).code, ExitCode::Ok);
  EXPECT_EQ(losses(log), losses(path("whole.csv"))) << read_text(log);
  ASSERT_EQ(train("--steps 6 --seed 3 --loss-log " + log).code, ExitCode::Ok);  // another training
  EXPECT_EQ(losses(log), losses(path("whole.csv"))) << read_text(log);
  std::ofstream(path("notes.txt")) << "a shopping list\n";
  const RanLine refused = train("--steps 1 --resume " + path("kept") + " --loss-log " + path("notes.txt"));
  EXPECT_EQ(refused.code, ExitCode::WrongInput);
  EXPECT_NE(refused.err.find("notes.txt: line 1: found \"a shopping list\", expected \"step,loss,"), std::string::npos)
      << refused.err;
  EXPECT_EQ(read_text(path("notes.txt")), "a shopping list\n");
}

// The last N stay under their steps beside the newest, whose name is the one asked for.
TEST_F(RunFiles, KeepsTheLastCheckpoints) {
  ASSERT_EQ(train("--steps 5 --save-every 1 --keep 2 --save " + path("k")).code, ExitCode::Ok);
  const auto there = [&] {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder))
      if (const std::string name = entry.path().filename(); name.starts_with("k")) names.push_back(name);
    std::sort(names.begin(), names.end());
    return names;
  };
  EXPECT_EQ(there(), (std::vector<std::string>{"k", "k.step-4", "k.step-5"}));
  EXPECT_EQ(read_text(path("k")), read_text(path("k.step-5")));
  const RanLine back = train("--steps 1 --resume " + path("k.step-4") + " --keep 2 --save " + path("k"));
  EXPECT_NE(back.err.find("after step 4 on random tokens"), std::string::npos) << back.err;
  EXPECT_EQ(there(), (std::vector<std::string>{"k", "k.step-4", "k.step-5"}));
  EXPECT_NE(train("--keep 2").err.find("--keep: found no --save"), std::string::npos);
}

// Four threads of a step on fewer cores take turns.
TEST_F(RunFiles, WallTimeOfMoreRanksThanCoresIsNotComparable) {
  const auto notes = [&](const std::string& core) {
    return run_in_shell(core + " foreshard run plan.json --progress none --steps 1", folder.string());
  };
  EXPECT_NE(notes("taskset -c 0")
                .find("note: 4 ranks share 1 core here: wall time is not that of 4 devices, "
                      "compare predictions with --time emulated\n"),
            std::string::npos)
      << notes("taskset -c 0");
  EXPECT_EQ(run_in_shell("taskset -c 0 foreshard run plan.json --progress none --steps 1 --time emulated", folder.string())
                .find("note:"),
            std::string::npos);
}

}  // namespace
}  // namespace foreshard::run_files_test
