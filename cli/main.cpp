#include <unistd.h>

#include <iostream>

#include "cli/program/program.h"

int main(int count, char** words) {
  const foreshard::Console console = {std::cout, std::cerr, isatty(STDERR_FILENO) == 1};
  return static_cast<int>(foreshard::run_program({words + 1, words + count}, console));
}
