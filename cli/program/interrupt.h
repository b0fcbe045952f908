// Ctrl-C, and SIGTERM as batch systems send it: the first one asks the running verb to stop, a second one, half a second later or
// more, ends the process.
#pragma once

#include <atomic>

namespace foreshard {

// Installs the handler and gives the flag that it sets. `answer`: a line that the first signal writes to standard error, for verbs that cannot stop
// at once; it must live as long as the program.
const std::atomic<bool>& watch_interrupt(const char* answer = nullptr);
bool interrupted();

}  // namespace foreshard
