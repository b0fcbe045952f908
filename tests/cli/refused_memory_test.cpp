// The program on a system that refuses memory or threads at some moment: it ends in one sentence, with the exit code of a device failure, and
// leaves no half file. The library cli/refuse refuses the N-th call; the calls of each command are counted first, and N is spread over them.
// FORESHARD_REFUSALS=40 tries as many N for each command and kind (a few minutes) instead of a few.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/session.h"

namespace foreshard::refused_memory_test {

namespace fs = std::filesystem;

namespace {

#ifdef FORESHARD_REFUSE_LIBRARY

constexpr const char* kModel =
    "--model gpt2-124m --set model.n_layer=2 --set model.n_embd=64 --set model.n_head=4 --set model.vocab_size=128 "
    "--set model.n_positions=32 --cluster dgx-a100 --precision fp32";

// A run of two GPUs, whose numbers are none of a publication.
constexpr const char* kTable =
    "source,row_id,model_name,layers,hidden,ffn_hidden,heads,kv_heads,seq_len,vocab,precision,gpu,num_gpus,tp,pp,micro_batch,"
    "global_batch,measured_quantity,measured_value\n"
    "here,one,small,2,64,256,4,4,32,128,bf16,A100-80GB,2,1,1,1,4,iter_time_s,0.002\n"
    "here,two,small,2,64,256,4,4,32,128,bf16,A100-80GB,2,2,1,1,4,iter_time_s,0.003\n";

struct Command {
  std::string name = {};
  std::string line = {};                  // behind "foreshard"
  std::vector<std::string> written = {};  // its files; they are the same in every run, but where `measured`
  bool measured = false;
};

std::vector<Command> commands() {
  const std::string model = kModel;
  return {
      {"simulate", "simulate " + model + " --gpus 2 --save-plan a.plan --save-result a.result", {"a.plan", "a.result"}},
      {"search",
       "search " + model + " --gpus 2 --global-batch 4 --refine 1 --top 1 --fix recompute=none --fix pp=1 --save-plan a.plan",
       {"a.plan"}},
      {"sweep",
       "sweep " + model + " --gpus 2 --vary global-batch=2,4 --refine 1 --top 0 --fix recompute=none --fix pp=1 --svg a.svg",
       {"a.svg"}},
      {"validate", "validate rows.csv --json --svg a.svg", {"a.svg"}},
      {"learn", "calibrate --runs rows.csv --save-profile a.profile", {"a.profile"}},
      {"check", "check-plan p.plan", {}},
      {"run", "run p.plan --steps 2 --save a.safetensors --save-result a.result", {"a.safetensors", "a.result"}, true}};
}

struct Ended {
  int code = -1;
  std::string err = {};
  std::map<std::string, std::string> files = {};  // the new ones
};

class RefusedMemory : public testing::TestWithParam<Command> {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("foreshard-refused-" + GetParam().name + "-" + std::to_string(::getpid()));
    fs::create_directories(folder_ / "work");
    const std::string made =
        run_in_shell(std::string("foreshard lower ") + kModel + " --gpus 2 --save-plan p.plan >/dev/null", folder_.string());
    ASSERT_EQ(made, "");
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Runs the command in a fresh folder with this environment. A command that has not ended after two minutes hangs: code 137.
  Ended run(const std::string& environment) const {
    const fs::path work = folder_ / "work";
    fs::remove_all(work);
    fs::create_directories(work);
    fs::copy_file(folder_ / "p.plan", work / "p.plan");
    std::ofstream(work / "rows.csv") << kTable;
    run_in_shell("timeout -s KILL 120 env LD_PRELOAD=" FORESHARD_REFUSE_LIBRARY " " + environment + " foreshard " +
                     GetParam().line + " >../out 2>../err; echo $? >../code",
                 work.string());
    Ended ended{.err = read_text((folder_ / "err").string())};
    std::istringstream(read_text((folder_ / "code").string())) >> ended.code;
    for (const auto& file : fs::directory_iterator(work)) {
      const std::string name = file.path().filename().string();
      if (name != "p.plan" && name != "rows.csv") ended.files[name] = read_text(file.path().string());
    }
    return ended;
  }

