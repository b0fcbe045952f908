// What a rank has to tell after its last step, and how process 0 hears it from the ranks of other processes.
#pragma once

#include <string>
#include <vector>

#include "core/result/memory_timeline.h"
#include "exec/interpreter/interpreter.h"
#include "exec/mesh/process_mesh.h"

namespace foreshard {

struct RankReport {
  std::vector<StepSpan> spans = {};  // [step], on the clock of process 0
  LiveBytes peak = {};               // of device memory
};

// `own`: of the ranks of this process, in order. At process 0 all ranks, elsewhere nothing. Throws DeviceError when a process is
// gone, or tells something else than its ranks.
std::vector<RankReport> gather_reports(ProcessMesh& mesh, const std::vector<RankReport>& own);

// What travels for the ranks of a process; `offset` is added to its times.
std::string packed_reports(const std::vector<RankReport>& reports, std::int64_t offset);
// Throws DeviceError for a text that is not that of `ranks` reports.
std::vector<RankReport> reports_of(const std::string& text, int ranks);

}  // namespace foreshard
