// Checkpoints that were damaged, written by two at a time, or whose numbers are not finite.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <random>

#include "core/base/file_lock.h"
#include "exec/data/checkpoint.h"
#include "exec/data/safetensors.h"
#include "tests/changed_text.h"
#include "tests/exec/checkpoint_folder.h"
#include "tests/exec/processes.h"
#include "tests/exec/training.h"

namespace foreshard::checkpoint_damage_test {
namespace {

namespace fs = std::filesystem;

struct CheckpointDamage : CheckpointFolder {};

const std::vector<StoredTensor> kTwo = {{"b", DType::F32, {3}}, {"a.weight", DType::BF16, {2, 2}}};

void write(SafetensorsWriter& writer, double value) {
  writer.places().write(0, 0, std::vector<double>(3, value));
  writer.places().write(1, 0, std::vector<double>(4, value));
}

// What a resume does with a file: the progress first, then all tensors.
std::string read_all(const std::string& path) {
  return error_of([&] {
    static_cast<void>(training_point(path));
    SafetensorsFile file(path);
    for (const StoredTensor& tensor : file.tensors()) file.verify(tensor.name);
  });
}

std::map<std::string, std::string> words(int step) {
  std::map<std::string, std::string> all = words_of({.step = step, .samples = 8, .seed = 1, .source = SampleSource{}});
  all["format"] = "foreshard-checkpoint-2";
  return all;
}

// A bit of each byte of the file, one after the other; and blocks of zeros.
TEST_F(CheckpointDamage, EveryByteIsChecked) {
  SafetensorsWriter writer(file("good"), kTwo, words(3));
  write(writer, 0.3);
  writer.finish();
  const std::string good = bytes_of(file("good"));
  ASSERT_EQ(read_all(file("good")), "no error");
  const auto said = [&](const std::string& bytes) {
    std::ofstream(file("bad"), std::ios::binary) << bytes;
    return read_all(file("bad"));
  };
  for (std::size_t byte = 0; byte < good.size(); ++byte) {
    std::string bad = good;
    bad[byte] = static_cast<char>(bad[byte] ^ 1 << byte % 8);
    const std::string what = said(bad);
    EXPECT_NE(what.find(file("bad")), std::string::npos) << "byte " << byte << ": " << what;
  }
  for (std::size_t from = 0; from < good.size(); from += 32)
    for (const std::size_t size : {8U, 64U, 512U}) {
      std::string bad = good;
      const std::size_t count = std::min<std::size_t>(size, good.size() - from);
      bad.replace(from, count, count, '\0');
      EXPECT_NE(said(bad), "no error") << from << " " << size;
    }
}

TEST_F(CheckpointDamage, TheMessageNamesFileTensorFoundAndExpected) {
  SafetensorsWriter writer(file("f"), kTwo, words(3));
  write(writer, 1);
  writer.finish();
  std::string bytes = bytes_of(file("f"));
  bytes[bytes.size() - 1] ^= 1;
  std::ofstream(file("f"), std::ios::binary) << bytes;
  const std::string what = read_all(file("f"));
  EXPECT_EQ(what.find(file("f") + ": a.weight: found checksum "), 0U) << what;
  EXPECT_TRUE(what.ends_with(", as it was saved: the file is damaged")) << what;
}

// All of it through a real resume, under the split that saved it and another one, by one process and by three: also tensors that the plan does not
// use, as values beside their master copies and residuals of another layout.
TEST_F(CheckpointDamage, NoResumeTakesADamagedFile) {
  Strategy first{.dp = 2, .batch = {.micro = 2, .global = 8}, .zero = {.stage = 1}};
  first.communication.gradients = {.codec = Codec::Segmented, .bits = 4};
  const Plan saved = lowered(tiny_mlp(), first),
             other = lowered(tiny_mlp(), {.dp = 1, .tp = 2, .batch = {.micro = 4, .global = 8}});
  ExecuteOptions options = training(1);
  options.save = file("good");
  run(saved, options);
  const std::string good = bytes_of(file("good"));
  options.save = {}, options.resume = file("bad"), options.tensors = false;
  const auto resumed = [&](const Plan& plan) { return error_of([&] { run(plan, options); }); };
  std::ofstream(file("bad"), std::ios::binary) << good;
  EXPECT_EQ(resumed(saved), "no error");
  EXPECT_EQ(resumed(other), "no error");
  std::mt19937 random(5);
  std::uint64_t header = 0;
  std::memcpy(&header, good.data(), sizeof header);
  for (int i = 0; i < 40; ++i) {
    std::string bad = good;
    const std::size_t at = i % 4 == 0 ? random() % (8 + header) : 8 + header + random() % (good.size() - 8 - header);
    bad[at] = static_cast<char>(bad[at] ^ 1 << random() % 8);
    std::ofstream(file("bad"), std::ios::binary) << bad;
    EXPECT_NE(resumed(i % 2 == 0 ? saved : other), "no error") << at;
  }
  const SafetensorsFile stored(file("good"));
  std::size_t end = good.size();  // the last tensor of the file is a residual, which `other` does not read
  EXPECT_TRUE(stored.tensors().back().name.starts_with("rank ")) << stored.tensors().back().name;
  std::string bad = good;
  bad[end - 1] ^= 4;
  std::ofstream(file("bad"), std::ios::binary) << bad;
  EXPECT_NE(resumed(other).find(": " + stored.tensors().back().name + ": found checksum "), std::string::npos)
      << resumed(other);
  std::vector<std::string> all(2);
  in_processes(2, 2, [&](ProcessMesh& mesh) {
    ExecuteOptions here = options;
    here.processes = &mesh;
    try {
      static_cast<void>(execute(other, here));
    } catch (const std::runtime_error& error) {
      all[static_cast<std::size_t>(mesh.process())] = error.what();
    }
  });
  for (const std::string& what : all) EXPECT_NE(what.find("found checksum "), std::string::npos) << what;
}

// Files of earlier versions have no checksums: they are read as before, and the point says so.
TEST_F(CheckpointDamage, AFileOfAnEarlierVersionIsRead) {
  const Plan plan = lowered(tiny_mlp(), in_double({.batch = {.micro = 8}}));
  ExecuteOptions options = training(1);
  options.save = file("new");
  run(plan, options);
  EXPECT_TRUE(training_point(file("new")).checksums);
  std::string bytes = bytes_of(file("new"));
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"checkpoint-2", "checkpoint-1"}, {"checksum", "chequsum"}})
    for (std::size_t at = bytes.find(from); at != std::string::npos; at = bytes.find(from, at))
      bytes.replace(at, from.size(), to);
  std::ofstream(file("old"), std::ios::binary) << bytes;
  EXPECT_FALSE(training_point(file("old")).checksums);
  options.save = {}, options.resume = file("old");
  const Execution done = run(plan, options);
  options.resume = file("new");
  EXPECT_EQ(done.steps.back().loss, run(plan, options).steps.back().loss);
}

