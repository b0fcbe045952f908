// foreshard export: a saved strategy in a framework's words, or why there are none.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "core/json/json.h"
#include "core/strategy/strategy.h"
#include "strategy/search/search_framework.h"
#include "tests/cli/run_line.h"
#include "tests/how_many.h"

namespace foreshard::export_test {

namespace {

const std::string kJob = " --model llama-3-8b --cluster dgx-h100";

class Export : public testing::Test {
 protected:
  void SetUp() override { file_ = testing::TempDir() + "foreshard-export-" + std::to_string(::getpid()) + ".strategy.json"; }
  void TearDown() override { std::filesystem::remove(file_); }
  void save(Strategy strategy) const {
    strategy.batch.seq = 4096, strategy.batch.global = 64;
    write_file(file_, to_json(strategy));
  }
  RanLine to(const std::string& framework, const std::string& more = "") const {
    return run_line("export " + file_ + " --to " + framework + kJob + more);
  }

  std::string file_ = {};
};

}  // namespace

// One mechanism: what `search` prints below its table is what `export` writes of the strategy that it saved.
TEST_F(Export, WritesWhatTheSearchPrints) {
  for (const std::string& framework : some_of<std::string>({"megatron", "torchtitan", "deepspeed", "fsdp2"}, 1)) {
    const RanLine found = run_line("search --seq 4096 --global-batch 64 --refine 4 --top 0 --threads 1 --framework " +
                                   framework + " --save-strategy " + file_ + kJob);
    ASSERT_EQ(found.code, ExitCode::Ok) << framework << found.err;
    const RanLine written = to(framework);
    EXPECT_EQ(written.code, ExitCode::Ok) << written.err;
    EXPECT_TRUE(written.out.starts_with("For " + framework + ", ")) << written.out;
    EXPECT_NE(found.out.find(written.out), std::string::npos) << found.out << written.out;
  }
}

TEST_F(Export, JsonAndFileHaveTheSameLines) {
  save({.dp = 2, .tp = 4, .framework = "megatron"});
  const std::string out = file_ + ".txt";
  const RanLine ran = to("megatron", " --json --save " + out);
  ASSERT_EQ(ran.code, ExitCode::Ok) << ran.err;
  const JsonReader json = JsonReader::parse(ran.out, "export");
  std::string lines;
  for (const JsonReader& line : json.at("lines").elements()) lines += line.as_string() + "\n";
  EXPECT_EQ(read_file(out), lines);
  EXPECT_NE(lines.find("--tensor-model-parallel-size 4\n"), std::string::npos) << lines;
  EXPECT_EQ(json.at("framework").as_string(), "megatron");
  std::filesystem::remove(out);
}

// What a framework cannot do is the reason, not a wrong file.
TEST_F(Export, AStrategyThatTheFrameworkCannotRunIsRefused) {
  save({.dp = 2, .tp = 2, .pp = 2, .pipeline = {.schedule = Schedule::ZeroBubbleH1}});
  EXPECT_EQ(to("megatron").code, ExitCode::Infeasible);
  EXPECT_TRUE(to("megatron")
                  .err.starts_with(
                      "foreshard: megatron cannot run this strategy: megatron's schedules are 1F1B and interleaved 1F1B\n"))
      << to("megatron").err;
  EXPECT_NE(to("fsdp2").err.find("fsdp2 alone has only data parallelism"), std::string::npos);
  save({.dp = 2, .tp = 2, .cp = 2});
  EXPECT_NE(to("deepspeed").err.find("no ring or all-gather context parallelism"), std::string::npos);
}

TEST_F(Export, FrameworksWithoutWordsAreNamed) {
  save({.dp = 2, .tp = 4});
  EXPECT_NE(to("accelerate").err.find("expected deepspeed or fsdp2, which Accelerate starts"), std::string::npos);
  EXPECT_NE(to("nanotron").err.find("found nanotron, of which no options are known"), std::string::npos);
  EXPECT_NE(to("megatrn").err.find("(nearest: megatron)"), std::string::npos);
  EXPECT_EQ(run_line("export " + file_ + " --to megatron --model vgg-16 --cluster dgx-h100").code, ExitCode::WrongInput);
}

}  // namespace foreshard::export_test
