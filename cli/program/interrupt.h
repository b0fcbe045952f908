// Handles Ctrl-C, and SIGTERM as batch systems send it. The first signal asks the running verb to stop. A second one, at least half a
// second later, ends the process.
#pragma once

#include <atomic>

namespace foreshard {

// Installs the handler and returns the flag that it sets. `answer`: a line that the handler writes to standard error at the first
// signal, for verbs that cannot stop at once; the text must live as long as the program.
const std::atomic<bool>& watch_interrupt(const char* answer = nullptr);
bool interrupted();  // whether the first signal has come

}  // namespace foreshard
