// How often memory was allocated with operator new: by the program, and by the calling thread.
#pragma once

#include <cstdint>

namespace foreshard {

std::int64_t allocations();
std::int64_t allocations_of_thread();

}  // namespace foreshard
