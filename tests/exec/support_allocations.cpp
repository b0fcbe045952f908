#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/exec/allocations.h"

static std::atomic<std::int64_t> count = 0;
static thread_local std::int64_t count_of_thread = 0;

void* operator new(std::size_t size) {
  ++count, ++count_of_thread;
  if (void* memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++count, ++count_of_thread;
  return std::malloc(size > 0 ? size : 1);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace foreshard {

std::int64_t allocations() { return count; }
std::int64_t allocations_of_thread() { return count_of_thread; }

}  // namespace foreshard
