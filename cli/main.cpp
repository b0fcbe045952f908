#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "cli/program/failure.h"
#include "cli/program/program.h"

int main(int count, char** words) {
  foreshard::end_uncaught_with_a_sentence();
  const foreshard::Console console = {std::cout, std::cerr, isatty(STDERR_FILENO) == 1};
  const foreshard::ExitCode code = foreshard::run_program({words + 1, words + count}, console);
  if (code != foreshard::ExitCode::DeviceFailure && code != foreshard::ExitCode::Bug) return static_cast<int>(code);
  // What failed may have left a thread that never ends (OpenBLAS tries again and again to get memory) and holds a lock that the end of the
  // program waits for.
  std::cout.flush();
  std::fflush(nullptr);
  _exit(static_cast<int>(code));
}
