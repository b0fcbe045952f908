// Handles Ctrl-C, SIGTERM as batch systems send it, and SIGHUP, which a terminal sends when it is closed. The first signal asks the running verb
// to stop. A second one, at least half a second later, ends the process. A SIGHUP that is ignored at the start (nohup) stays ignored; after one
// that is not, writing to a pipe that nobody reads any more does not end the process.
#pragma once

#include <atomic>

namespace foreshard {

// Installs the handler and returns the flag that it sets. `answer`: a line that the handler writes to standard error at the first
// signal, for verbs that cannot stop at once; the text must live as long as the program.
const std::atomic<bool>& watch_interrupt(const char* answer = nullptr);
const std::atomic<bool>& interrupt_flag();  // the flag alone
bool interrupted();                         // whether the first signal has come

}  // namespace foreshard
