// Runs CUDA kernels on the processor: one block at a time, every thread of it a fiber. A kernel file compiled with
// FORESHARD_EMULATED finds its words here. What a GPU would do wrong only sometimes is a fault here in every run: shared memory read
// or written by two threads with no barrier between them, read before anybody wrote it, an array reached outside its elements or
// written though it is only read, threads that wait at different barriers.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "exec/cuda/kernel_args.h"

namespace foreshard::emulator {

struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Settings {
  std::uint64_t order = 0;                       // 0: threads run in their order, 1: reversed, else shuffled by this seed
  std::string no_barrier = {};                   // this barrier ("file:line") is left out
  bool checks_sharing = true;                    // false: only what comes out tells of a missing barrier
  std::vector<std::string>* barriers = nullptr;  // every barrier that is reached is added here
  std::int64_t* packs = nullptr;                 // counts accesses of 16 bytes
};

struct Grid {
  unsigned x = 1, y = 1;
};

// Runs body(args) once per thread. Throws Fault. One launch at a time in a process: shared memory is static.
void run(const Grid& grid, int threads, void (*body)(const void*), const void* args, const Settings& settings);

// ---- what the kernels call --------------------------------------------------------------------------------------------------
struct Self {
  int thread = 0, threads = 1;
  unsigned block_x = 0, block_y = 0, blocks_x = 1, blocks_y = 1;
};
const Self& self();
void barrier(const char* file, int line);
void warp_barrier();
std::uint32_t exchange_xor(std::uint32_t value, int mask);
std::uint32_t exchange_from(std::uint32_t value, int lane);
// m16n8k16 of bf16 pairs: d += a b, as the fragments of a warp.
void multiply_fragments(float* d, const std::uint32_t* a, const std::uint32_t* b);
void check_array(const gpu::View& array, std::int64_t first, std::int64_t count, bool write);
void check_pack(const gpu::View& array, std::int64_t first, std::int64_t count, bool write);  // all 16 bytes in one access

// Who touched an element of shared memory last.
struct Touch {
  std::uint64_t stamp = 0;  // block and barrier count; 0: never
  std::uint64_t warp_stamp = 0;
  int thread = -1;  // -2: several, -3: several that add
};
struct Shadow {
  Touch write, read;
};
void note_read(Shadow& shadow, const char* name);
void note_write(Shadow& shadow, const char* name);
void note_count(Shadow& shadow, const char* name);  // an atomic addition: others may add at the same time, not read or write

// Shared memory of a block.
template <class T, int n>
class Shared {
 public:
  explicit Shared(const char* name) : name_(name) {}
  class Element {
   public:
    Element(Shared& of, int at) : of_(of), at_(at) {}
    operator T() const {
      note_read(of_.shadows_[at_], of_.name_);
      return of_.values_[at_];
    }
    Element& operator=(T value) {
      note_write(of_.shadows_[at_], of_.name_);
      of_.values_[at_] = value;
      return *this;
    }
    Element& operator=(const Element& other) { return *this = static_cast<T>(other); }

   private:
    Shared& of_;
    int at_;
  };
  Element operator[](std::int64_t i) {
    if (i < 0 || i >= n) throw Fault(std::string("shared ") + name_ + " has no element " + std::to_string(i));
    return {*this, static_cast<int>(i)};
  }
  void count_one(std::int64_t i) {
    if (i < 0 || i >= n) throw Fault(std::string("shared ") + name_ + " has no element " + std::to_string(i));
    note_count(shadows_[i], name_);
    ++values_[i];
  }

 private:
  const char* name_;
  T values_[n] = {};
  Shadow shadows_[n] = {};
};

}  // namespace foreshard::emulator
