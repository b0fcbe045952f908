#include "validation/measured_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "validation/measured_numbers.h"

namespace foreshard {

namespace {

// The number that follows `word` in the cell, with only blanks, '-', '_' or '=' between them: "zero-2", "over 64".
std::optional<int> number_behind(const MeasuredRow& row, const std::string& column, const std::string& word) {
  std::string cell = row.text(column);
  std::transform(cell.begin(), cell.end(), cell.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (std::size_t at = cell.find(word); at != std::string::npos; at = cell.find(word, at + 1)) {
    const std::size_t digit = cell.find_first_not_of(" -_=", at + word.size());
    if (digit != std::string::npos && std::isdigit(static_cast<unsigned char>(cell[digit])) != 0)
      return leading_int(cell.substr(digit));
  }
  return {};
}

struct StageWord {
  const char* word;
  int stage;
};
// The first entry whose word is in the cell gives the stage. A number after "zero" or "stage" takes precedence over all entries.
constexpr StageWord kStages[] = {
    {"optim_grads_params", 3},              // Megatron-FSDP's sharding strategies
    {"optim_grads", 2},                     //
    {"shard_grad_op", 2},                   // FSDP's
    {"no reshard after forward", 2},        // parameters stay gathered from the forward on
    {"not resharded", 2},                   //
    {"optimizer states and gradients", 2},  // as Meta's papers say it of Llama 3
    {"optimizer state and gradient", 2},    //
    {"no_shard", 0},                        //
    {"fsdp", 3},                            //
    {"hsdp", 3},                            //
    {"hybrid_shard", 3},                    //
    {"full shard", 3},                      //
    {"distributed optimizer", 1},           // Megatron's, and NeMo's names of it
    {"distributed_optimizer", 1},           //
    {"dist_opt", 1},                        //
    {"distributed_fused_adam", 1},          //
    {"mcore_distributed_optim", 1},         //
    {"optim", 1},                           // Megatron-FSDP's "optim"
};

}  // namespace

bool has_experts(const MeasuredRow& row) {
  if (row.number("ep").value_or(1) > 1) return true;
  for (const char* column : {"framework_flags", "model_name"})
    for (const char* word : {"num-experts", "num_experts", "experts", "moe", "8x7b", "8x22b", "mixtral", "-a3b", "_a3b",
                             "-a22b", "_a22b", "gpt-oss", "gpt oss", "deepseekv3", "deepseek-v3", "kimi"})
      if (row.mentions(column, word)) return true;
  return false;
}

std::optional<std::string> flag_text(const MeasuredRow& row, const std::string& flag) {
  const std::string& flags = row.text("framework_flags");
  const std::size_t at = flags.find("--" + flag + " ");
  if (row.unknown("framework_flags") || at == std::string::npos) return {};
  const std::size_t begin = at + flag.size() + 3;
  return flags.substr(begin, flags.find(' ', begin) - begin);
}

std::optional<double> flag_real(const MeasuredRow& row, const std::string& flag) {
  const auto text = flag_text(row, flag);
  if (!text) return {};
  const NumberColumn& range = number_column("--" + flag);
  const std::optional<double> value = number_in(*text, range);
  if (!value) throw Error(row.where(), "framework_flags", "\"--" + flag + " " + *text + "\"", range_text(range));
  return value;
}

std::optional<int> flag_number(const MeasuredRow& row, const std::string& flag) {
  FS_ASSERT(number_column("--" + flag).whole);
  const std::optional<double> value = flag_real(row, flag);
  return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

int adapter_rank(const MeasuredRow& row) {
  const std::string& name = row.text("model_name");
  const std::string word = " LoRA r";
  const std::size_t at = name.find(word);
  return at == std::string::npos ? 0 : std::min(leading_int(name.substr(at + word.size())), 1 << 14);
}

void expect_words(const MeasuredRow& row) {
  struct WordColumn {
    const char* name;
    std::vector<std::string> begins;
  };
  static const std::vector<WordColumn> columns = {
      {"activation", {"gelu", "swiglu", "geglu", "squared relu", "relu", "silu"}},
      {"norm", {"layernorm", "rmsnorm", "batchnorm"}},
      {"flash_attention", {"yes", "no"}},
      {"sequence_parallel", {"yes", "no"}},
      {"recompute", {"none", "no", "yes", "full", "selective", "recompute-", "maxtext remat_policy"}},
      {"zero_stage_or_fsdp", {"none", "no", "zero", "fsdp", "hsdp", "ddp", "distributed optimizer", "megatron fsdp"}}};
  for (const WordColumn& column : columns) {
    if (row.unknown(column.name)) continue;
    std::string cell = row.text(column.name);
    std::ranges::transform(cell, cell.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto begins = [&](const std::string& word) {
      const bool whole = word == "no" || word == "yes" || word == "none";  // "normal" is not "no"
      return cell.starts_with(word) &&
             (!whole || cell.size() == word.size() || std::isalpha(static_cast<unsigned char>(cell[word.size()])) == 0);
    };
    if (std::ranges::any_of(column.begins, begins)) continue;
    std::string words;
    for (const std::string& word : column.begins) words += (words.empty() ? "" : ", ") + word;
    throw Error(row.where(), column.name, "\"" + row.text(column.name) + "\"", "unknown, or one that begins with " + words);
  }
}

std::optional<DType> precision_of(const MeasuredRow& row) {
  for (const auto& [word, type] : {std::pair{"nvfp4", DType::F4},
                                   {"fp8", DType::F8},
                                   {"bf16", DType::BF16},
                                   {"fp16", DType::F16},
                                   {"tf32", DType::TF32},
                                   {"fp32", DType::F32}})
    if (row.mentions("precision", word)) return type;
  return {};
}

ZeroWords zero_of(const MeasuredRow& row, int ranks, int ranks_of_node) {
  constexpr const char* kColumn = "zero_stage_or_fsdp";
  const auto says = [&](const char* word) { return row.mentions(kColumn, word); };
  ZeroWords zero;
  std::optional<int> stage = number_behind(row, kColumn, "zero");
  if (!stage) stage = number_behind(row, kColumn, "stage");
  if (stage) {
    zero.stage = std::clamp(*stage, 0, 3);
  } else if (says("shard-weights") && says("shard-gradients")) {  // LLM.Q's flags
    zero.stage = 3;
  } else if (!row.text(kColumn).starts_with("none")) {
    const auto* found = std::ranges::find_if(kStages, [&](const StageWord& entry) { return says(entry.word); });
    zero.stage = found == std::end(kStages) ? 0 : found->stage;
  }
  if (const auto group = number_behind(row, kColumn, "group"))
    zero.group = *group;
  else if (const auto over = number_behind(row, kColumn, "over"))  // MaxText: fsdp over 64, replicated 4
    zero.group = *over;
  else if (says("hsdp") || says("hybrid"))
    zero.group = ranks_of_node;
  zero.group = zero.stage == 0 || zero.group <= 0 || zero.group >= ranks || ranks % zero.group != 0 ? 0 : zero.group;
  return zero;
}

std::optional<Schedule> schedule_of(const MeasuredRow& row) {
  if (row.unknown("pp_schedule") || row.text("pp_schedule").starts_with("none")) return Schedule::OneFOneB;
  if (row.mentions("measured_quantity", "stage_")) return Schedule::OneFOneB;
  const std::pair<const char*, Schedule> known[] = {
      {"zb-1p", Schedule::ZeroBubbleH1},   {"zb-h1", Schedule::ZeroBubbleH1},
      {"zb-2p", Schedule::ZeroBubble2p},   {"zb-h2", Schedule::ZeroBubbleH2},
      {"zb-v", Schedule::ZeroBubbleV},     {"dualpipev", Schedule::DualPipeV},
      {"dualpipe-v", Schedule::DualPipeV}, {"dualpipe", Schedule::DualPipe},
      {"chimera", Schedule::Chimera},      {"gpipe", Schedule::GPipe},
      {"afab", Schedule::GPipe},           {"1f1b", Schedule::OneFOneB},
      {"interleav", Schedule::OneFOneB},   {"pipedream-flush", Schedule::OneFOneB}};
  for (const auto& [word, schedule] : known)
    if (row.mentions("pp_schedule", word)) return schedule;
  return {};
}

}  // namespace foreshard
