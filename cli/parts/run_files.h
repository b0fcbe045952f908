// The files of `foreshard run`: what is trained on, and checkpoints.
#pragma once

#include <memory>
#include <vector>

#include "cli/program/verb.h"
#include "exec/interpreter/execute.h"

namespace foreshard {

// The options of the verb, and --data, --data-format, --save, --save-every, --keep, --resume, --loss-log.
std::vector<VerbOption> with_run_files(std::vector<VerbOption> options);

// Where a run begins.
struct RunStart {
  std::unique_ptr<Samples> samples = {};  // none: random ones
  std::string trained_on = {};            // "random tokens", "random samples" or the name of the file
  int step = 0;                           // steps of the training before it
  std::string resumed = {};               // the checkpoint that it goes on from; empty: none
  bool knows_data = true;                 // the checkpoint says what it was trained on
};

// Sets the files in `options`, which knows the other processes; these have to have the same data. Throws Error, also for a checkpoint of another seed
// or other data (with --force only for the seed). `options` points to the samples.
RunStart use_run_files(const Arguments& arguments, const Plan& plan, ExecuteOptions& options);

}  // namespace foreshard
