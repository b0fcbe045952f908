// What a rank has to tell after its last step, and how process 0 hears it from the ranks of other processes.
#pragma once

#include <vector>

#include "core/memory_timeline.h"
#include "exec/interpreter.h"
#include "exec/process_mesh.h"

namespace foreshard {

struct RankReport {
  std::vector<StepSpan> spans = {};  // [step], on the clock of process 0
  LiveBytes peak = {};               // of device memory
};

// `own`: of the ranks of this process, in order. At process 0 all ranks, elsewhere nothing. Throws DeviceError when a process is
// gone.
std::vector<RankReport> gather_reports(ProcessMesh& mesh, const std::vector<RankReport>& own);

}  // namespace foreshard
