#include "cli/parts/refused_rows.h"

#include <algorithm>
#include <ostream>

#include "cli/program/failure.h"
#include "cli/program/shell_words.h"
#include "core/base/count_text.h"
#include "core/base/printable.h"

namespace foreshard {

// A table of its header and this row alone.
static std::string show_row(const MeasuredRow& row) {
  const std::string line = std::to_string(row.line);
  return shell_line({"sed", "-n", "1p;" + line + "p", row.file}) + " > row.csv && foreshard validate row.csv";
}

ExitCode tell_refused_rows(const std::vector<Asked>& asked, const Console& console, const std::vector<RunRow>& runs) {
  constexpr std::size_t kMost = 8;
  struct Told {
    const MeasuredRow* row = nullptr;
    std::string problem = {};
    bool bug = false;
  };
  std::vector<Told> all;
  for (const Asked& each : asked)
    if (const auto* why = std::get_if<SkipReason>(&each.question); why && !each.problem.empty())
      all.push_back({each.row, each.problem, *why == SkipReason::Bug});
  for (const RunRow& run : runs)
    if (!run.problem.empty()) all.push_back({asked[run.asked].row, run.problem, true});
  for (std::size_t i = 0; i < std::min(all.size(), kMost); ++i) {
    const Told& told = all[i];
    const std::string text = told.bug ? told.row->where() + ": " + bug_report(told.problem, show_row(*told.row))
                                      : told.problem + "; the row is left out";
    console.err << "foreshard: " << printable(text) << "\n";
  }
  if (all.size() > kMost)
    console.err << "foreshard: and " << counted(static_cast<std::int64_t>(all.size() - kMost), "further row")
                << "; foreshard validate FILE --per-row lists all that are not predicted\n";
  if (std::ranges::any_of(all, &Told::bug)) return ExitCode::Bug;
  return all.empty() ? ExitCode::Ok : ExitCode::WrongInput;
}

}  // namespace foreshard