// One is stopped in the middle of its save, the other saves meanwhile: what is published stays as it is, byte by byte, until the first finishes.
TEST_F(CheckpointDamage, TwoWritersDoNotMix) {
  SafetensorsWriter slow(file("both"), kTwo, words(1));
  slow.places().write(0, 0, std::vector<double>{1});
  {
    SafetensorsWriter quick(file("both"), kTwo, words(2));
    write(quick, 2);
    quick.finish();
  }
  const std::string published = bytes_of(file("both"));
  slow.places().write(0, 1, std::vector<double>{1, 1});
  slow.places().write(1, 0, std::vector<double>(4, 1));
  EXPECT_TRUE(bytes_of(file("both")) == published);
  EXPECT_EQ(read_all(file("both")), "no error");
  slow.finish();
  EXPECT_EQ(read_all(file("both")), "no error");
  EXPECT_EQ(training_point(file("both")).step, 1);
  EXPECT_EQ(SafetensorsFile(file("both")).read("a.weight"), std::vector<double>(4, 1));
}

// A run has its file for itself from beginning to end.
TEST_F(CheckpointDamage, ASecondRunOnTheFileIsRefused) {
  const Plan plan = lowered(tiny_mlp(), in_double({.batch = {.micro = 8}}));
  ExecuteOptions options = training(2);
  options.save = file("f"), options.saves.every = 1;
  std::string second;
  options.on_step = [&](int step, const StepReport&) {
    if (step != 1) return;
    ExecuteOptions other = training(1);
    other.save = file("f");
    second = error_of([&] { static_cast<void>(execute(plan, other)); });
  };
  run(plan, options);
  EXPECT_NE(second.find(file("f") + ": found a file that process "), std::string::npos) << second;
  EXPECT_EQ(training_point(file("f")).step, 2);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);  // neither a lock nor a temporary file is left
}

