// Interprets the words in a row's columns: flags, precision, ZeRO, schedule, experts. It reads only the columns named here, never
// `notes`.
#pragma once

#include <optional>
#include <string>

#include "core/strategy/strategy.h"
#include "validation/measured.h"

namespace foreshard {

// Whether the row's model has experts: ep is above 1, framework_flags mentions experts, or model_name is that of such a model.
bool has_experts(const MeasuredRow& row);

// The value of --`flag` in framework_flags, up to the next blank, as text or as a number:
// "--decoder-last-pipeline-num-layers 2" -> "2", 2. None: the flag is not there. The numbers throw Error where it is no number of its range.
std::optional<std::string> flag_text(const MeasuredRow& row, const std::string& flag);
std::optional<double> flag_real(const MeasuredRow& row, const std::string& flag);
std::optional<int> flag_number(const MeasuredRow& row, const std::string& flag);  // of a flag that holds a whole number

// Throws Error if a cell with words begins with none that its column knows: activation, norm, flash_attention, sequence_parallel, recompute,
// zero_stage_or_fsdp. Otherwise a word that nobody knows would count as none.
void expect_words(const MeasuredRow& row);

std::optional<DType> precision_of(const MeasuredRow& row);  // none: an unknown word

// The ZeRO settings that zero_stage_or_fsdp states in the words of Megatron, DeepSpeed, FSDP, MaxText, NeMo or LLM.Q.
struct ZeroWords {
  int stage = 0;
  int group = 0;  // ranks over which one copy is sharded; 0: all data-parallel ranks
  bool operator==(const ZeroWords&) const = default;
};
// `ranks`: data-parallel ranks. `ranks_of_node`: those of them in one node, the group of hybrid sharding.
ZeroWords zero_of(const MeasuredRow& row, int ranks, int ranks_of_node);

// The rank of low-rank adapters that model_name states: "Llama-2-70B LoRA r16" -> 16; 0: it states none.
int adapter_rank(const MeasuredRow& row);

// The schedule in pp_schedule. An empty or unknown cell, and interleaved 1F1B, give 1F1B; none: a schedule that the engine does not
// have. "ZB-1p" and "ZB-2p" give zb-h1 and zb-h2: these searched orders have the same memory, and with nearly equal stages they are
// hardly faster. Rows that measure stage times give 1F1B too, because these times do not depend on the schedule.
std::optional<Schedule> schedule_of(const MeasuredRow& row);

}  // namespace foreshard
