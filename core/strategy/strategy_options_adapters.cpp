// The part of the table in strategy_options.cpp that is about fine-tuning.
#include "core/strategy/strategy_option_kinds.h"

namespace foreshard::option_kinds {

std::vector<StrategyOption> adapter_options() {
  const std::string group = "numbers";
  return {
      integer(
          [](auto& s) -> auto& { return s.optimizer.lora.rank; }, 0, 65'536,
          {.path = "lora_rank",
           .flag = "--lora-rank",
           .help =
               "rank of low-rank adapters (LoRA), which are trained instead of the parameters of the model; 0: all parameters "
               "are trained",
           .constraint = "dense transformers; not with --stages, --asynchronous or a policy that moves layers",
           .group = group}),
      number([](auto& s) -> auto& { return s.optimizer.lora.alpha; }, 0, 1e6, false,
             {.path = "lora_alpha",
              .flag = "--lora-alpha",
              .help = "alpha of the adapters, whose results are multiplied by alpha / rank; 0: the rank",
              .constraint = "with --lora-rank",
              .group = group}),
      choice([](auto& s) -> auto& { return s.optimizer.lora.targets; }, {AdapterTargets::Attention, AdapterTargets::All},
             {.path = "lora_targets",
              .flag = "--lora-targets",
              .help = "linear layers that have adapters: attention (the product of queries, keys and values, and the output "
                      "projection) "
                      "or all (those of the feed-forward layer, too)",
              .constraint = "with --lora-rank",
              .group = group}),
  };
}

}  // namespace foreshard::option_kinds
