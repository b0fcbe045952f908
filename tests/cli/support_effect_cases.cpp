// A case for every option of every verb.
#include "tests/cli/option_effect.h"

namespace foreshard {

namespace {

using Cases = std::vector<EffectCase>;

const std::string kSmall = "--model gpt2-124m --seq 256 --cluster dgx-a100 ";
const std::string kOnHost = "--model gpt2-124m --set model.n_layer=2 --seq 64 --cluster @/host.json --gpus 2 --precision fp32 ";
const std::string kTooLarge = "--model gpt2-1.5b --cluster dgx-a100 --gpus 1 --micro-batch 64 --global-batch 64 ";
const std::string kEndless = "--model gpt2-124m --seq 256 --cluster dgx-a100 --global-batch 1000000000 ";

Cases joined_cases(Cases first, const Cases& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// What says which job it is; `base` has a small one on dgx-a100, with words after it.
Cases of_job(const std::string& words) {
  const std::string base = kSmall + words, host = kOnHost + words;
  return {{.option = "--model", .base = base, .changed = "--model bert-large --seq 256 --cluster dgx-a100 " + words},
          {.option = "--cluster", .base = base, .changed = "--model gpt2-124m --seq 256 --cluster dgx-h100 " + words},
          {.option = "--gpus", .base = base, .changed = "+ --gpus 4"},
          {.option = "--nodes", .base = base, .changed = "+ --nodes 2"},
          {.option = "--strategy", .base = base, .changed = "+ --strategy @/sgd.strategy.json"},
          {.option = "--strategy", .base = base, .changed = "+ --strategy @/tp2.strategy.json"},
          {.option = "--set", .base = base, .changed = "+ --set model.n_layer=6"},
          {.option = "--set", .base = base, .changed = "+ --set cluster.nvlink.bandwidth=1e9"},
          {.option = "--set", .base = base, .changed = "+ --set strategy.micro_batch=2"},
          {.option = "--profile", .base = host, .changed = "+ --profile @/host.profile.json"}};
}

Cases of_simulate() {
  const std::string base = kSmall + "--global-batch 16 --granularity stage --json ";
  return joined_cases(
      of_job("--global-batch 16 --granularity stage --json "),
      {{.option = "--force",
        .base = "! --plan @/wide.plan.json --folding none --profile none.json",
        .changed = "+ --force",
        .shows = "none.json: found"},
       {.option = "--plan", .base = base, .changed = "--json --plan @/p.plan.json"},
       {.option = "--ignore-memory", .base = "! " + kTooLarge + "--as-given --json", .changed = "+ --ignore-memory"},
       {.option = "--as-given", .base = kTooLarge + "--json", .changed = "+ --as-given"},
       {.option = "--caching-allocator", .base = base, .changed = "+ --caching-allocator"},
       {.option = "--granularity", .base = kSmall + "--global-batch 16 --json ", .changed = "+ --granularity op"},
       {.option = "--folding", .base = base, .changed = "+ --folding none"},
       {.option = "--iterations",
        .base = "--model gpt2-355m --cluster dgx-a100 --pp 4 --schedule zb-h2 --micro-batch 1 --global-batch 16",
        .changed = "+ --iterations 4"},
       {.option = "--clock", .base = base, .changed = "+ --clock light"},
       {.option = "--straggler", .base = base, .changed = "+ --straggler 1=2"},
       {.option = "--trace", .base = base, .changed = "+ --trace t.json"},
       {.option = "--svg", .base = base, .changed = "+ --svg t.svg"},
       {.option = "--save-plan", .base = base, .changed = "+ --save-plan s.plan.json"},
       {.option = "--save-strategy", .base = base, .changed = "+ --save-strategy s.strategy.json"},
       {.option = "--save-result", .base = base, .changed = "+ --save-result s.result"},
       {.option = "--json", .base = kSmall + "--global-batch 16", .changed = "+ --json"},
       {.option = "--progress", .base = base, .changed = "+ --progress json", .shows = R"(\{"progress")"}});
}

// Of search and of sweep.
Cases of_searching(const std::string& base) {
  const std::string several = base + "--fix zero=0 ";
  return {{.option = "--objective", .base = base, .changed = "+ --objective memory"},
          {.option = "--fix", .base = base, .changed = "+ --fix tp=2"},
          {.option = "--max-tp", .base = base + "--json", .changed = "+ --max-tp 1"},
          {.option = "--try", .base = base + "--fix tp=2 --json", .changed = "+ --try parts"},
          {.option = "--refine", .base = several + "--json", .changed = "+ --refine 1"},
          {.option = "--top", .base = several + "--json", .changed = "+ --top 1"},
          {.option = "--noise",
           .base = kSmall + "--gpus 2 --global-batch 8 --fix recompute=none --fix zero=0 --json",
           .changed = "+ --noise 50"},
          {.option = "--no-prune", .base = base + "--json", .changed = "+ --no-prune"},
          {.option = "--threads", .base = base + "--json --threads 1", .changed = base + "--json --threads 2"}};
}

Cases of_search() {
  const std::string job = "--gpus 2 --global-batch 4 --fix recompute=none --fix cp=1 --top 0 --refine 4 ", base = kSmall + job,
                    json = base + "--json ";
  const std::string two = base + "--cluster dgx-h100 ";
  return joined_cases(
      joined_cases(of_job("--global-batch 8 --top 0 --refine 1 --fix cp=1 --fix recompute=none --fix pp=1 --json "),
                   of_searching(kSmall + "--gpus 2 --global-batch 4 --fix cp=1 --fix virtual_stages=1 ")),
      {{.option = "--cluster", .base = base, .changed = "+ --cluster dgx-h100"},
       {.option = "--force", .base = "! " + kEndless + "--refine x", .changed = "+ --force", .shows = "--refine: found"},
       {.option = "--tokens", .base = base, .changed = "+ --tokens 1e9"},
       {.option = "--tokens", .base = json, .changed = "+ --tokens 1e9"},
       {.option = "--tokens", .base = two, .changed = "+ --tokens 1e9"},
       {.option = "--tokens", .base = base + "--csv", .changed = "+ --tokens 1e9"},
       {.option = "--rows", .base = json, .changed = "+ --rows 1"},
       {.option = "--rows", .base = two, .changed = "+ --rows 1"},
       {.option = "--rank", .base = base, .changed = "+ --rank 2"},
       {.option = "--rank", .base = json + "--save-strategy s.json", .changed = "+ --rank 2"},
       {.option = "--save-strategy", .base = json, .changed = "+ --save-strategy s.json"},
       {.option = "--save-strategy", .base = two, .changed = "+ --save-strategy s.json"},
       {.option = "--save-plan", .base = json, .changed = "+ --save-plan s.json"},
       {.option = "--residuals", .base = base, .changed = "+ --residuals 2"},
       {.option = "--residuals", .base = two, .changed = "+ --residuals 2"},
       {.option = "--residuals", .base = json, .changed = "+ --residuals 2"},
       {.option = "--json", .base = base, .changed = "+ --json"},
       {.option = "--csv", .base = base, .changed = "+ --csv"},
       {.option = "--csv", .base = json, .changed = "+ --csv"},
       {.option = "--csv", .base = two + "--json", .changed = "+ --csv"},
       {.option = "--progress", .base = json, .changed = "+ --progress json", .shows = R"(\{"progress")"}});
}

Cases of_sweep() {
  const std::string job = "--gpus 2 --global-batch 4 --fix recompute=none --fix cp=1 --vary seq=64,128 ";
  const std::string base = "--model gpt2-124m --cluster dgx-a100 " + job, json = base + "--json ";
  Cases cases =
      joined_cases(of_job("--vary global-batch=8,16 --top 0 --refine 1 --fix cp=1 --fix recompute=none --fix pp=1 --json "),
                   of_searching(base + "--fix micro_batch=1 --fix virtual_stages=1 "));
  for (EffectCase& one : cases)
    if (one.option == "--max-tp")
      one.base = base + "--fix dp=1 --fix pp=1 ";
    else if (one.option == "--noise")
      one.base =
          "--model gpt2-355m --cluster pcie-a100-8 --vary global-batch=16 --fix pp=8 --fix dp=1 --refine 4 --top 0 "
          "--json";
    else if (one.option == "--try")
      one.base =
          "--model gpt2-355m --cluster pcie-a100-8 --vary global-batch=8 --fix tp=8 --fix micro_batch=8 --fix recompute=none "
          "--top 0 --json",
      one.changed = "+ --try compress-activations";
    else if (one.option == "--top")
      one.changed = "+ --top 0";
  return joined_cases(cases,
                      {{.option = "--force",
                        .base = "! --model gpt2-124m --cluster dgx-a100 --global-batch 1048576 --vary nodes=131072,0",
                        .changed = "+ --force",
                        .shows = "--nodes: found"},
                       {.option = "--vary", .base = base, .changed = "+ --vary micro-batch=1,2"},
                       {.option = "--svg", .base = base, .changed = "+ --svg s.svg"},
                       {.option = "--json", .base = base, .changed = "+ --json"},
                       {.option = "--csv", .base = base, .changed = "+ --csv"},
                       {.option = "--csv", .base = json, .changed = "+ --csv"},
                       {.option = "--progress", .base = json, .changed = "+ --progress json", .shows = R"(\{"progress")"}});
}

Cases of_partition() {
  const std::string base = kSmall + "--global-batch 4 ";
  return joined_cases(of_job("--global-batch 4 --json "),
                      {{.option = "--max-tp", .base = base, .changed = "+ --max-tp 1"},
                       {.option = "--save-strategy", .base = base, .changed = "+ --save-strategy s.json"},
                       {.option = "--force",
                        .base = "! --model gpt2-124m --seq 256 --cluster dgx-a100-x131072 --global-batch 1048576 --max-tp x",
                        .changed = "+ --force",
                        .shows = "--max-tp: found"},
                       {.option = "--json", .base = base, .changed = "+ --json"}});
}

Cases of_ablate() {
  const std::string base = kSmall + "--tp 2 --dp 1 --micro-batch 2 --json ";
  return joined_cases(
      of_job("--global-batch 16 --step whole --json "),
      {{.option = "--force",
        .base = "! --model gpt2-124m --cluster dgx-a100-x2 --gpus 12 --pp 12 --global-batch 825000 --recompute layers:50-60",
        .changed = "+ --force",
        .shows = "names layer 60"},
       {.option = "--step", .base = base, .changed = "+ --step whole --step parts:parts=2"},
       {.option = "--progress", .base = base, .changed = "+ --progress json", .shows = R"(\{"progress")"},
       {.option = "--json", .base = kSmall + "--tp 2 --dp 1 --micro-batch 2", .changed = "+ --json"}});
}

Cases of_fit() {
  const std::string base = "--cluster workstation-rtx4090 --gpus 1 --host-memory 64GiB ", json = base + "--json ";
  return {
      {.option = "--cluster", .base = json, .changed = "--cluster dgx-a100 --gpus 1 --host-memory 64GiB --json"},
      {.option = "--gpus", .base = json, .changed = "--cluster workstation-rtx4090 --gpus 2 --host-memory 64GiB --json"},
      {.option = "--host-memory", .base = json, .changed = "--cluster workstation-rtx4090 --gpus 1 --host-memory 32GiB --json"},
      {.option = "--nvme", .base = json, .changed = "+ --nvme 100GB"},
      {.option = "--seq", .base = json, .changed = "+ --seq 4096"},
      {.option = "--family", .base = json, .changed = "+ --family gpt"},
      {.option = "--policy", .base = json, .changed = "+ --policy zero_offload"},
      {.option = "--progress", .base = json, .changed = "+ --progress json", .shows = R"(\{"progress")"},
      {.option = "--json", .base = base, .changed = "+ --json"}};
}

Cases of_lower() {
  const std::string base = kSmall + "--global-batch 16 ";
  return joined_cases(
      of_job("--global-batch 16 --save-plan s.plan.json --json "),
      {{.option = "--force",
        .base = "! --model gpt2-124m --cluster dgx-a100-x2 --gpus 12 --pp 12 --global-batch 825000 --recompute layers:50-60",
        .changed = "+ --force",
        .shows = "names layer 60"},
       {.option = "--ignore-memory", .base = "! " + kTooLarge, .changed = "+ --ignore-memory"},
       {.option = "--save-plan", .base = base, .changed = "+ --save-plan s.plan.json"},
       {.option = "--save-strategy", .base = base, .changed = "+ --save-strategy s.json"},
       {.option = "--json", .base = base, .changed = "+ --json"}});
}

Cases of_policies() {
  const std::string base = kSmall + "--global-batch 16 ";
  return {
      {.option = "--model", .base = base, .changed = "--model bert-large --seq 256 --cluster dgx-a100 --global-batch 16"},
      {.option = "--cluster", .base = base, .changed = "--model gpt2-124m --seq 256 --cluster dgx-a100-x2 --global-batch 16"},
      {.option = "--gpus", .base = base, .changed = "+ --gpus 4"},
      {.option = "--nodes", .base = base, .changed = "+ --nodes 2"},
      {.option = "--strategy", .base = base, .changed = "+ --strategy @/sgd.strategy.json"},
      {.option = "--set", .base = base, .changed = "+ --set model.n_layer=6"},
      {.option = "--set", .base = base, .changed = "+ --set strategy.micro_batch=2"},
      {.option = "--profile",
       .base = kOnHost + "--global-batch 16 --profile @/host.profile.json",
       .changed = "! " + kOnHost + "--global-batch 16 --profile none.json",
       .shows = "none.json: found"},
      {.option = "--force",
       .base = "! --model gpt2-124m --cluster dgx-a100-x2 --gpus 12 --pp 12 --global-batch 825000 --recompute layers:50-60",
       .changed = "+ --force",
       .shows = "names layer 60"},
      {.option = "--json", .base = base, .changed = "+ --json"}};
}

Cases of_export() {
  const std::string file = "@/megatron.strategy.json ", job = "--model gpt2-124m --cluster dgx-a100 ";
  const std::string base = file + job + "--to megatron ";
  return {{.option = "STRATEGY", .base = base, .changed = "@/tp2.strategy.json " + job + "--to megatron"},
          {.option = "--to", .base = base, .changed = file + job + "--to deepspeed"},
          {.option = "--model", .base = base, .changed = file + "--model gpt2-355m --cluster dgx-a100 --to megatron"},
          {.option = "--cluster", .base = base, .changed = file + "--model gpt2-124m --cluster dgx-a100-x2 --to megatron"},
          {.option = "--gpus", .base = base, .changed = "+ --gpus 4"},
          {.option = "--nodes", .base = base, .changed = "+ --nodes 2"},
          {.option = "--set", .base = base, .changed = "+ --set model.n_layer=6"},
          {.option = "--save", .base = base, .changed = "+ --save s.txt"},
          {.option = "--json", .base = base, .changed = "+ --json"}};
}

Cases of_run() {
  const std::string base = "@/p.plan.json --steps 2 --json ", emulated = base + "--time emulated ";
  const std::string seconds = R"("iteration_time_s": [1-9])";
  return {{.option = "PLAN", .base = base, .changed = "@/two.plan.json --steps 2 --json"},
          {.option = "--device", .base = base, .changed = "+ --device cuda"},
          {.option = "--graphs", .base = base, .changed = "+ --graphs"},
          {.option = "--nccl", .base = base, .changed = "+ --nccl"},
          {.option = "--ranks", .base = base, .changed = "+ --ranks 3"},
          {.option = "--steps", .base = "@/p.plan.json --json ", .changed = "+ --steps 2"},
          {.option = "--seed", .base = base, .changed = "+ --seed 1"},
          {.option = "--learning-rate", .base = base, .changed = "+ --learning-rate 0.1"},
          {.option = "--weight-decay", .base = base, .changed = "+ --weight-decay 0.5"},
          {.option = "--beta1", .base = "@/p.plan.json --steps 4 --json ", .changed = "+ --beta1 0.5"},
          {.option = "--beta2", .base = "@/p.plan.json --steps 4 --json ", .changed = "+ --beta2 0.5"},
          {.option = "--eps", .base = base, .changed = "+ --eps 1"},
          {.option = "--beta1", .base = "@/sgd.plan.json --steps 2 --json ", .changed = "+ --beta1 0.5"},
          {.option = "--beta2", .base = "@/sgd.plan.json --steps 2 --json ", .changed = "+ --beta2 0.5"},
          {.option = "--eps", .base = "@/sgd.plan.json --steps 2 --json ", .changed = "+ --eps 1"},
          {.option = "--time", .base = base, .changed = "+ --time emulated"},
          {.option = "--profile", .base = base, .changed = "+ --profile @/slow.profile.json"},
          {.option = "--profile", .base = emulated, .changed = "+ --profile @/slow.profile.json", .shows = seconds},
          {.option = "--link-latency", .base = base, .changed = "+ --link-latency 1e6"},
          {.option = "--link-latency", .base = emulated, .changed = "+ --link-latency 1e6", .shows = seconds},
          {.option = "--link-bandwidth", .base = base, .changed = "+ --link-bandwidth 1"},
          {.option = "--link-bandwidth", .base = emulated, .changed = "+ --link-bandwidth 1e-5", .shows = seconds},
          {.option = "--memory-limit", .base = base, .changed = "+ --memory-limit 1KiB"},
          {.option = "--guards", .base = base, .changed = "+ --guards"},
          {.option = "--guards", .base = "@/p.plan.json --steps 2", .changed = "+ --guards", .shows = "no byte was written"},
          {.option = "--poison", .base = base, .changed = "+ --poison"},
          {.option = "--poison", .base = "@/p.plan.json --steps 2", .changed = "+ --poison", .shows = "filled with NaN"},
          {.option = "--force", .base = "! " + base + "--resume @/c.safetensors --data @/mixed.txt", .changed = "+ --force"},
          {.option = "--patience",
           .base = "! @/hang.plan.json --force --patience 0.2",
           .changed = "@/hang.plan.json --force --patience 0.1",
           .shows = "no progress for 100 ms"},
          {.option = "--init-patience", .base = base, .changed = "+ --init-patience 5"},
          {.option = "--no-epilogues", .base = base, .changed = "+ --no-epilogues"},
          {.option = "--any-order", .base = base, .changed = "+ --any-order"},
          {.option = "--trace", .base = base, .changed = "+ --trace t.json"},
          {.option = "--save-result", .base = base, .changed = "+ --save-result r.result"},
          {.option = "--json", .base = "@/p.plan.json --steps 2", .changed = "+ --json"},
          {.option = "--progress", .base = base, .changed = "+ --progress json", .shows = R"(\{"step":0)"},
          {.option = "--launcher",
           .base = "! " + base + "--rendezvous 0.1 --launcher auto",
           .changed = base + "--rendezvous 0.1 --launcher none",
           .environment = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "1"}}},
          {.option = "--rendezvous", .base = base, .changed = "+ --rendezvous 5"},
          {.option = "--log", .base = base, .changed = "+ --log"},
          {.option = "--data", .base = base, .changed = "+ --data @/book.txt"},
          {.option = "--data-format", .base = base, .changed = "+ --data-format u16"},
          {.option = "--data-format",
           .base = base + "--data @/mixed.txt",
           .changed = "+ --data-format u16",
           .shows = "below the vocabulary"},
          {.option = "--save", .base = base, .changed = "+ --save s.safetensors"},
          {.option = "--save-every", .base = base, .changed = "+ --save-every 1"},
          {.option = "--save-every", .base = base + "--save s.safetensors", .changed = "+ --keep 2 --save-every 1"},
          {.option = "--save-not-finite", .base = base, .changed = "+ --save-not-finite"},
          {.option = "--save-not-finite",
           .base = "! @/p.plan.json --json --steps 60 --learning-rate 1e6 --weight-decay 1e6 --save s.safetensors",
           .changed = "+ --save-not-finite"},
          {.option = "--keep", .base = base, .changed = "+ --keep 2"},
          {.option = "--keep", .base = base + "--save s.safetensors --save-every 1", .changed = "+ --keep 2"},
          {.option = "--resume", .base = base + "--data @/book.txt", .changed = "+ --resume @/c.safetensors"},
          {.option = "--loss-log", .base = base, .changed = "+ --loss-log l.csv"}};
}

Cases of_calibrate() {
  const std::string base = "--quick --steps 2 --largest-product 16 ", one = base + "--precision fp32 ";
  const std::string between = "--collectives --quick --ranks 2 ";
  const std::string runs = " --runs " FORESHARD_SOURCE "/data/measured/bert_dle.csv";
  return {{.option = "--device", .base = one, .changed = "+ --device cuda"},
          {.option = "--runs", .base = one, .changed = "+" + runs},
          {.option = "--runs", .base = one, .changed = runs},
          {.option = "--name", .base = one, .changed = "+ --name a100-80"},
          {.option = "--precision", .base = one, .changed = base + "--precision fp64"},
          {.option = "--quick", .reason = "QuickEffect.FewerProbes"},
          {.option = "--quick", .base = between, .changed = "--collectives --ranks 2"},
          {.option = "--collectives", .base = one, .changed = between},
          {.option = "--link-class", .base = one, .changed = "+ --link-class node"},
          {.option = "--link-class", .base = between, .changed = "+ --link-class nvlink"},
          {.option = "--ranks", .base = one, .changed = "+ --ranks 4", .shows = R"("gpus_per_node": 4)"},
          {.option = "--ranks", .base = between, .changed = "--collectives --quick --ranks 3"},
          {.option = "--steps",
           .base = one,
           .changed = "--quick --largest-product 16 --precision fp32 --steps 3",
           .shows = "3 runs of every"},
          {.option = "--steps", .base = between, .changed = "+ --steps 3"},
          {.option = "--largest-product", .base = one, .changed = "--quick --steps 2 --precision fp32 --largest-product 64"},
          {.option = "--largest-hidden", .base = one, .changed = "+ --largest-hidden 48", .shows = " 49 sizes"},
          {.option = "--largest-hidden", .base = between, .changed = "+ --largest-hidden 48"},
          {.option = "--save-profile", .base = one, .changed = "+ --save-profile mine.json"},
          {.option = "--save-cluster", .base = one, .changed = "+ --save-cluster mine.json"},
          {.option = "--json", .base = one, .changed = "+ --json"},
          {.option = "--json", .base = between, .changed = "+ --json"},
          {.option = "--progress", .base = one, .changed = "+ --progress json", .shows = R"(\{"progress")"},
          {.option = "--progress", .base = between, .changed = "+ --progress json"},
          {.option = "--progress", .base = runs, .changed = "+ --progress json"}};
}

Cases of_validate() {
  const std::string table = FORESHARD_SOURCE "/data/measured/bert_dle.csv ";
  return {{.option = "FILE", .base = table, .changed = FORESHARD_SOURCE "/data/measured/nemo_h100.csv"},
          {.option = "--json", .base = table, .changed = "+ --json"},
          {.option = "--per-row", .base = table, .changed = "+ --per-row"},
          {.option = "--per-row", .base = table + "--json", .changed = "+ --per-row"},
          {.option = "--per-row", .base = table + "--markdown", .changed = "+ --per-row"},
          {.option = "--learn", .base = table, .changed = "+ --learn"},
          {.option = "--markdown", .base = table, .changed = "+ --markdown"},
          {.option = "--markdown", .base = table + "--json", .changed = "+ --markdown"},
          {.option = "--residuals", .base = table, .changed = "+ --residuals r.json"},
          {.option = "--svg", .base = table, .changed = "+ --svg r.svg"},
          {.option = "--html", .base = table, .changed = "+ --html r.html"}};
}

// On the program with the twin of a GPU.
Cases of_selftest() {
  const std::string base = "--quick --only dropout ";
  return {{.option = "--device", .base = base, .changed = "+ --device host"},
          {.option = "--quick", .reason = "QuickEffect.FewerProbes"},
          {.option = "--only", .base = base, .changed = "--quick --only softmax"},
          {.option = "--nccl", .base = "! --only NCCL", .changed = "+ --nccl"},
          {.option = "--all", .base = base, .changed = "+ --all"},
          {.option = "--json", .base = base, .changed = "+ --json"},
          {.option = "--progress", .base = base, .changed = "+ --progress json", .shows = R"(\{"progress")"}};
}

Cases of_schedule() {
  const std::string base = "interleaved-1f1b --pp 2 --micro-batches 4 ";
  return {{.option = "NAME", .base = base, .changed = "1f1b --pp 2 --micro-batches 4"},
          {.option = "--pp", .base = base, .changed = "interleaved-1f1b --pp 4 --micro-batches 4"},
          {.option = "--micro-batches", .base = base, .changed = "interleaved-1f1b --pp 2 --micro-batches 8"},
          {.option = "--virtual-stages", .base = base, .changed = "+ --virtual-stages 3"},
          {.option = "--virtual-stages", .base = "1f1b --pp 2 --micro-batches 4", .changed = "+ --virtual-stages 2"},
          {.option = "--times", .base = base, .changed = "+ --times 1,2,3"},
          {.option = "--latency", .base = base, .changed = "+ --latency 1"},
          {.option = "--stage-times", .base = "1f1b --pp 2 --micro-batches 4", .changed = "+ --stage-times 1,1,1;2,2,1"},
          {.option = "--search", .base = "1f1b --pp 2 --micro-batches 4", .changed = "+ --search"},
          {.option = "--most-in-flight", .base = "1f1b --pp 2 --micro-batches 4 --search", .changed = "+ --most-in-flight 1"},
          {.option = "--save-schedule", .base = base, .changed = "+ --save-schedule s.csv"},
          {.option = "--json", .base = base, .changed = "+ --json"}};
}

Cases of_named(const std::string& option, const std::string& one, const std::string& other) {
  return {{.option = option, .base = one, .changed = other}, {.option = "--json", .base = one, .changed = "+ --json"}};
}

Cases of_show_model() {
  Cases cases = of_named("NAME", "gpt2-124m", "bert-large");
  cases.push_back({.option = "--set", .base = "gpt2-124m", .changed = "+ --set model.n_layer=24"});
  return cases;
}

}  // namespace

