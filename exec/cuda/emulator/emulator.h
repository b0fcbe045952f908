// Runs CUDA kernels on the CPU, for tests: one thread block at a time, with a fiber per CUDA thread. Kernel files are compiled with
// FORESHARD_EMULATED for it (kernels/words.h). Errors that show on a GPU only sometimes are detected in every run and thrown as Fault:
//   data races on shared memory: two threads access an element, one writes it, and there is no barrier between them
//   reading shared memory that was not written
//   access outside of an array; writing to an array that is declared as read-only
//   threads of a block that wait at different barriers
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
  std::uint64_t order = 0;      // order in which threads run: 0 ascending, 1 descending, else shuffled with this seed
  std::string no_barrier = {};  // this barrier ("file:line") is skipped: to test that it is needed
  bool checks_sharing = true;   // detects data races; false: a missing barrier shows only in wrong results
  std::vector<std::string>* barriers = nullptr;  // if set, receives the name of every barrier that is reached
  std::int64_t* packs = nullptr;                 // if set, incremented for every access of 16 bytes
};

// Number of blocks.
struct Grid {
  unsigned x = 1, y = 1;
};

// Runs body(args) once per thread of every block. Throws Fault. Only one launch at a time in a process, because shared memory is a static
// variable.
void run(const Grid& grid, int threads, void (*body)(const void*), const void* args, const Settings& settings);

// ---- functions that kernels call, through kernels/words.h -------------------------------------------------------------------
struct Self {  // threadIdx, blockDim, blockIdx and gridDim of the running thread
  int thread = 0, threads = 1;
  unsigned block_x = 0, block_y = 0, blocks_x = 1, blocks_y = 1;
};
const Self& self();
void barrier(const char* file, int line);                    // __syncthreads()
void warp_barrier();                                         // __syncwarp()
std::uint32_t exchange_xor(std::uint32_t value, int mask);   // __shfl_xor_sync of all lanes
std::uint32_t exchange_from(std::uint32_t value, int lane);  // __shfl_sync of all lanes
// The tensor-core instruction mma.m16n8k16 of bf16: d += a b, with the fragments of a warp.
void multiply_fragments(float* d, const std::uint32_t* a, const std::uint32_t* b);
void check_array(const gpu::View& array, std::int64_t first, std::int64_t count, bool write);
// As check_array, for an access of 16 bytes, which must also be aligned
void check_pack(const gpu::View& array, std::int64_t first, std::int64_t count, bool write);

// The last access to an element of shared memory.
struct Touch {
  std::uint64_t stamp = 0;       // number of the block and of its barriers so far; 0: never
  std::uint64_t warp_stamp = 0;  // the same for the barriers of the warp
  int thread = -1;               // the thread; -2: several threads read, -3: several threads added atomically
};
struct Shadow {
  Touch write, read;
};
[[noreturn]] void no_element(const char* name, std::int64_t i);
void note_read(Shadow& shadow, const char* name);
void note_write(Shadow& shadow, const char* name);
// An atomic addition: races with reads and writes, but not with other additions
void note_count(Shadow& shadow, const char* name);

// An array in shared memory (__shared__ T name[n]) that checks every access.
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
    if (i < 0 || i >= n) no_element(name_, i);
    return {*this, static_cast<int>(i)};
  }
  void count_one(std::int64_t i) {  // atomicAdd(&array[i], 1)
    if (i < 0 || i >= n) no_element(name_, i);
    note_count(shadows_[i], name_);
    ++values_[i];
  }

 private:
  const char* name_;
  T values_[n] = {};
  Shadow shadows_[n] = {};
};

}  // namespace foreshard::emulator
