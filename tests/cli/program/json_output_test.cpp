// docs/json-output.md has every key that a verb prints, and no other.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "cli/program/verb.h"
#include "core/json/json.h"
#include "tests/cli/run_line.h"

namespace foreshard::json_output_test {

namespace {

const std::string kJob = "--model gpt2-124m --seq 256 --global-batch 16 --cluster dgx-a100 ";
const std::string kTiny =
    "--model gpt2-124m --cluster dgx-a100 --set model.n_layer=2 --set model.n_embd=32 --set model.n_head=4 --set "
    "model.vocab_size=256 "
    "--set model.n_positions=16 --precision fp32 --gpus 2 --global-batch 4 ";
const std::string kNoFit =
    " --model gpt2-1.5b --cluster dgx-a100 --gpus 1 --global-batch 1024 --reserve 0.9 --fix tp=1 --fix micro_batch=1024 ";

// Lines of each section, by its heading; "@" is the folder of the test. An empty list: says why below.
const std::map<std::string, std::vector<std::string>>& lines() {
  static const std::map<std::string, std::vector<std::string>> all = {
      {"simulate", {"simulate --caching-allocator --json " + kJob, "simulate --policy all --zero 3 --json " + kJob}},
      {"search",
       {"search --top 1 --refine 2 --tokens 1e9 --json " + kJob, "search --top 0 --refine 2 --json --cluster dgx-h100 " + kJob,
        "search --top 0 --refine 2 --json --cluster dgx-h100 " + kNoFit, "search --top 0 --refine 2 --json " + kNoFit}},
      {"sweep",
       {"sweep --vary nodes=1,2 --top 0 --refine 2 --json " + kJob,
        "sweep --vary strategy.seq=512,1024 --top 0 --refine 2 --json " + kNoFit}},
      {"ablate",
       {"ablate --model bert-large --cluster dgx-a100 --set model.num_hidden_layers=2 --seq 128 --json",
        "ablate --step one --step none:tp=3 --json " + kJob}},
      {"partition", {"partition --json " + kJob}},
      {"fit", {"fit --cluster workstation-rtx4090 --gpus 1 --json"}},
      {"lower", {"lower --recompute best --json " + kJob, "lower --tp 3 --json " + kJob}},
      {"export",
       {"export @/s.strategy.json --to megatron --json --model gpt2-124m --cluster dgx-a100",
        "export @/s.strategy.json --to fsdp2 --json --model gpt2-124m --cluster dgx-a100 --set strategy.tp=2"}},
      {"check-plan", {"check-plan @/p.plan.json --json", "check-plan @/p.plan.json --cluster @/small.json --json"}},
      {"list",
       {"list models --json", "list topologies --json", "list schedules --json", "list options --json",
        "list frameworks --json", "list policies --json", "list choices --json"}},
      {"show schedule", {"show schedule 1f1b --pp 2 --micro-batches 2 --json"}},
      {"show policies",
       {"show policies --zero 1 --recompute full --json " + kJob, "show policies --tp 3 --json " + kJob,
        "show policies --algorithm tree --json " + kJob, "show policies --asynchronous --gpus 5 --json " + kJob}},
      {"validate", {"validate " FORESHARD_SOURCE "/data/measured/bert_dle.csv --json --per-row"}},
      {"run", {"run @/p.plan.json --steps 2 --json", "run @/p16.plan.json --steps 2 --json"}},
      {"compare", {"compare @/a.result @/b.result --spans 1 --json"}},
      {"doctor", {"doctor --json"}},
      {"calibrate",
       {"calibrate --quick --precision fp32 --steps 2 --largest-product 16 --ranks 2 --json --save-profile @/h.json "
        "--save-cluster "
        "@/c.json"}},
      {"calibrate --collectives", {}}};  // takes a GPU or processes: tests/cli/nccl_test.cpp
  return all;
}

// Their members have names of rows, paths or a file format of their own.
const std::set<std::string> kOpen = {"strategy",
                                     "values",
                                     "settings",
                                     "sources",
                                     "skipped",
                                     "oom_by_source",
                                     "strategy_without_memory_limit",
                                     "strategy_without_framework"};

void add_keys(const JsonReader& json, std::set<std::string>& keys) {
  if (json.is_object())
    for (const auto& [key, value] : json.members()) {
      keys.insert(key);
      if (!kOpen.contains(key)) add_keys(value, keys);
    }
  if (json.is_array())
    for (const JsonReader& value : json.elements()) add_keys(value, keys);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

// "search" -> its text, of docs/json-output.md.
std::map<std::string, std::string> sections() {
  const std::string begin = "# The JSON of `foreshard ", end = " --json`\n";
  const std::string text = read_file(FORESHARD_SOURCE "/docs/json-output.md");
  std::map<std::string, std::string> found;
  for (std::size_t at = text.find(begin); at != std::string::npos;) {
    const std::size_t name = at + begin.size(), body = text.find(end, name), next = text.find(begin, name);
    found[text.substr(name, body - name)] = text.substr(body + end.size(), next - body - end.size());
    at = next;
  }
  return found;
}

// Words in backquotes, as "`steps[]`": of all of it, or of the first cells of its tables.
std::set<std::string> words_of(const std::string& section, bool first_cells) {
  std::set<std::string> words;
  std::istringstream in(section);
  for (std::string line; std::getline(in, line);) {
    if (first_cells) line = line.starts_with("| `") ? line.substr(0, line.find(" | ", 2)) : "";
    const std::regex quoted("`([a-z0-9_]+)(\\[\\])?`");
    for (std::sregex_iterator word(line.begin(), line.end(), quoted), last; word != last; ++word) words.insert((*word)[1]);
  }
  return words;
}

class JsonOutput : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "foreshard-json-" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  RanLine ran(const std::string& line) const { return run_line(replaced(line, "@", folder_)); }
  void make_files() const {
    write_file(folder_ + "/s.strategy.json", R"({"seq": 256, "global_batch": 64})");
    for (const std::string& line : std::vector<std::string>{
             "lower " + kTiny + "--save-plan @/p.plan.json", "lower " + kTiny + "--loss-scale 0 --save-plan @/p16.plan.json",
             "simulate --plan @/p.plan.json --granularity op --save-result @/a.result",
             "simulate --plan @/p.plan.json --granularity op --straggler 1=2 --save-result @/b.result",
             "show cluster dgx-a100 --json"}) {
      const RanLine made = ran(line);
      ASSERT_EQ(made.code, ExitCode::Ok) << line << made.err;
      if (line.starts_with("show"))
        write_file(folder_ + "/small.json",
                   std::regex_replace(made.out, std::regex("\"memory\": [^,]*"), "\"memory\": 1048576"));
    }
  }

  std::string folder_ = {};
};

}  // namespace

TEST_P(JsonOutput, HasTheKeysThatAreDocumented) {
  const auto takes_files = [](const std::string& line) { return line.find("@/") != std::string::npos; };
  if (std::ranges::any_of(lines().at(GetParam()), takes_files)) make_files();
  const std::map<std::string, std::string> documented = sections();
  ASSERT_TRUE(documented.contains(GetParam())) << "no section of " << GetParam();
  std::set<std::string> printed;
  for (const std::string& line : lines().at(GetParam())) {
    const RanLine one = ran(line);
    ASSERT_FALSE(one.out.empty()) << line << one.err;
    add_keys(JsonReader::parse(one.out, line), printed);
  }
  const std::string& text = documented.at(GetParam());
  const std::set<std::string> said = words_of(text, false);
  for (const std::string& key : printed) EXPECT_TRUE(said.contains(key)) << key << " of " << GetParam() << " is not documented";
  if (lines().at(GetParam()).empty()) return;
  for (const std::string& key : words_of(text, true))
    EXPECT_TRUE(printed.contains(key)) << key << " is not printed by " << GetParam();
}

INSTANTIATE_TEST_SUITE_P(Of, JsonOutput, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const auto& [name, of_verb] : lines()) names.push_back(name);
                           return names;
                         }()),
                         [](const auto& info) { return std::regex_replace(info.param, std::regex("[^a-z]"), "_"); });

// A verb that prints JSON has a section, or prints a file.
TEST(JsonOutputs, EveryVerbHasASection) {
  const std::map<std::string, std::string> documented = sections();
  const std::set<std::string> files = {"show model", "show cluster", "show plan", "selftest"};  // selftest: a GPU
  for (const Verb& verb : verbs())
    for (const VerbOption& option : verb.options)
      if (option.name == "--json") {
        EXPECT_TRUE(documented.contains(verb.name) || files.contains(verb.name)) << verb.name;
      }
  for (const auto& [name, text] : documented) EXPECT_TRUE(lines().contains(name)) << name;
}

}  // namespace foreshard::json_output_test
