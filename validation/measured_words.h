// What the words of a row's columns mean: flags, precision, ZeRO, schedule, experts. Only the columns named here are read; a remark in `notes` decides
// nothing.
#pragma once

#include <optional>
#include <string>

#include "core/strategy/strategy.h"
#include "validation/measured.h"

namespace foreshard {

// ep above 1, experts in framework_flags, or a name in model_name that only models with experts have.
bool has_experts(const MeasuredRow& row);

// What stands behind "--flag " in framework_flags, up to the next blank: "--decoder-last-pipeline-num-layers 2" -> "2", or 2.
std::optional<std::string> flag_text(const MeasuredRow& row, const std::string& flag);
std::optional<int> flag_number(const MeasuredRow& row, const std::string& flag);

std::optional<DType> precision_of(const MeasuredRow& row);  // none: a word that we do not know

// ZeRO as Megatron, DeepSpeed, FSDP, MaxText, NeMo and LLM.Q say it in zero_stage_or_fsdp.
struct ZeroWords {
  int stage = 0;
  int group = 0;  // ranks that share one copy; 0: all data-parallel ranks
  bool operator==(const ZeroWords&) const = default;
};
// `ranks`: data-parallel ranks, and those of a node, where hybrid sharding ends.
ZeroWords zero_of(const MeasuredRow& row, int ranks, int ranks_of_node);

// 1F1B where the framework's own order is meant, whatever its chunks, and where the cell is empty or unknown; none: an order that we do not
// have. The searched orders "ZB-1p" and "ZB-2p" have the memory of zb-h1 and zb-h2, and little to win over them with nearly equal stages.
// Stage times do not depend on it: nothing is split there.
std::optional<Schedule> schedule_of(const MeasuredRow& row);

}  // namespace foreshard
