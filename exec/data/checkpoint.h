// Checkpoints: the whole (unsharded) tensors of a training run, and its progress (TrainingPoint). They do not depend on the strategy: a run
// that is saved under one sharding and resumed under another continues with the same numbers.
//
//   name in the file              contents
//   layers.0.qkv.weight           the value, in the number format that the forward reads
//   master.layers.0.qkv.weight    the master copy that the optimizer updates (mixed precision)
//   momentum.... variance....     states of the optimizer
//   rank 3: left out.0.1          the residual of gradient compression on one rank (exec/data/rank_states.h). Only a plan
//                                 that lays out its gradients in the same way uses it; otherwise residuals begin with zeros
//
// A file has checksums of its header and of every tensor (exec/data/safetensors.h); files of earlier versions have none.
#pragma once

#include <cstdint>
#include <string>

#include "exec/data/tensors.h"
#include "exec/data/training_point.h"
#include "exec/mesh/process_mesh.h"

namespace foreshard {

// All processes of a run make the same calls, with `mesh` (null: the run has one process), and none returns before all are done. Only
// process 0 needs access to the file. When saving, processes that share a file system with process 0 write their elements to the file
// themselves; the others send them to process 0. When loading, if all processes see the same file as process 0, each reads the tensors of
// which its ranks keep elements; else process 0 reads all tensors and sends them. A failure is thrown in the process where it happens; the
// caller has to tell the others (ProcessMesh::tell_failure).

// Whether a state with elements that are NaN or infinite replaces an earlier file.
enum class NotFinite : std::uint8_t { Refuse, Save };

struct SavedCheckpoint {
  int writers = 1;              // number of processes that wrote their elements themselves
  std::string not_finite = {};  // the first tensor with such elements; with NotFinite::Refuse nothing was saved then
};

// Saves; called between two training steps. `memories`: [rank], null for a rank of another process. Throws Error if no rank holds some element
// of a tensor, and as SafetensorsWriter does.
SavedCheckpoint save_checkpoint(const std::string& path, const Plan& plan, const Ranks& ranks,
                                const std::vector<const RankMemory*>& memories, const TrainingPoint& point,
                                ProcessMesh* mesh = nullptr, NotFinite not_finite = NotFinite::Refuse);

// The progress of the run that a checkpoint was saved from. Throws Error for a file that cannot be read, is damaged or is not a checkpoint.
TrainingPoint training_point(const std::string& path, ProcessMesh* mesh = nullptr);

// Loads; called before the first step. Value and master copy are both read from the master copy of the file, or from its value if there is
// none. The rows that pad a vocabulary may differ in number between file and plan. Returns the number of processes that read the file.
// Every tensor of the file is compared with its checksum, also those that the plan does not use. Throws Error, which names the tensor, if one
// is missing, damaged, unknown to the plan, or has another shape; and if the file is not at `point` (another run has replaced it since).
int load_checkpoint(const std::string& path, const Plan& plan, const Ranks& ranks,
                    const std::vector<const RankMemory*>& memories, const TrainingPoint& point, ProcessMesh* mesh = nullptr);

}  // namespace foreshard
