// Checkpoints: saved under one split and resumed under another, a training goes on with the same numbers; a run that is killed
// at any moment leaves a whole checkpoint behind.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>

#include "exec/data/checkpoint.h"
#include "exec/data/safetensors.h"
#include "tests/exec/checkpoint_folder.h"
#include "tests/exec/training.h"

namespace foreshard::checkpoint_test {
namespace {

namespace fs = std::filesystem;

struct Checkpoint : CheckpointFolder {};

ExecuteOptions saving(int steps, const std::string& path) {
  ExecuteOptions options = training(steps);
  options.save = path;
  return options;
}
ExecuteOptions resuming(int steps, const std::string& path) {
  ExecuteOptions options = training(steps);
  options.resume = path;
  options.seed = 1234;  // the checkpoint's goes first
  return options;
}

std::string refusal(const std::function<void()>& what) {
  try {
    what();
  } catch (const Error& error) {
    return error.what();
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "no error";
}

const Strategy kOne = {.batch = {.micro = 2}, .dropout = 0.1};
const Strategy kSplit = {.dp = 2, .tp = 2, .pp = 2, .batch = {.micro = 1}, .zero = {.stage = 1}, .dropout = 0.1};

// Two steps here and two there are four steps: loss, gradients, weights. The same split gives the same bits, another one what
// is left of the order of its sums.
TEST_F(Checkpoint, ResumedUnderAnotherStrategy) {
  const Execution whole = run(lowered(tiny_gpt(), in_double(kOne)), training(4));
  const std::vector<Strategy> strategies = {kOne,
                                            kSplit,
                                            {.dp = 4, .batch = {.micro = 1}, .zero = {.stage = 3}, .dropout = 0.1},
                                            {.dp = 2, .pp = 2, .zero = {.stage = 2}, .dropout = 0.1}};
  for (const Strategy& first : strategies) {
    const std::string path = file("a.safetensors");
    run(lowered(tiny_gpt(), in_double(first)), saving(2, path));
    for (const Strategy& second : strategies) {
      SCOPED_TRACE(name_of(first) + " -> " + name_of(second));
      const Execution rest = run(lowered(tiny_gpt(), in_double(second)), resuming(2, path));
      for (std::size_t s = 0; s < 2; ++s) EXPECT_NEAR(rest.steps[s].loss, whole.steps[s + 2].loss, 1e-12);
      Execution end = whole;
      end.steps.erase(end.steps.begin(), end.steps.begin() + 2);
      const Difference apart = difference(rest, end);
      EXPECT_LE(apart.largest(), 1e-12) << apart.worst;
      EXPECT_TRUE(apart.largest() == 0 || first != kOne || second != kOne);
    }
  }
}

// Nothing but whole tensors and how far the training is: two strategies write the same file, but for the order of sums.
TEST_F(Checkpoint, TheFileDoesNotKnowTheStrategy) {
  run(lowered(tiny_gpt(), in_double(kOne)), saving(2, file("one")));
  run(lowered(tiny_gpt(), in_double(kSplit)), saving(2, file("split")));
  SafetensorsFile a(file("one")), b(file("split"));
  EXPECT_EQ(a.metadata(), b.metadata());
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (const StoredTensor& tensor : a.tensors()) {
    ASSERT_TRUE(b.has(tensor.name)) << tensor.name;
    EXPECT_EQ(b.at(tensor.name), tensor);
    const std::vector<double> x = a.read(tensor.name), y = b.read(tensor.name);
    double apart = 0, largest = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      apart = std::max(apart, std::abs(x[i] - y[i]));
      largest = std::max(largest, std::abs(x[i]));
    }
    EXPECT_LE(apart, 1e-12 * largest) << tensor.name;
    EXPECT_GT(largest, 0) << tensor.name;
  }
}

// 16-bit values with fp32 master copies: the master copies go on, bit by bit.
TEST_F(Checkpoint, MixedPrecision) {
  const Strategy strategy = {.dp = 2, .batch = {.micro = 2, .global = 8}, .zero = {.stage = 1}};
  const Plan plan = lowered(tiny_gpt(), strategy);
  const Execution whole = run(plan, training(3));
  run(plan, saving(1, file("half")));
  const Execution rest = run(plan, resuming(2, file("half")));
  for (std::size_t t = 0; t < whole.values.size(); ++t) EXPECT_EQ(rest.values[t].elements, whole.values[t].elements);
  const SafetensorsFile stored(file("half"));
  EXPECT_EQ(stored.at("layers.0.qkv.weight").dtype, DType::BF16);
  EXPECT_EQ(stored.at("master.layers.0.qkv.weight").dtype, DType::F32);
  EXPECT_EQ(stored.metadata().at("step"), "1");
  EXPECT_EQ(stored.metadata().at("samples"), "8");
}

// The layout by hand: length, header, data at a multiple of 8.
TEST_F(Checkpoint, LayoutOfTheFile) {
  {
    SafetensorsWriter writer(file("x"), {{"b", DType::F32, {2}}, {"a", DType::BF16, {1, 2}}}, {{"k", "v"}});
    writer.places().write(1, 0, std::vector<double>{0.5, 3});  // in any order, in parts
    writer.places().write(0, 1, std::vector<double>{-2});
    writer.places().write(0, 0, std::vector<double>{1});
    writer.finish();
  }
  const std::string bytes = bytes_of(file("x"));
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  ASSERT_EQ(bytes.size(), 8 + length + 8 + 4);
  EXPECT_NE(bytes.find("\"BF16\""), std::string::npos);
  float b[2];
  std::memcpy(b, bytes.data() + 8 + length, 8);
  EXPECT_EQ(b[0], 1.0f);
  EXPECT_EQ(b[1], -2.0f);
  std::uint16_t a[2];  // 0.5 = 2^-1: exponent 126; 3 = 1.5 * 2
  std::memcpy(a, bytes.data() + 8 + length + 8, 4);
  EXPECT_EQ(a[0], 0x3F00);
  EXPECT_EQ(a[1], 0x4040);
  EXPECT_EQ(SafetensorsFile(file("x")).read("a"), (std::vector<double>{0.5, 3}));
}

// Killed at many moments, while it saves after every step: the file is always whole, and going on from it gives the numbers of a
// run that nobody killed.
TEST_F(Checkpoint, SurvivesBeingKilled) {
  const Plan plan = lowered(tiny_gpt(), in_double({.dp = 2, .batch = {.micro = 4}}));
  const Execution whole = run(plan, training(6));
  const std::string path = file("killed");
  int found = 0;
  for (int milliseconds = 20; milliseconds < 1'000'000 && found < 6; milliseconds += milliseconds / 2) {
    fs::remove(path);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ExecuteOptions options = saving(6, path);
      options.saves.every = 1;
      try {
        static_cast<void>(execute(plan, options));
      } catch (const std::exception&) {
        ::_exit(1);
      }
      ::_exit(0);
    }
    ::usleep(static_cast<useconds_t>(milliseconds) * 1000);
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (!fs::exists(path)) continue;  // killed before the first step ended
    const TrainingPoint point = training_point(path);
    EXPECT_EQ(point.samples, 8 * point.step);
    if (point.step > found) found = point.step;
    if (point.step >= 6) break;
    const Execution rest = run(plan, resuming(6 - point.step, path));
    EXPECT_EQ(rest.steps.back().loss, whole.steps.back().loss) << point.step;
    for (std::size_t t = 0; t < whole.values.size(); ++t) EXPECT_EQ(rest.values[t].elements, whole.values[t].elements);
  }
  EXPECT_GE(found, 1);
}

// A disk that is full: here, a limit on the size of files. The run says so, and the checkpoint of before is untouched.
TEST_F(Checkpoint, AFullDiskLeavesTheEarlierOne) {
  const Plan plan = lowered(tiny_gpt(), in_double({.batch = {.micro = 4}}));
  const std::string path = file("kept");
  run(plan, saving(1, path));
  const std::string before = bytes_of(path);
  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlim_t old = limit.rlim_cur;
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  limit.rlim_cur = 100'000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::string what = refusal([&] { run(plan, saving(2, path)); });
  limit.rlim_cur = old;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  ::signal(SIGXFSZ, handler);
  EXPECT_NE(what.find("write of " + path), std::string::npos) << what;
  EXPECT_NE(what.find("untouched"), std::string::npos) << what;
  EXPECT_EQ(bytes_of(path), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
}

TEST_F(Checkpoint, WhatCannotBeResumedIsRefused) {
  const Plan plan = lowered(tiny_gpt(), in_double({.batch = {.micro = 4}}));
  const std::string path = file("good");
  run(plan, saving(1, path));
  const auto resumed = [&](const Plan& by, const std::string& from) { return refusal([&] { run(by, resuming(1, from)); }); };
  const auto altered = [&](auto change) {
    std::string bytes = bytes_of(path);
    change(bytes);
    std::ofstream(file("bad"), std::ios::binary) << bytes;
    return resumed(plan, file("bad"));
  };
  EXPECT_NE(resumed(plan, file("none")).find("No such file"), std::string::npos);
  EXPECT_NE(altered([](std::string& b) { b.resize(5); }).find("5 bytes"), std::string::npos);
  EXPECT_NE(altered([](std::string& b) { b[6] = 1; }).find("a whole safetensors file"), std::string::npos);
  EXPECT_NE(altered([](std::string& b) { b.resize(b.size() - 1); }).find("an end within its data"), std::string::npos);
  EXPECT_NE(altered([](std::string& b) { b[8] = 'x'; }).find("bad"), std::string::npos);
  const auto with_words = [&](auto change) {
    SafetensorsFile good(path);
    std::map<std::string, std::string> words = good.metadata();
    change(words);
    SafetensorsWriter bad(file("bad"), good.tensors(), words);
    for (std::size_t t = 0; t < good.tensors().size(); ++t) bad.places().write(t, 0, good.read(good.tensors()[t].name));
    bad.finish();
    return resumed(plan, file("bad"));
  };
  EXPECT_EQ(with_words([](auto&) {}), "no error");
  EXPECT_NE(with_words([](auto& words) { words["format"] = "foreshard-checkpoint-9"; }).find("checkpoint-9"),
            std::string::npos);
  EXPECT_NE(with_words([](auto& words) { words.erase("step"); }).find("__metadata__.step"), std::string::npos);
  EXPECT_NE(resumed(lowered(tiny_llama(), in_double({.batch = {.micro = 4}})), path).find("does not have"), std::string::npos);
  Model wider = tiny_gpt();
  std::get<Transformer>(wider.shape).ffn_hidden = 96;
  EXPECT_NE(resumed(lowered(wider, in_double({.batch = {.micro = 4}})), path).find("expected shape [96, 32]"),
            std::string::npos);
  Model longer = tiny_gpt();
  std::get<Transformer>(longer.shape).layers = 5;
  EXPECT_NE(resumed(lowered(longer, in_double({.batch = {.micro = 4}})), path).find("layers.4"), std::string::npos);
  // Adam has no states in a file of plain SGD.
  const Plan sgd = lowered(tiny_gpt(), in_double({.batch = {.micro = 4}, .optimizer = {.kind = OptimizerKind::Sgd}}));
  run(sgd, saving(1, file("sgd")));
  EXPECT_NE(resumed(plan, file("sgd")).find("momentum."), std::string::npos);
  EXPECT_EQ(resumed(sgd, path), "no error");
}

TEST_F(Checkpoint, APlaceThatCannotBeWritten) {
  const Plan plan = lowered(tiny_gpt(), in_double({.batch = {.micro = 8}}));
  EXPECT_NE(refusal([&] { run(plan, saving(1, file("no/such/folder"))); }).find("can be written"), std::string::npos);
  EXPECT_NE(refusal([&] { run(plan, saving(1, "/dev/null")); }).find("/dev/null"), std::string::npos);
}

// A vocabulary of 250 padded to 256 under tp 2 x 128, to 250 alone: the padding is not part of the training.
TEST_F(Checkpoint, PaddedVocabulary) {
  Model model = tiny_gpt(false);
  std::get<Transformer>(model.shape).vocab = 250;
  const Plan one = lowered(model, in_double({.batch = {.micro = 4}}));
  const Plan padded = lowered(model, in_double({.tp = 2, .batch = {.micro = 4}, .vocab_multiple = 64}));
  const Execution whole = run(one, training(3));
  run(padded, saving(1, file("padded")));
  const Execution rest = run(one, resuming(2, file("padded")));
  EXPECT_NEAR(rest.steps.back().loss, whole.steps.back().loss, 1e-12);
  run(one, saving(1, file("alone")));
  const Execution again = run(padded, resuming(2, file("alone")));
  EXPECT_NEAR(again.steps.back().loss, whole.steps.back().loss, 1e-12);
}

}  // namespace
}  // namespace foreshard::checkpoint_test
