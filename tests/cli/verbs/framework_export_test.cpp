// Exports against tables of the frameworks' own options (data/options, read from their sources), and read back: with the framework's
// default wherever an option is not given, they have to say what was simulated.
#include "cli/parts/framework_words.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <random>
#include <regex>
#include <sstream>

#include "core/cluster_file/cluster_file.h"
#include "core/json/json.h"
#include "strategy/lower/lower.h"
#include "strategy/search/search_framework.h"
#include "tests/how_many.h"

namespace foreshard::framework_export_test {
namespace {

struct Option {
  std::string type = {}, standard = {};
  std::vector<std::string> choices = {};
};

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

std::map<std::string, Option> table_of(const std::string& framework) {
  std::ifstream file(std::string(FORESHARD_SOURCE) + "/data/options/" + framework + ".csv");
  std::map<std::string, Option> table;
  std::string line;
  for (int skipped = 0; skipped < 2; ++skipped) std::getline(file, line);
  while (std::getline(file, line)) {
    const std::size_t a = line.find(','), b = line.find(',', a + 1), c = line.find(',', b + 1);
    table[line.substr(0, a)] = {line.substr(a + 1, b - a - 1), line.substr(c + 1), split(line.substr(b + 1, c - b - 1), '|')};
  }
  EXPECT_GT(table.size(), 5u) << framework;
  return table;
}

bool is_number(const std::string& text, bool whole) {
  std::size_t end = 0;
  try {
    whole ? static_cast<void>(std::stoll(text, &end)) : static_cast<void>(std::stod(text, &end));
  } catch (const std::exception&) {
    return false;
  }
  return end == text.size();
}

// What an export says, option by option.
class Said {
 public:
  explicit Said(const std::map<std::string, Option>& table) : table_(table) {}

  void say(const std::string& option, const std::string& value) {
    const auto known = table_.find(option);
    ASSERT_NE(known, table_.end()) << option << " is no option";
    EXPECT_FALSE(has(option)) << option << " is said twice";
    const Option& o = known->second;
    EXPECT_EQ(o.type == "flag", value.empty()) << option;
    if (o.type == "int") {
      EXPECT_TRUE(is_number(value, true)) << option << " " << value;
    }
    if (o.type == "float") {
      EXPECT_TRUE(is_number(value, false)) << option << " " << value;
    }
    if (o.type == "bool") {
      EXPECT_TRUE(value == "true" || value == "false" || value == "True" || value == "False") << option;
    }
    if (!o.choices.empty()) {
      EXPECT_NE(std::find(o.choices.begin(), o.choices.end(), value), o.choices.end()) << option << " " << value;
    }
    values_[option] = value;
  }
  bool has(const std::string& option) const { return values_.count(option) > 0; }
  // The framework's default where nothing is said.
  std::string of(const std::string& option) const { return has(option) ? values_.at(option) : table_.at(option).standard; }
  double number(const std::string& option) const { return of(option).empty() ? 0 : std::stod(of(option)); }