const std::map<std::string, std::vector<EffectCase>>& effect_cases() {
  static const std::map<std::string, std::vector<EffectCase>> cases = {
      {"simulate", of_simulate()},
      {"search", of_search()},
      {"sweep", of_sweep()},
      {"ablate", of_ablate()},
      {"partition", of_partition()},
      {"fit", of_fit()},
      {"lower", of_lower()},
      {"export", of_export()},
      {"run", of_run()},
      {"compare",
       {{.option = "A", .base = "@/a.result @/b.result", .changed = "@/c.result @/b.result"},
        {.option = "B", .base = "@/a.result @/b.result", .changed = "@/a.result @/c.result"},
        {.option = "--spans", .base = "@/a.result @/b.result", .changed = "+ --spans 1"},
        {.option = "--trace", .base = "@/a.result @/b.result", .changed = "+ --trace t.json"},
        {.option = "--json", .base = "@/a.result @/b.result", .changed = "+ --json"}}},
      {"calibrate", of_calibrate()},
      {"selftest", of_selftest()},
      {"doctor",
       {{.option = "--device", .base = "", .changed = "+ --device cuda"},
        {.option = "--json", .base = "", .changed = "+ --json"}}},
      {"check-plan",
       {{.option = "PLAN", .base = "@/p.plan.json", .changed = "@/two.plan.json"},
        {.option = "--cluster", .base = "@/large.plan.json", .changed = "+ --cluster dgx-a100"},
        {.option = "--stale-weights", .base = "! @/stale.plan.json", .changed = "+ --stale-weights"},
        {.option = "--most", .base = "! @/large.plan.json --cluster dgx-a100", .changed = "+ --most 1"},
        {.option = "--json", .base = "@/p.plan.json", .changed = "+ --json"}}},
      {"list", of_named("WHAT", "models", "topologies")},
      {"show schedule", of_schedule()},
      {"show policies", of_policies()},
      {"show model", of_show_model()},
      {"show cluster", of_named("NAME", "dgx-a100", "dgx-h100")},
      {"show plan", of_named("PLAN", "@/p.plan.json", "@/two.plan.json")},
      {"validate", of_validate()}};
  return cases;
}

}  // namespace foreshard