  // [kind]: calls of the command when nothing is refused. Sets how it ends then.
  std::map<std::string, std::int64_t> calls(Ended& whole) const {
    const fs::path file = folder_ / "count";
    whole = run("FORESHARD_REFUSE_COUNT=" + file.string());
    std::map<std::string, std::int64_t> all;
    std::istringstream counts(read_text(file.string()));
    std::string kind;
    for (std::int64_t count = 0; counts >> kind >> count;) all[kind] = count;
    return all;
  }

  void expect_one_sentence(const Ended& ended, const Ended& whole, const std::string& what) const {
    SCOPED_TRACE("foreshard " + GetParam().line + "; refused: " + what + "; exit code " + std::to_string(ended.code) + "\n" +
                 ended.err);
    const auto lines = std::ranges::count(ended.err, '\n');
    if (ended.code == 0)  // what was refused was not needed
      EXPECT_EQ(ended.err, whole.err);
    else
      EXPECT_TRUE(ended.code == 3 && lines == 1 && ended.err.starts_with("foreshard: ")) << lines << " lines";
    for (const auto& [name, text] : ended.files) {
      const auto& written = GetParam().written;
      EXPECT_NE(std::ranges::find(written, name), written.end()) << name << " is left";
      if (!GetParam().measured)
        EXPECT_TRUE(whole.files.contains(name) && whole.files.at(name) == text) << name << " is not whole";
    }
  }

  fs::path folder_;
};

// How many calls are tried of each kind.
int tries(int usual) {
  const char* more = std::getenv("FORESHARD_REFUSALS");
  return more ? std::max(usual, std::atoi(more)) : usual;
}

// The first and the last call, and others between them: every second in equal steps, the rest crowded at the beginning, where less is set up.
std::set<std::int64_t> spread(std::int64_t calls, int tries) {
  std::set<std::int64_t> at = {1, calls};
  for (int i = 1; i + 1 < tries; ++i) {
    const double share = static_cast<double>(i) / (tries - 1);
    at.insert(1 + static_cast<std::int64_t>(static_cast<double>(calls - 1) * (i % 2 == 0 ? share : share * share * share)));
  }
  return at;
}

TEST_P(RefusedMemory, EndsInOneSentence) {
  struct Kind {
    std::string name = {};
    int refused = 0;  // FORESHARD_REFUSE_FOR
    int tries = 0;
  };
  const std::vector<Kind> kinds = {
      {"memory", 0, tries(3)}, {"memory", 1, tries(4)}, {"maps", 1, tries(2)}, {"threads", 0, tries(2)}};
  Ended whole;
  const std::map<std::string, std::int64_t> counted = calls(whole);
  ASSERT_EQ(whole.code, 0) << whole.err;
  ASSERT_GT(counted.at("memory"), 1000) << "the library was not loaded";
  for (const Kind& kind : kinds) {
    const std::int64_t all = counted.at(kind.name);
    if (all == 0) continue;
    for (const std::int64_t at : spread(all, kind.tries))
      expect_one_sentence(
          run("FORESHARD_REFUSE=" + kind.name + " FORESHARD_REFUSE_AT=" + std::to_string(at) +
              " FORESHARD_REFUSE_FOR=" + std::to_string(kind.refused)),
          whole,
          kind.name + " " + std::to_string(at) + " of " + std::to_string(all) + (kind.refused == 0 ? " and all after" : ""));
  }
}

// Each search needs more threads than the system starts: it goes on with those that it has, and the answer is the same.
TEST(RefusedThreads, ASearchGoesOnWithFewer) {
  const std::string search =
      "foreshard search --model gpt2-355m --cluster dgx-a100 --global-batch 16 --rows 1 --top 1 --max-tp 2 --fix pp=1";
  const std::string folder = fs::temp_directory_path().string();
  EXPECT_EQ(run_in_shell("timeout -s KILL 120 env LD_PRELOAD=" FORESHARD_REFUSE_LIBRARY
                         " FORESHARD_REFUSE=threads FORESHARD_REFUSE_AT=1 " +
                             search,
                         folder),
            run_in_shell(search, folder));
}

INSTANTIATE_TEST_SUITE_P(Commands, RefusedMemory, testing::ValuesIn(commands()), [](const auto& of) { return of.param.name; });

#endif

}  // namespace

}  // namespace foreshard::refused_memory_test