 private:
  const std::map<std::string, Option>& table_;
  std::map<std::string, std::string> values_ = {};
};

Said read_command_line(const FrameworkExport& out, const std::map<std::string, Option>& table) {
  Said said(table);
  for (const std::string& line : out.lines) {
    const std::size_t blank = line.find(' ');
    std::string value = blank == std::string::npos ? "" : line.substr(blank + 1);
    std::erase(value, '"');
    said.say(line.substr(0, blank), value);
  }
  return said;
}

// TOML as it is written: sections, one key a line, and one array over several lines, whose rows are given to `rows`.
Said read_toml(const FrameworkExport& out, const std::map<std::string, Option>& table, std::vector<std::string>& rows) {
  Said said(table);
  std::string section, key;
  for (const std::string& line : out.lines) {
    if (line.front() == '[')
      section = line.substr(1, line.size() - 2) + ".";
    else if (line.front() == ' ')
      rows.push_back(line);
    else if (line != "]") {
      const std::size_t equals = line.find(" = ");
      std::string value = line.substr(equals + 3);
      std::erase(value, '"');
      said.say(section + line.substr(0, equals), value);
    }
  }
  return said;
}

void read_json(const JsonReader& json, const std::string& path, Said& said) {
  for (const auto& [key, value] : json.members()) {
    if (value.is_object())
      read_json(value, path + key + ".", said);
    else
      said.say(path + key, value.is_string() ? value.as_string()
                           : value.is_bool() ? (value.as_bool() ? "true" : "false")
                                             : value.found());
  }
}

int parts_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

std::vector<int> wanted_layers(const Model& model, const Strategy& s) {
  if (!s.pipeline.layer_split.empty()) return parse_layer_split(s.pipeline.layer_split, "");
  const int stages = s.pp * s.virtual_stages;
  return std::vector<int>(static_cast<std::size_t>(stages), std::get<Transformer>(model.shape).layers / stages);
}

void expect_megatron(const Said& said, const Model& model, const Strategy& s) {
  EXPECT_EQ(said.number("--num-layers"), std::get<Transformer>(model.shape).layers);
  EXPECT_EQ(said.number("--tensor-model-parallel-size"), s.tp);
  EXPECT_EQ(said.number("--pipeline-model-parallel-size"), s.pp);
  EXPECT_EQ(said.number("--context-parallel-size"), s.cp);
  if (s.cp > 1) {
    EXPECT_EQ(said.of("--cp-comm-type").find("p2p") != std::string::npos, s.context == ContextKind::Ring);
  }
  if (s.cp > 1 && s.context == ContextKind::AllGather) {
    EXPECT_EQ(said.of("--cp-comm-type"), "all_gather");
  }
  EXPECT_EQ(said.number("--micro-batch-size"), s.batch.micro);
  EXPECT_EQ(said.number("--global-batch-size"), s.batch.global);
  EXPECT_EQ(said.number("--seq-length"), s.batch.seq);
  EXPECT_EQ(said.has("--sequence-parallel"), s.sequence_parallel);
  EXPECT_EQ(said.has("--use-distributed-optimizer"), s.zero.stage == 1);
  if (s.zero.stage == 1) {
    EXPECT_EQ(said.number("--num-distributed-optimizer-instances"), s.dp / s.zero.group);
  }
  EXPECT_EQ(said.has("--overlap-grad-reduce"), s.communication.overlap->gradients);
  EXPECT_EQ(said.has("--overlap-param-gather"), s.communication.overlap->parameters);
  if (s.virtual_stages > 1) {
    EXPECT_EQ(said.has("--no-overlap-p2p-communication"), !s.communication.overlap->p2p);
  }
  EXPECT_EQ(said.number("--clip-grad"), *s.optimizer.clip_norm);
  EXPECT_EQ(said.number("--hidden-dropout"), *s.dropout);
  EXPECT_EQ(said.number("--attention-dropout"), *s.dropout);
  EXPECT_EQ(said.has("--bf16"), s.precision == DType::BF16 || s.precision == DType::F8);
  EXPECT_EQ(said.of("--fp8-format"), s.precision == DType::F8 ? "hybrid" : "");
  EXPECT_EQ(said.of("--fp8-recipe"), s.precision == DType::F8 ? "tensorwise" : "delayed");
  EXPECT_EQ(said.has("--fp16"), s.precision == DType::F16);
  EXPECT_EQ(said.of("--attention-backend"), s.attention == AttentionKernel::Flash ? "flash" : "unfused");
  EXPECT_EQ(said.of("--optimizer"), s.optimizer.kind == OptimizerKind::Adam ? "adam" : "sgd");
  EXPECT_EQ(said.number("--make-vocab-size-divisible-by"), s.vocab_multiple);
  if (said.has("--pipeline-model-parallel-layout")) {
    std::vector<int> layers;
    for (const std::string& stage : split(said.of("--pipeline-model-parallel-layout"), '|'))
      layers.push_back(parts_of(stage, "t"));
    EXPECT_EQ(layers, wanted_layers(model, s));
  } else {
    EXPECT_EQ(std::max(1.0, said.number("--num-virtual-stages-per-pipeline-rank")), s.virtual_stages);
    EXPECT_EQ(std::get<Transformer>(model.shape).layers % (s.pp * s.virtual_stages), 0);
  }
  const std::string how = said.of("--recompute-granularity");
  EXPECT_EQ(how, s.recompute.kind == RecomputeKind::None ? "" : s.recompute.kind == RecomputeKind::Full ? "full" : "selective");
  if (how == "full") {
    EXPECT_EQ(said.number("--recompute-num-layers"), std::max(1, s.recompute.layers));
  }
  if (how == "full") {
    EXPECT_EQ(said.of("--recompute-method"), s.recompute.layers > 0 ? "block" : "uniform");
  }
}

void expect_torchtitan(const Said& said, const std::vector<std::string>& stages, const Model& model, const Strategy& s) {
  const double microbatches = static_cast<double>(s.batch.global / (s.batch.micro * s.dp));
  const double shard = said.number("parallelism.data_parallel_shard_degree");
  EXPECT_EQ(said.number("parallelism.data_parallel_replicate_degree") * shard, s.dp);
  if (s.zero.stage > 0) {
    EXPECT_EQ(shard, s.zero.group);
  } else
    EXPECT_EQ(shard, 1);
  if (s.zero.stage > 0) {
    EXPECT_EQ(said.of("parallelism.fsdp_reshard_after_forward"), s.zero.stage == 3 ? "always" : "never");
  }
  EXPECT_EQ(said.number("parallelism.tensor_parallel_degree"), s.tp);
  EXPECT_EQ(said.number("parallelism.context_parallel_degree"), s.cp);
  EXPECT_EQ(said.of("parallelism.context_parallel_rotate_method"),
            s.cp > 1 && s.context == ContextKind::Ring ? "alltoall" : "allgather");
  EXPECT_EQ(said.number("parallelism.pipeline_parallel_degree"), s.pp);
  EXPECT_EQ(said.number("training.seq_len"), s.batch.seq);
  EXPECT_EQ(said.number("training.global_batch_size"), s.batch.global);
  EXPECT_EQ(said.number("training.local_batch_size"), s.pp > 1 ? s.batch.micro * microbatches : s.batch.micro);
  EXPECT_EQ(said.of("training.max_norm"), *s.optimizer.clip_norm > 0 ? "1.0" : "inf");
  EXPECT_EQ(said.of("training.mixed_precision_param"), s.precision == DType::F32 ? "float32" : "bfloat16");
  const bool eighth = s.precision == DType::F8;
  EXPECT_EQ(said.of("model.converters"), eighth ? "[quantize.linear.float8]" : "");
  EXPECT_EQ(said.of("quantize.linear.float8.recipe_name"), eighth ? "tensorwise" : "");
  EXPECT_EQ(said.of("quantize.linear.float8.filter_fqns"), eighth ? "[output]" : "");
  EXPECT_EQ(said.of("training.dtype"), "float32");
  if (s.pp > 1) {
    EXPECT_EQ(said.number("parallelism.pipeline_parallel_microbatch_size"), s.batch.micro);
    std::vector<int> layers;
    for (const std::string& stage : stages) layers.push_back(parts_of(stage, "layers."));
    ASSERT_EQ(layers, wanted_layers(model, s));
    EXPECT_NE(stages.front().find("tok_embeddings"), std::string::npos);
    EXPECT_NE(stages.back().find("output"), std::string::npos);
    EXPECT_EQ(said.of("parallelism.pipeline_parallel_schedule"), s.pipeline.schedule == Schedule::GPipe ? "GPipe"
                                                                 : s.virtual_stages > 1                 ? "Interleaved1F1B"
                                                                                                        : "1F1B");
  }
  EXPECT_EQ(said.of("activation_checkpoint.mode"), s.recompute.kind == RecomputeKind::None ? "none" : "full");
}

void expect_deepspeed(const Said& said, const Strategy& s) {
  EXPECT_EQ(said.number("train_batch_size"), s.batch.global);
  EXPECT_EQ(said.number("train_micro_batch_size_per_gpu") * said.number("gradient_accumulation_steps") * s.dp, s.batch.global);
  EXPECT_EQ(said.number("train_micro_batch_size_per_gpu"), s.batch.micro);
  EXPECT_EQ(said.number("gradient_clipping"), *s.optimizer.clip_norm);
  EXPECT_EQ(said.number("zero_optimization.stage"), s.zero.stage);
  EXPECT_EQ(said.of("zero_optimization.overlap_comm"), s.communication.overlap->gradients ? "true" : "false");
  if (s.zero.stage == 3) {
    EXPECT_EQ(said.number("zero_optimization.stage3_prefetch_bucket_size") > 0, s.communication.overlap->parameters);
  }
  if (s.zero.stage == 3 && s.zero.group < s.dp) {
    EXPECT_EQ(said.number("zero_optimization.mics_shard_size"), s.zero.group);
  }
  EXPECT_EQ(said.of("bf16.enabled") == "true", s.precision == DType::BF16);
  EXPECT_EQ(said.of("fp16.enabled") == "true", s.precision == DType::F16);
  EXPECT_EQ(said.of("data_types.grad_accum_dtype"), name_of(state_types(s).grad));
  EXPECT_EQ(said.number("tensor_parallel.autotp_size"), s.tp > 1 ? s.tp : 0);
}

// The calls of fully_shard: names of their keywords, and the same policy for the layers and the root.
void expect_fsdp2(const FrameworkExport& out, const std::map<std::string, Option>& table, const Strategy& s) {
  int calls = 0;
  const auto converts = [](const std::string& line) { return line.starts_with("torchao.float8.convert_to_float8_training("); };
  EXPECT_EQ(std::ranges::count_if(out.lines, converts), s.precision == DType::F8 ? 1 : 0);
  for (const std::string& line : out.lines) {
    const std::size_t at = line.find("fully_shard("), policy = line.find("MixedPrecisionPolicy(");
    if (at == std::string::npos && policy == std::string::npos) continue;
    const std::string call = line.substr(at != std::string::npos ? at : policy), name = call.substr(0, call.find('('));
    const std::regex keyword("(\\w+)=");
    for (std::sregex_iterator k(call.begin(), call.end(), keyword), end; k != end; ++k)
      EXPECT_TRUE(table.count(name + "." + (*k)[1].str())) << line;
    if (name != "fully_shard") continue;
    ++calls;
    EXPECT_NE(call.find("mp_policy=policy"), std::string::npos) << line;
    EXPECT_NE(call.find(s.zero.stage == 3 ? "reshard_after_forward=True" : "reshard_after_forward=False"), std::string::npos)
        << line;
  }
  EXPECT_EQ(calls, 2);
}

// One strategy that the framework can run, or none.
std::optional<Strategy> drawn(std::mt19937& random, const Model& model, const Cluster& cluster, const std::string& framework) {
  const auto any = [&](auto list) { return *(list.begin() + static_cast<long>(random() % list.size())); };
  Strategy base{.batch = {.seq = 2048}, .framework = framework};
  base.batch.global = any(std::initializer_list<int>{32, 64, 96});
  if (any(std::initializer_list<int>{0, 1})) base.optimizer.clip_norm = any(std::initializer_list<double>{0, 1});
  if (any(std::initializer_list<int>{0, 1}))
    base.context = any(std::initializer_list<ContextKind>{ContextKind::Ring, ContextKind::AllGather});
  if (any(std::initializer_list<int>{0, 1, 2}) == 0) base.dropout = any(std::initializer_list<double>{0, 0.1, 0.25});
  base.precision = any(std::initializer_list<DType>{DType::BF16, DType::BF16, DType::F8, DType::F16, DType::F32});
  if (any(std::initializer_list<int>{0, 1, 2}) == 0) base.optimizer.kind = OptimizerKind::Sgd, base.optimizer.momentum = 0.9;
  if (framework == "megatron") base.communication.overlap = Overlap{.tp = any(std::initializer_list<bool>{false, true})};
  const std::initializer_list<int> degrees = {1, 1, 2, 4};
  const std::initializer_list<bool> either = {false, true};
  Point p{.tp = any(degrees),
          .cp = any(std::initializer_list<int>{1, 1, 2}),
          .pp = any(degrees),
          .virtual_stages = any(std::initializer_list<int>{1, 1, 2, 3})};
  const int gpus = gpu_count(cluster), ranks = p.tp * p.cp * p.pp;
  if (gpus % ranks != 0 || (p.virtual_stages > 1 && p.pp == 1)) return {};
  p.dp = gpus / ranks;
  p.micro_batch = any(std::initializer_list<int>{1, 2});
  p.sequence_parallel = any(either), p.overlap_gradients = any(either), p.overlap_parameters = any(either),
  p.overlap_p2p = any(either);
  p.zero = static_cast<std::int8_t>(any(std::initializer_list<int>{0, 1, 2, 3}));
  if (p.zero == 0) p.overlap_parameters = false;
  if (p.zero > 0 && p.dp % 2 == 0) p.zero_group = any(std::initializer_list<int>{0, p.dp / 2});
  p.recompute = any(std::initializer_list<RecomputeKind>{RecomputeKind::None, RecomputeKind::Selective, RecomputeKind::Full});
  if (p.recompute == RecomputeKind::Full) p.recompute_layers = any(std::initializer_list<int>{0, 2});
  p.schedule =
      p.virtual_stages > 1 ? Schedule::Interleaved : any(std::initializer_list<Schedule>{Schedule::OneFOneB, Schedule::GPipe});
  const Strategy whole = with_preset(model, base);
  if (refused_by(*find_runner(framework), p, whole) != nullptr) return {};
  const int layers = std::get<Transformer>(model.shape).layers;
  const Strategy s = strategy_at(whole, p, layers);
  if (p.virtual_stages > 1 && layers % (p.pp * p.virtual_stages) != 0) return {};
  auto answer = resolve(model, cluster, s);
  return std::holds_alternative<Strategy>(answer) ? std::optional(std::get<Strategy>(answer)) : std::nullopt;
}

class FrameworkExports : public testing::TestWithParam<const char*> {};

TEST_P(FrameworkExports, SayWhatWasSimulatedInOptionsThatExist) {
  const std::string framework = GetParam();
  const auto table = table_of(framework);
  const Cluster cluster = load_cluster("dgx-h100-x2");
  std::mt19937 random(7);
  int exported = 0;
  for (int i = 0; i < 60'000 && exported < how_many(110, 300); ++i) {
    const Model model = load_model(random() % 2 ? "gpt2-355m" : "llama-3-8b");
    const auto s = drawn(random, model, cluster, framework);
    if (!s) continue;
    ++exported;
    const auto out = framework_export(model, *s);
    ASSERT_TRUE(out);
    SCOPED_TRACE(to_json(*s));
    if (framework == "megatron") expect_megatron(read_command_line(*out, table), model, *s);
    std::vector<std::string> rows;
    if (framework == "torchtitan") {
      const Said said = read_toml(*out, table, rows);
      expect_torchtitan(said, rows, model, *s);
    }
    if (framework == "deepspeed") {
      std::string file;
      for (const std::string& line : out->lines) file += line + "\n";
      Said said(table);
      read_json(JsonReader::parse(file, "ds_config.json"), "", said);
      expect_deepspeed(said, *s);
    }
    if (framework == "fsdp2") expect_fsdp2(*out, table, *s);
    if (HasFailure()) return;
  }
  EXPECT_GE(exported, 100);
}

INSTANTIATE_TEST_SUITE_P(All, FrameworkExports, testing::Values("megatron", "torchtitan", "deepspeed", "fsdp2"),
                         [](const auto& info) { return std::string(info.param); });

bool has(const std::vector<std::string>& lines, const std::string& line) {
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

Strategy resolved(const char* model, const char* cluster, const Strategy& strategy) {
  return std::get<Strategy>(resolve(load_model(model), load_cluster(cluster), strategy));
}

// Megatron's default is a ring; what was simulated is said either way.
TEST(FrameworkExport, MegatronExchangesAsSimulated) {
  const Model model = load_model("llama-3-8b");
  Strategy s{.cp = 2, .batch = {.global = 8}, .framework = "megatron"};
  EXPECT_TRUE(has(framework_export(model, resolved("llama-3-8b", "dgx-h100", s))->lines, "--cp-comm-type p2p"));
  s.context = ContextKind::AllGather;
  EXPECT_TRUE(has(framework_export(model, resolved("llama-3-8b", "dgx-h100", s))->lines, "--cp-comm-type all_gather"));
}

TEST(FrameworkExport, MegatronSwitchesOffWhatIsOff) {
  const Strategy s = resolved("gpt2-355m", "dgx-a100", {.dropout = 0, .optimizer = {.clip_norm = 0}, .framework = "megatron"});
  const auto out = framework_export(load_model("gpt2-355m"), s);
  for (const char* line : {"--clip-grad 0.0", "--hidden-dropout 0.0", "--attention-dropout 0.0"})
    EXPECT_TRUE(has(out->lines, line)) << line;
}

// Left to itself torchtitan takes two stages per rank and a layer off the first and the last stage.
TEST(FrameworkExport, TorchTitanNamesTheModulesOfEveryStage) {
  const Strategy s =
      resolved("llama-3-8b", "dgx-h100",
               {.pp = 4, .virtual_stages = 4, .batch = {.global = 32}, .zero = {.stage = 2}, .framework = "torchtitan"});
  const auto out = framework_export(load_model("llama-3-8b"), s);
  EXPECT_TRUE(has(out->lines, "  [\"tok_embeddings\", \"layers.0\", \"layers.1\"],"));
  EXPECT_TRUE(has(out->lines, "  [\"layers.30\", \"layers.31\", \"norm\", \"output\"],"));
  EXPECT_TRUE(has(out->lines, "flavor = \"8B\""));
}

// v0.2.2: models/llama3/infra/parallelize.py, apply_tp and apply_ddp.
TEST(FrameworkExport, TorchTitanIsNotAskedForWhatItCannotDo) {
  const Strategy base = with_preset(load_model("llama-3-8b"), {.framework = "torchtitan"});
  const auto why = [&](const Point& point) { return std::string(refused_by(Runner::TorchTitan, point, base)); };
  EXPECT_EQ(why({.tp = 2, .dp = 2, .overlap_parameters = true, .zero = 3}),
            "torchtitan's tensor parallelism is always sequence parallel");
  EXPECT_EQ(why({.tp = 2, .dp = 2, .sequence_parallel = true}), "torchtitan's DDP goes with no other parallelism");
  EXPECT_EQ(why({.dp = 2, .overlap_parameters = true, .zero = 3, .recompute = RecomputeKind::Selective}),
            "torchtitan's selective recomputation keeps the attention");
}

TEST(FrameworkExport, Fp8IsNotAskedOfThoseThatDoNotHaveIt) {
  const Strategy base = {.precision = DType::F8};
  EXPECT_STREQ(refused_by(Runner::DeepSpeed, {.dp = 8}, base), "deepspeed has no fp8");
  EXPECT_STREQ(refused_by(Runner::Nanotron, {.dp = 8}, base), "nanotron's fp8 is not modelled");
  const Strategy fourth = {.precision = DType::F4};
  EXPECT_STREQ(refused_by(Runner::DeepSpeed, {.dp = 8}, fourth), "deepspeed has no nvfp4");
  EXPECT_STREQ(refused_by(Runner::Nanotron, {.dp = 8}, fourth), "nanotron has no nvfp4");
  EXPECT_STREQ(refused_by(Runner::TorchTitan, {.dp = 8}, fourth), "torchtitan trains in fp8, bf16 or fp32");
}

// huggingface/nanotron 19f88fb, file by file in search_framework.cpp.
TEST(FrameworkExport, NanotronIsNotAskedForWhatItCannotDo) {
  const Strategy base = with_preset(load_model("llama-3-8b"), {.batch = {.global = 32}, .framework = "nanotron"});
  EXPECT_EQ(base.context, ContextKind::Ring);
  const auto why = [&](const Point& point) {
    const char* refused = refused_by(Runner::Nanotron, point, base);
    return std::string(refused ? refused : "");
  };
  EXPECT_EQ(why({.dp = 8, .overlap_gradients = false, .zero = 1}), "");
  EXPECT_EQ(why({.dp = 8}), "");
  EXPECT_EQ(why({.dp = 8, .overlap_gradients = false, .zero = 1, .zero_group = 4}), "nanotron shards over all replicas");
  EXPECT_EQ(why({.pp = 2}), "nanotron waits for its transfers");
  EXPECT_EQ(why({.pp = 2, .overlap_p2p = false}), "");
  EXPECT_EQ(why({.pp = 8, .dp = 2, .micro_batch = 4, .overlap_p2p = false}),
            "nanotron's 1F1B takes at least pp - 1 micro-batches");
  EXPECT_EQ(why({.dp = 8, .zero = 1}), "nanotron reduces fp32 gradients of ZeRO 1 after the backward, all others beside it");
}

// What runs on Megatron core is held to its limits; our own executor to none.
TEST(FrameworkExport, FrameworksOnMegatronCoreHaveItsLimits) {
  for (const char* name : {"nemo", "megatron-bridge", "megatron-deterministic"})
    EXPECT_EQ(find_runner(name), Runner::Megatron) << name;
  EXPECT_EQ(find_runner("nanotron"), Runner::Nanotron);
  EXPECT_EQ(find_runner("foreshard"), std::nullopt);
  EXPECT_EQ(find_runner("internevo"), std::nullopt);
  EXPECT_FALSE(framework_export(load_model("gpt2-355m"), resolved("gpt2-355m", "dgx-a100", {.framework = "nemo"})));
}

}  // namespace
}  // namespace foreshard::framework_export_test
