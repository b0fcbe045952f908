// Strategies drawn over all options together, on shipped models and clusters and with the presets of frameworks: simulate, search and
// validate answer, refuse or say what is wrong. A plan that is not sound, a failed assertion and a time that is no number are failures.
//
// FORESHARD_PLANS_SIMULATED: how many jobs are simulated; FORESHARD_SEED.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/json/json.h"
#include "core/strategy/strategy_options.h"
#include "tests/cli/run_line.h"
#include "tests/drawn_strategy.h"

namespace foreshard::drawn_jobs_test {
namespace {

struct DrawnModel {
  const char* name = "";
  const char* layers_key = "num_hidden_layers";  // "": a list of layers
  drawn::Bounds bounds = {};
};
const std::vector<DrawnModel>& drawn_models() {
  static const std::vector<DrawnModel> all = {{"gpt2-124m", "n_layer"},
                                              {"bert-large", "num_hidden_layers"},
                                              {"llama-3-8b"},
                                              {"llama-2-7b"},
                                              {"qwen3-8b"},
                                              {"gemma-2-2b"},
                                              {"gemma-3-4b"},
                                              {"granite-3.3-8b"},
                                              {"phi-3-mini-4k"},
                                              {"gpt-oss-20b", "num_hidden_layers", {.experts = 32}},
                                              {"mixtral-8x7b", "num_hidden_layers", {.experts = 8}},
                                              {"qwen3-30b-a3b", "num_hidden_layers", {.experts = 128}},
                                              {"deepseek-v2-lite", "num_hidden_layers", {.experts = 64}},
                                              {"toy-matmul", "", {.layers = 4, .most_tp = 1, .sequences = false}},
                                              {"vgg-16", "", {.layers = 37, .most_tp = 1, .sequences = false}},
                                              {"resnet-50", "", {.layers = 175, .most_tp = 1, .sequences = false}}};
  return all;
}
const std::vector<std::string> kClusters = {
    "dgx-a100",     "dgx-h100-x2", "dgx-b200", "gb200-nvl72", "eth25-a100-x2", "pcie-a100-8", "workstation-rtx4090-x4",
    "dgx1-v100-x2", "hgx-h200"};

std::vector<std::string> drawn_job(drawn::Dice& dice) {
  const DrawnModel& model = dice.any(drawn_models());
  drawn::Bounds bounds = model.bounds;
  bounds.ranks = 16;
  std::vector<std::string> words = {"--model", model.name, "--cluster", dice.any(kClusters)};
  if (*model.layers_key) {
    bounds.layers = dice.any({4, 4, 6, 8});
    words.insert(words.end(), {"--set", std::string("model.") + model.layers_key + "=" + std::to_string(bounds.layers)});
  }
  const drawn::Draw draw = drawn::draw_strategy(dice, bounds, {"seq", "packed_length", "precision", "stages"});
  Strategy s = draw.strategy;
  if (s.pipeline.schedule == Schedule::Listed) s.pipeline.schedule.reset();
  s.pipeline.order.clear();
  if (dice.one_in(3)) s.precision = dice.any({DType::F32, DType::F16, DType::F8});
  if (dice.one_in(2)) s.framework = dice.any(framework_names());
  const Strategy plain;
  const int ranks = std::max(1, s.dp) * s.tp * s.cp * s.pp;
  for (const StrategyOption& option : strategy_options()) {
    const std::string value = option.get(s);
    if (value == option.get(plain) || option.flag.empty()) continue;
    words.push_back(option.flag);
    if (option.type != OptionType::Flag) words.push_back(value);
  }
  if (s.stages.empty()) words.insert(words.end(), {"--gpus", std::to_string(ranks)});
  if (bounds.sequences) words.insert(words.end(), {"--seq", dice.any<std::string>({"256", "512"})});
  if (dice.one_in(2)) words.push_back("--ignore-memory");
  return words;
}

std::string line_of(const std::vector<std::string>& words) {
  std::string line = "foreshard";
  for (const std::string& word : words) line += word.find_first_of(" ;") == std::string::npos ? " " + word : " '" + word + "'";
  return line;
}

void check_answer(const RanLine& ran, int& answered) {
  if (ran.code == ExitCode::WrongInput) {
    EXPECT_TRUE(ran.err.starts_with("foreshard: ")) << ran.err;
    return;
  }
  ASSERT_TRUE(ran.code == ExitCode::Ok || ran.code == ExitCode::Infeasible) << static_cast<int>(ran.code) << " " << ran.err;
  if (ran.code == ExitCode::Infeasible) return;
  const double seconds = JsonReader::parse(ran.out, "output").at("iteration_time_s").as_double();
  EXPECT_TRUE(seconds > 0 && std::isfinite(seconds));
  ++answered;
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    if (c == ',' && !quoted)
      cells.emplace_back();
    else
      cells.back() += c;
  }
  return cells;
}

// Rows of published runs with other degrees, sizes and choices.
void write_drawn_rows(drawn::Dice& dice, const std::string& path, int rows) {
  std::vector<std::string> lines;
  std::string header;
  for (const char* name : {"megatron_bridge", "aleph_alpha", "torchtitan", "bigscience_a100", "nanotron", "korthikanti2022"}) {
    std::ifstream file(std::string(FORESHARD_SOURCE "/data/measured/") + name + ".csv");
    std::getline(file, header);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
  }
  const std::vector<std::string> columns = cells_of(header);
  const std::vector<std::pair<std::string, std::vector<std::string>>> values = {
      {"tp", {"1", "2", "4", "8", "3", "16"}},
      {"pp", {"1", "2", "4", "8", "5"}},
      {"vpp", {"1", "2", "3", "1000000000"}},
      {"cp", {"1", "2", "4"}},
      {"ep", {"1", "2", "8"}},
      {"dp", {"1", "2", "8", "unknown"}},
      {"micro_batch", {"1", "2", "4", "0", "1e-06"}},
      {"global_batch", {"1", "64", "512", "0.000512", "7"}},
      {"seq_len", {"2048", "8192", "1"}},
      {"hidden", {"4096", "6,144", "7"}},
      {"recompute", {"none", "full", "selective", "unknown"}},
      {"sequence_parallel", {"yes", "no"}},
      {"zero_stage_or_fsdp", {"zero1", "zero3", "none", "fsdp"}},
      {"pp_schedule", {"1F1B", "interleaved 1F1B", "none", "ZB-V"}},
      {"precision", {"bf16", "fp8", "fp16 mixed", "fp32"}},
      {"framework", framework_names()},
      {"num_gpus", {"8", "64", "1", "0"}}};
  std::ofstream file(path);
  file << header << "\n";
  for (int row = 0; row < rows; ++row) {
    std::vector<std::string> cells = cells_of(dice.any(lines));
    for (int changes = dice.below(4); changes >= 0; --changes) {
      const auto& [column, choices] = dice.any(values);
      const auto at = static_cast<std::size_t>(std::ranges::find(columns, column) - columns.begin());
      if (at < cells.size()) cells[at] = dice.any(choices).find(',') == std::string::npos ? dice.any(choices) : "\"6,144\"";
    }
    for (std::size_t i = 0; i < cells.size(); ++i) file << (i > 0 ? "," : "") << cells[i];
    file << "\n";
  }
}

}  // namespace

