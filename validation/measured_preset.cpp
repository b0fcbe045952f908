#include "validation/measured_preset.h"

#include <algorithm>

#include "strategy/cost/framework_preset.h"

namespace foreshard {

namespace {

struct PresetWord {
  const char* word;  // in the framework column
  const char* preset;
};
// `word` in `column` says that the framework ran with other kernels than its preset has: `with` is the preset with those kernels. The first
// entry that holds decides; an empty word always holds.
struct KernelWord {
  const char* preset;
  const char* column;
  const char* word;
  const char* with;
};
constexpr KernelWord kKernels[] = {
    {"aleph-alpha-scaling", "notes", "flash_attention2 + rms", "aleph-alpha-rms"},
    {"aleph-alpha-scaling", "norm", "fused kernel", "aleph-alpha-rms"},
    {"aleph-alpha-scaling", "notes", "flash_attentionv1", "aleph-alpha-flash1"},
    {"aleph-alpha-scaling", "notes", "attention kernel: torch", "aleph-alpha-torch"},
    {"torchtitan", "precision", "rowwise", "torchtitan-rowwise"},
    {"torchtitan", "notes", "torch.compile", "torchtitan"},
    {"torchtitan", "", "", "torchtitan-eager"},
    {"fsdp-llm-foundry", "precision", "autocast", "fsdp-llm-foundry-autocast"},
    {"nemo", "notes", "nvte_fused_attn=0", "nemo-24.03"},  // FlashAttention-2 in place of cuDNN
    {"nemo", "table_or_url", "performance_long_sequence.md@8cfedd7",
     "nemo-24.03"},                                                    // the page's figures are of container 24.03
    {"nemo", "framework_flags", "fp8_act=1", "nemo-lora-fp8-inputs"},  // of the configurations of MLPerf's LoRA runs
    {"nemo", "framework_flags", "fp8_activation=true", "nemo-lora-fp8-inputs"},
    {"nemo", "model_name", "lora", "nemo-lora"},                // MLPerf's rules: a dropout of 0.1
    {"megatron-bridge", "precision", "mx", "megatron-bridge"},  // scales of blocks need no pass of their own
    {"megatron-bridge", "precision", "fp8", "megatron-bridge-current"},
    {"megatron", "framework_flags", "--deterministic-mode", "megatron-deterministic"},
    {"megatron", "source", "readme 2020", "megatron-2020"},  // tables of September 2020
    {"megatron", "source", "sc'21", "megatron-2020"},        // runs of April 2021 and before
    {"megatron", "source", "korthikanti", "megatron-2022"},  // runs of May 2022 and before
    {"megatron-deepspeed", "framework_flags", "cuda_launch_blocking=1", "megatron-deepspeed-blocking"},
    {"megatron-deepspeed", "precision", "bf16", "megatron-deepspeed-bf16"},
    {"megatron-deepspeed", "notes", "zero (old branch)", "megatron-deepspeed-2020"},  // Megatron v1.1.5
    {"megatron-zero-bubble", "table_or_url", "table 6", "megatron-zero-bubble"},
    {"megatron-zero-bubble", "table_or_url", "table 7", "megatron-zero-bubble"},
    {"megatron-zero-bubble", "", "", "megatron-zero-bubble-2023-09"},  // tables that the paper had before those of zb-v
};

constexpr PresetWord kPresets[] = {
    {"nemo-megatron", "nemo"},
    {"llm-foundry-fsdp", "fsdp-llm-foundry"},
    {"maxtext (JAX/XLA)", "maxtext"},
    {"fsdp (PyTorch, torch.compile)", "fms-fsdp"},
};

// A row may name a preset with other kernels itself.
std::string stack_of(const std::string& preset) {
  const auto* entry = std::ranges::find_if(kKernels, [&](const KernelWord& kernels) { return preset == kernels.with; });
  return entry == std::end(kKernels) ? preset : entry->preset;
}

}  // namespace

RowPreset preset_of(const MeasuredRow& row, std::vector<std::string>& assumed) {
  std::string framework = row.text("framework");
  for (const PresetWord& entry : kPresets)
    if (framework == entry.word) framework = entry.preset;
  for (const KernelWord& entry : kKernels)
    if (framework == entry.preset && (*entry.word == '\0' || row.mentions(entry.column, entry.word)))
      return {entry.with, entry.preset};
  const std::vector<std::string>& known = framework_names();
  if (std::find(known.begin(), known.end(), framework) != known.end()) return {framework, stack_of(framework)};
  assumed.emplace_back("framework");
  return {"megatron", kUnknownStack};
}

}  // namespace foreshard
