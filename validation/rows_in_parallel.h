// Independent pieces of work, such as the rows of a table, on all cores.
#pragma once

#include <cstddef>
#include <functional>

namespace foreshard {

// `work(i)` for i below `count`, each once, on a few threads. An exception of any of them is thrown here.
void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace foreshard