TEST(DrawnJobs, SimulateAnswers) {
  const int count = drawn::number_of("FORESHARD_PLANS_SIMULATED", 120),
            seed = drawn::number_of("FORESHARD_SEED", 60) * 1'000'000;
  const int first = drawn::number_of("FORESHARD_PLANS_FIRST", 0);
  const bool shows = std::getenv("FORESHARD_PLANS_SHOWN") != nullptr;
  int answered = 0;
  for (int index = first; index < first + count; ++index) {
    drawn::Dice dice(static_cast<std::uint32_t>(seed + 500'000 + index));
    std::vector<std::string> words = {"simulate", "--json", "--clock", "light"};
    const std::vector<std::string> job = drawn_job(dice);
    words.insert(words.end(), job.begin(), job.end());
    SCOPED_TRACE("draw " + std::to_string(index) + ", " + line_of(words));
    if (shows) std::fprintf(stderr, "draw %d, %s\n", index, line_of(words).c_str());
    check_answer(run_words(words), answered);
  }
  std::printf("%d of %d jobs simulated\n", answered, count);
  EXPECT_GT(answered * 10, count);
}

TEST(DrawnJobs, SearchAnswers) {
  const int count = std::max(1, drawn::number_of("FORESHARD_PLANS_SIMULATED", 60) / 60);
  for (int index = 0; index < count; ++index) {
    drawn::Dice dice(static_cast<std::uint32_t>(700'000 + index));
    const DrawnModel& model = dice.any(drawn_models());
    std::vector<std::string> words = {"search",         "--json",
                                      "--model",        model.name,
                                      "--cluster",      dice.any(kClusters),
                                      "--threads",      "1",
                                      "--global-batch", dice.any<std::string>({"16", "64"})};
    if (*model.layers_key)
      words.insert(words.end(), {"--seq", "256", "--set", std::string("model.") + model.layers_key + "=4"});
    if (dice.one_in(2)) words.insert(words.end(), {"--framework", dice.any(framework_names())});
    if (dice.one_in(3)) words.insert(words.end(), {"--recompute", dice.any<std::string>({"auto", "best", "full", "rotor"})});
    if (dice.one_in(3))
      words.insert(words.end(), {"--offload-activations", dice.any<std::string>({"free-time", "inputs", "all"})});
    if (dice.one_in(4)) words.insert(words.end(), {"--offload-optimizer", "host"});
    SCOPED_TRACE(line_of(words));
    const RanLine ran = run_words(words);
    EXPECT_TRUE(ran.code == ExitCode::Ok || ran.code == ExitCode::Infeasible || ran.code == ExitCode::WrongInput)
        << static_cast<int>(ran.code) << " " << ran.err;
  }
}

TEST(DrawnJobs, ValidateAnswersRowByRow) {
  const int rows = std::max(40, drawn::number_of("FORESHARD_PLANS_SIMULATED", 120) / 5);
  const std::string path = std::filesystem::temp_directory_path() / ("drawn_rows." + std::to_string(::getpid()) + ".csv");
  drawn::Dice dice(900'000);
  write_drawn_rows(dice, path, rows);
  const RanLine ran = run_words({"validate", path});
  EXPECT_TRUE(ran.code == ExitCode::Ok || ran.code == ExitCode::WrongInput) << static_cast<int>(ran.code) << " " << ran.err;
  if (!HasFailure()) std::filesystem::remove(path);
}

}  // namespace foreshard::drawn_jobs_test
