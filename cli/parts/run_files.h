// The files of `foreshard run`: training data, checkpoints and the loss log.
#pragma once

#include <memory>
#include <vector>

#include "cli/program/verb.h"
#include "exec/interpreter/execute.h"

namespace foreshard {

// `options` plus --data, --data-format, --save, --save-every, --save-not-finite, --keep, --resume, --loss-log.
std::vector<VerbOption> with_run_files(std::vector<VerbOption> options);

// The state in which a run begins.
struct RunStart {
  std::unique_ptr<Samples> samples = {};  // null: random samples
  std::string trained_on = {};            // "random tokens", "random samples" or the name of the file
  int step = 0;                           // steps of the training before this run
  std::string resumed = {};               // the checkpoint that the run resumes; empty: none
  bool knows_data = true;                 // false: the checkpoint does not state the data it was trained on
  bool has_checksums = true;              // false: damage to the checkpoint would not be seen
};

// Reads the options above and sets the files, the seed and the samples in `options`, which points to RunStart::samples. With
// options.processes set it checks that all processes have the same data. Throws Error; also when the checkpoint has another seed, and,
// without --force, when it was trained on other data.
RunStart use_run_files(const Arguments& arguments, const Plan& plan, ExecuteOptions& options);

}  // namespace foreshard
