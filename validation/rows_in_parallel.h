// Runs independent pieces of work, such as the rows of a table, on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace foreshard {

// Calls work(0) .. work(count - 1), each once, on at most eight threads, the calling one among them. The first exception that a call throws is rethrown here.
void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace foreshard
