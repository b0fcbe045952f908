// Checkpoints: the whole tensors of a training run, whatever the strategy that trained them, and how far it has come. Saved
// under one split and resumed under another, a run goes on with the same numbers.
//
//   name in the file                        what
//   layers.0.qkv.weight                     the value, in the format that the forward reads
//   master.layers.0.qkv.weight              the copy that the update works on (mixed precision)
//   momentum.... variance....               states of the optimizer
//   rank 3: left out.0.1                    what codes of gradients left out on a rank (exec/data/rank_states.h): of use only to a plan that
//                                           lays out its gradients in the same way; another one begins with nothing left out
#pragma once

#include <string>

#include "exec/data/tensors.h"
#include "exec/data/training_point.h"
#include "exec/mesh/process_mesh.h"

namespace foreshard {

// Every process makes the same calls, and they end together. Of several only process 0 needs to see the file. Those that see the one it makes, on a
// file system that they share, write what they hold themselves, the others send it. Where all see the one it reads, each reads the tensors of
// which its ranks hold something; else process 0 reads all and sends it. What goes wrong at one is thrown there; the caller has to tell the
// others (ProcessMesh::tell_failure).

// Between two steps. `memories` are those of the ranks, by number; null: of another process. Throws Error when some part of a
// tensor lies on no rank; see SafetensorsWriter. Tells how many processes wrote their elements themselves.
int save_checkpoint(const std::string& path, const Plan& plan, const Ranks& ranks,
                    const std::vector<const RankMemory*>& memories, const TrainingPoint& point, ProcessMesh* mesh = nullptr);

// How far the run of a checkpoint has come. Throws Error.
TrainingPoint training_point(const std::string& path, ProcessMesh* mesh = nullptr);

// Before the first step. A master copy missing in the file is taken from the value; a value is made from the master copy.
// Rows of a vocabulary that only pad it need not agree. Throws Error: names what is missing or of another shape. Tells how many processes read.
int load_checkpoint(const std::string& path, const Plan& plan, const Ranks& ranks,
                    const std::vector<const RankMemory*>& memories, ProcessMesh* mesh = nullptr);

}  // namespace foreshard