// The file is replaced by another run between two looks at it.
TEST_F(CheckpointDamage, AFileThatIsReplacedMeanwhileIsRefused) {
  const Plan plan = lowered(tiny_mlp(), in_double({.batch = {.micro = 8}}));
  ExecuteOptions options = training(1);
  options.save = options.resume = file("f");
  options.resume = {};
  run(plan, options);
  const TrainingPoint before = training_point(file("f"));
  options.steps = 2;
  run(plan, options);
  options.save = {}, options.resume = file("f"), options.resume_point = before;
  EXPECT_NE(error_of([&] { run(plan, options); }).find("found step 2 of another training, expected step 1 as before"),
            std::string::npos);
}

// Processes find out whether they see the file of process 0 by its name and a random word in it; a link there is not followed.
TEST_F(CheckpointDamage, OnlyTheSameFileIsJoined) {
  fs::create_directory(file("other"));
  SafetensorsWriter writer(file("f"), kTwo, words(1));
  const std::string mark = writer.mark();
  EXPECT_NE(join_writer(file("f"), kTwo, mark), nullptr);
  EXPECT_EQ(join_writer(file("other/f"), kTwo, mark), nullptr);
  const std::string name = mark.substr(16);
  fs::copy_file(file(name), file("other/" + name));
  EXPECT_NE(join_writer(file("other/f"), kTwo, mark), nullptr);  // the same word: taken for the same file
  std::fstream(file("other/" + name), std::ios::in | std::ios::out | std::ios::binary)
      .seekp(writer.places().data())
      .write("x", 1);
  EXPECT_EQ(join_writer(file("other/f"), kTwo, mark), nullptr);
  fs::remove(file("other/" + name));
  fs::create_symlink(file(name), file("other/" + name));
  EXPECT_EQ(join_writer(file("other/f"), kTwo, mark), nullptr);
  EXPECT_EQ(join_writer(file("other/f"), kTwo, mark.substr(0, 16) + "../" + name), nullptr);
}

// A learning rate and a decay of 10^6 multiply the weights by up to -10^12 a step, so that they leave the range of doubles after 26 steps or so.
struct Divergence : CheckpointFolder {
  static ExecuteOptions diverging(int steps, const std::string& path) {
    ExecuteOptions options = training(steps);
    options.tensors = false;
    options.optimizer.learning_rate = options.optimizer.weight_decay = 1e6;
    options.save = path, options.saves.every = 5;
    return options;
  }
  static bool finite(const std::string& path) {
    SafetensorsFile file(path);
    for (const StoredTensor& tensor : file.tensors())
      for (const double element : file.read(tensor.name))
        if (!std::isfinite(element)) return false;
    return true;
  }
};

TEST_F(Divergence, DoesNotReplaceAGoodFile) {
  const Plan plan = lowered(tiny_gpt(), in_double({.dp = 2, .batch = {.micro = 4}}));
  const Execution done = run(plan, diverging(60, file("f")));
  const int ended = static_cast<int>(done.steps.size()), kept = training_point(file("f")).step;
  EXPECT_LT(ended, 60);
  EXPECT_EQ(kept, ended - 5);
  EXPECT_TRUE(finite(file("f")));
  EXPECT_EQ(done.not_saved.find("after step " + std::to_string(ended) + " "), 0U) << done.not_saved;
  EXPECT_FALSE(done.stopped);
  // Two processes, of which each writes a part, come to the same end.
  in_processes(2, 2, [&](ProcessMesh& mesh) {
    ExecuteOptions options = diverging(60, file("g"));
    options.processes = &mesh;
    EXPECT_EQ(run(plan, options).not_saved, done.not_saved);
  });
  EXPECT_TRUE(bytes_of(file("f")) == bytes_of(file("g")));
}

TEST_F(Divergence, IsSavedWhenAskedFor) {
  const Plan plan = lowered(tiny_gpt(), in_double({.batch = {.micro = 8}}));
  ExecuteOptions options = diverging(60, file("f"));
  options.saves.not_finite = true;
  const Execution done = run(plan, options);
  EXPECT_EQ(done.steps.size(), 60U);
  EXPECT_EQ(done.not_saved, "");
  EXPECT_EQ(training_point(file("f")).step, 60);
  EXPECT_FALSE(finite(file("f")));
}

}  // namespace
}  // namespace foreshard::checkpoint_damage_test
