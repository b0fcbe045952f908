// The measurements of a rank in its last step, and how process 0 gathers those of all ranks from the other processes.
#pragma once

#include <string>
#include <vector>

#include "core/result/memory_timeline.h"
#include "exec/interpreter/interpreter.h"
#include "exec/mesh/process_mesh.h"

namespace foreshard {

struct RankReport {
  std::vector<StepSpan> spans = {};  // [step]
  LiveBytes peak = {};               // of device memory
};

// Called by all processes. `own`: the reports of the ranks of this process, in order. Returns those of all ranks in process 0, with times
// on the clock of process 0, and an empty list in the others. Throws DeviceError if a process has ended or sends invalid reports.
std::vector<RankReport> gather_reports(ProcessMesh& mesh, const std::vector<RankReport>& own);

// The message with the reports of a process; `offset` (nanoseconds) is added to all times.
std::string packed_reports(const std::vector<RankReport>& reports, std::int64_t offset);
// Decodes it. Throws DeviceError for a text that does not hold the reports of `ranks` ranks.
std::vector<RankReport> reports_of(const std::string& text, int ranks);

}  // namespace foreshard
