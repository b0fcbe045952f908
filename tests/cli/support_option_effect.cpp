#include <unistd.h>

#include <regex>

#include "core/json/json.h"
#include "core/json/json_edit.h"
#include "tests/cli/option_effect.h"
#include "tests/cli/session.h"

namespace foreshard {

namespace fs = std::filesystem;

namespace {

const std::string kTiny =
    "lower --model gpt2-124m --cluster dgx-a100 --set model.n_layer=2 --set model.n_embd=32 --set model.n_head=4 "
    "--set model.vocab_size=256 --set model.n_positions=16 --precision fp32 --gpus 2 --global-batch 4 ";

// The command that makes a file, or after "=" its text, or after "~" a file, a path in it and another value, or after "&" the file that is made
// with it.
const std::map<std::string, std::string>& recipes() {
  static const std::map<std::string, std::string> all = {
      {"p.plan.json", kTiny + "--save-plan @/p.plan.json"},
      {"two.plan.json", kTiny + "--pp 2 --save-plan @/two.plan.json"},
      {"sgd.plan.json", kTiny + "--optimizer sgd --save-plan @/sgd.plan.json"},
      {"large.plan.json",
       "lower --model gpt2-1.5b --cluster dgx-a100 --gpus 2 --pp 2 --micro-batch 128 --global-batch 256 --ignore-memory "
       "--save-plan @/large.plan.json"},
      {"wide.plan.json",
       "lower --model gpt2-124m --seq 64 --cluster dgx-a100-x120000 --global-batch 960000 --save-plan @/wide.plan.json"},
      {"a.result", "simulate --plan @/p.plan.json --granularity op --save-result @/a.result"},
      {"b.result", "simulate --plan @/p.plan.json --granularity op --straggler 1=2 --save-result @/b.result"},
      {"c.result", "simulate --plan @/p.plan.json --granularity op --straggler 1=3 --save-result @/c.result"},
      {"book.txt", "=" + std::string(400, 'a') + std::string(400, 'b')},
      {"other.txt", "=" + std::string(800, 'c')},
      {"mixed.txt",
       "=The quick brown fox jumps over the lazy dog and then some more words follow it until there are enough "
       "of them for several samples of sixteen tokens each, which is soon."},
      {"c.safetensors", "run @/p.plan.json --steps 1 --data @/book.txt --save @/c.safetensors"},
      {"host.json",
       "calibrate --quick --precision fp32 --steps 2 --largest-product 16 --ranks 2 --save-cluster @/host.json "
       "--save-profile @/host.profile.json"},
      {"host.profile.json", "&host.json"},
      // Stage 0 begins with the backward: each stage waits for the other one.
      {"hang.plan.json",
       "~@/two.plan.json roles[0].actions "
       R"([[1,[0,0,0,0,0,0,0],["B",0,0,0]],[0,[0,0,0,0,0,0,0],["F",0,0,0]],[0,[1,1,0,1,1,1,1],["F",0,1,0]],)"
       R"([0,[2,0,0,0,2,0,0],["F",0,2,0]],[2,[1,1,0,1,1,1,1],["B",0,1,0]],[0,[3,1,0,1,0,1,1],["F",0,3,0]],)"
       R"([2,[2,0,0,0,2,0,0],["B",0,2,0]],[3,[3,1,0,1,0,1,1],["B",0,3,0]],[4,[],["Update",0,-1,0]]])"},
      {"stale.plan.json", R"(~@/two.plan.json roles[1].actions[1][2] ["B",1,0,1])"},
      {"slow.profile.json", "~@/host.profile.json link_latency 1"},
      {"tp2.strategy.json", "={\"tp\": 2, \"micro_batch\": 2}"},
      {"megatron.strategy.json", "={\"global_batch\": 64, \"seq\": 256}"},
      {"sgd.strategy.json", "={\"optimizer\": \"sgd\"}"}};
  return all;
}

void make(const std::string& recipe, const fs::path& file) {
  if (recipe.starts_with("=")) return write_file(file.string(), recipe.substr(1));
  if (recipe.starts_with("~")) {
    std::istringstream in(recipe.substr(1));
    std::string from, path, value;
    in >> from >> path >> value;
    return write_file(file.string(), with_json_value(read_text(from), path, value, from));
  }
  const RanLine ran = run_line(recipe);
  ASSERT_EQ(ran.code, ExitCode::Ok) << recipe << "\n" << ran.err;
}

// The program with a twin of the GPU beside it.
RanLine on_twin(const std::string& line) {
  RanLine ran;
  const std::string said =
      run_in_shell("env FORESHARD_NCCL=" FORESHARD_NCCL_TWIN " " FORESHARD_TWIN_PROGRAM " " + line + " 2>err", ".");
  std::smatch code;
  static const std::regex exit(R"(\[exit (\d+)\]\n$)");
  if (std::regex_search(said, code, exit)) ran.code = static_cast<ExitCode>(std::stoi(code[1]));
  ran.out = std::regex_replace(said, exit, "");
  ran.err = read_text("err");
  fs::remove("err");
  return ran;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

}  // namespace

const std::map<std::string, std::vector<std::string>>& other_values() {
  static const std::map<std::string, std::vector<std::string>> values = {
      {"dp", {"1", "2", "8"}},
      {"tp", {"2", "3", "4"}},
      {"pp", {"2", "4"}},
      {"cp", {"2", "4"}},
      {"context", {"ring"}},
      {"sequence_parallel", {""}},
      {"ep", {"2"}},
      {"etp", {"2"}},
      {"expert_load",
       {"equal", "gini:0.2", "zipf:0.5", "1.5", "worst",
        "loads:3,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"}},
      {"expert_capacity", {"1.25"}},
      {"expert_unpadded", {""}},
      {"expert_dispatcher", {"all-gather", "hierarchical", "once-per-rank", "once-per-node"}},
      {"expert_node_ranks", {"2"}},
      {"virtual_stages", {"2", "3"}},
      {"schedule",
       {"gpipe", "zb-h1", "zb-v", "looped-bfs", "chimera", "dualpipe-v", "1f1b-cells", "pipedream", "zb-2p", "best"}},
      {"schedule_order", {"0F0 0F1 0B1 0B0; 1F0 1F1 1B1 1B0"}},
      {"schedule_times", {"1,1,1,9"}},
      {"microbatch_group", {"4", "8"}},
      {"delay_wgrad", {""}},
      {"layer_split", {"7,5", "3,3,3,3", "3,1", "auto"}},
      {"stages", {"6:4x1,6:4x1", "3:2x1,1:2x1"}},
      {"placement", {"dp,role,cp,tp", "role,tp,cp,dp"}},
      {"micro_batch", {"2", "4"}},
      {"global_batch", {"16", "128"}},
      {"seq", {"128", "512"}},
      {"packed_length", {"64"}},
      {"lora_rank", {"8", "16"}},
      {"lora_alpha", {"32"}},
      {"lora_targets", {"all"}},
      {"policy", {"deepspeed_z3", "fsdp2", "bmtrain_z2", "l2l"}},
      {"zero", {"1", "2", "3"}},
      {"zero_group", {"2", "4"}},
      {"recompute", {"full", "selective", "full:3", "norm", "auto"}},
      {"framework_memory", {"2GiB"}},
      {"reserve", {"20%"}},
      {"packing", {"exact"}},
      {"precision", {"fp32", "fp16"}},
      {"param_dtype", {"fp32"}},
      {"grad_dtype", {"bf16", "fp32"}},
      {"state_dtype", {"bf16"}},
      {"attention", {"unfused", "flash"}},
      {"dropout", {"0.1"}},
      {"optimizer", {"sgd"}},
      {"momentum", {"0.9"}},
      {"clip_norm", {"1"}},
      {"loss_scale", {"128"}},
      {"delay_annealing", {"100"}},
      {"offload_optimizer", {"host", "nvme"}},
      {"offload_kept", {"0.5"}},
      {"updated_on", {"host", "device"}},
      {"offload_parameters", {"host", "nvme"}},
      {"update_per_layer", {"true"}},
      {"offload_gradients", {"host", "nvme"}},
      {"offload_activations", {"inputs", "all"}},
      {"offload_budget", {"1000000000"}},
      {"offload_to", {"nvme"}},
      {"offload_layers", {"2"}},
      {"vocab_multiple", {"1", "1000"}},
      {"bucket", {"1000000", "auto"}},
      {"overlap", {"none", "grad"}},
      {"algorithm", {"tree", "hierarchical"}},
      {"parts", {"2", "auto"}},
      {"servers", {"2"}},
      {"server_placement", {"spread", "nodes"}},
      {"transfers", {"split"}},
      {"asynchronous", {"true"}},
      {"sum_order", {"priority"}},
      {"partition", {"4000000"}},
      {"credit", {"1000000000"}},
      {"compress_gradients", {"dgc:0.01", "eight-bit", "segmented:4x8"}},
      {"compress_group", {"2"}},
      {"compress_activations", {"token-topk:0.5", "segmented:8", "token-topk:0.5,segmented:8"}},
      {"compress_dispatch", {"fp8", "eight-bit"}},
      {"framework", {"megatron"}}};
  return values;
}

void OptionEffects::SetUp() {
  before_ = fs::current_path();
  folder_ = fs::temp_directory_path() / ("foreshard-effects-" + std::to_string(::getpid()));
  fs::remove_all(folder_);  // of a test that was killed and had the same process id
  fs::create_directories(folder_ / "made");
}

void OptionEffects::TearDown() {
  fs::current_path(before_);
  fs::remove_all(folder_);
}

std::string OptionEffects::with_files(const std::string& line) {
  for (const auto& [name, recipe] : recipes()) {
    if ((line + " ").find("@/" + name + " ") == std::string::npos || fs::exists(folder_ / "made" / name)) continue;
    fs::create_directories(folder_ / "made");
    if (recipe.starts_with("&")) {
      with_files("@/" + recipe.substr(1));
      continue;
    }
    std::string others = recipe;
    for (const auto& [other, with] : recipes())
      if (other == name || with == "&" + name) others = replaced(others, "@/" + other, (folder_ / "made" / other).string());
    make(with_files(others), folder_ / "made" / name);
  }
  return replaced(line, "@/", (folder_ / "made").string() + "/");
}

Seen OptionEffects::see(const std::string& line, const std::string& clocks) {
  const std::string complete = with_files(line);
  const fs::path place = folder_ / "run";
  fs::remove_all(place);
  fs::create_directories(place);
  fs::current_path(place);
  const RanLine ran = complete.starts_with("selftest") ? on_twin(complete) : run_line(complete);
  Seen seen{.code = ran.code, .out = ran.out, .err = ran.err};
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(place))
    if (entry.is_regular_file()) files[entry.path().filename().string()] = read_text(entry.path().string());
  for (const auto& [name, text] : files) seen.files += name + ":\n" + text + "\n";
  for (std::string* text : {&seen.out, &seen.err, &seen.files}) {
    *text = replaced(*text, folder_.string(), "@");
    if (!clocks.empty() && text != &seen.err) *text = std::regex_replace(*text, std::regex(clocks), "#");
  }
  fs::current_path(before_);
  return seen;
}

const Seen& OptionEffects::see_base(const std::string& line, const std::string& clocks) {
  if (const auto known = bases_.find(clocks + line); known != bases_.end()) return known->second;
  const Seen first = see(line, clocks);
  if (clocks.empty()) return bases_[line] = first;
  const Seen second = see(line, clocks);
  EXPECT_EQ(first.out, second.out) << line << ": what a line tells is the same when it is run again";
  EXPECT_EQ(first.files, second.files) << line;
  return bases_[clocks + line] = second;
}

}  // namespace foreshard
