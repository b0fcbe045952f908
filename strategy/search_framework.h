// What training frameworks can run, and the flags that make them run it. Names and limits: the snapshots in docs/search.md,
// "Frameworks". Frameworks without an entry have no known limits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "strategy/estimate_screen.h"

namespace foreshard {

enum class Runner : std::uint8_t { Megatron, DeepSpeed, TorchTitan, Fsdp2 };

// By the name of a preset: "megatron", "deepspeed", "torchtitan", "fsdp2".
std::optional<Runner> find_runner(const std::string& framework);

// Why it cannot run a point: words that live as long as the program. Null: it can.
const char* refused_by(Runner runner, const Point& point);

// What to give to it, line by line: options of a command, fields of a file, or calls. `strategy` is resolved and passes
// refused_by.
std::vector<std::string> runner_flags(Runner runner, const Strategy& strategy);

}  // namespace foreshard
