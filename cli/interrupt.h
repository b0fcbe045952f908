// Ctrl-C: the first one asks the running verb to stop, the second one ends the process.
#pragma once

#include <atomic>

namespace foreshard {

// Installs the handler and gives the flag that it sets.
const std::atomic<bool>& watch_interrupt();
bool interrupted();

}  // namespace foreshard
