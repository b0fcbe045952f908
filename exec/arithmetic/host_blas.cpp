// OpenBLAS is opened at run time, not linked, because it chooses its kernels and starts its threads when it is loaded, from
// environment variables:
//   OPENBLAS_CORETYPE     0.3.21 goes by model numbers: newer AMD processors get AVX2 kernels (half the speed of AVX-512), newer
//                         Intel ones even SSE3 kernels (a quarter)
//   OPENBLAS_NUM_THREADS  ranks are threads already; one thread per call
#include "exec/arithmetic/host_blas.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <optional>
#include <string>

#include "core/base/error.h"

namespace foreshard::host {

namespace {

enum Order : int { kRowMajor = 101 };
enum Transpose : int { kPlain = 111, kTransposed = 112 };

// The C interface of BLAS with 32-bit integers.
template <class T>
using Gemm = void (*)(Order, Transpose, Transpose, int m, int n, int k, T alpha, const T* a, int lda, const T* b, int ldb,
                      T beta, T* c, int ldc);

// Every product that runs at the same time as others works in a buffer of its own, which OpenBLAS gets from the system when there are more such
// products than ever before, and keeps. Where the system refuses it, OpenBLAS tries again for ever (0.3.21, driver/others/memory.c). So BlasBuffers
// below gets them, after it has looked whether there is room.
using TakeBuffer = void* (*)(int);
using ReturnBuffer = void (*)(void*);
constexpr std::size_t kBufferBytes = std::size_t{32} << 22U;  // BUFFER_SIZE of common_x86_64.h

// Sets a variable for the time of the load, unless the user has set it.
class LoadSetting {
 public:
  LoadSetting(const char* name, const char* value) : name_(name), ours_(value && !std::getenv(name)) {
    if (ours_) setenv(name, value, 1);
  }
  ~LoadSetting() {
    if (ours_) unsetenv(name_);
  }
  LoadSetting(const LoadSetting&) = delete;
  LoadSetting& operator=(const LoadSetting&) = delete;

 private:
  const char* name_;
  bool ours_;
};

// The name of the kernels to use, by the instruction sets of the processor and not by its manufacturer.
const char* core_type() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (avx512) return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return nullptr;
}

struct Library {
  Gemm<float> single = nullptr;
  Gemm<double> twice = nullptr;
  TakeBuffer take_buffer = nullptr;  // null: this build does not export it
  ReturnBuffer return_buffer = nullptr;
  std::string name = "plain loops";
};

Library load_library() {
  const LoadSetting core("OPENBLAS_CORETYPE", core_type()), threads("OPENBLAS_NUM_THREADS", "1");
  Library library;
  void* handle = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!handle) return library;
  library.single = reinterpret_cast<Gemm<float>>(dlsym(handle, "cblas_sgemm"));
  library.twice = reinterpret_cast<Gemm<double>>(dlsym(handle, "cblas_dgemm"));
  if (!library.single || !library.twice) return Library{};
  library.name = "OpenBLAS";
  library.take_buffer = reinterpret_cast<TakeBuffer>(dlsym(handle, "blas_memory_alloc"));
  library.return_buffer = reinterpret_cast<ReturnBuffer>(dlsym(handle, "blas_memory_free"));
  if (auto* set_threads = reinterpret_cast<void (*)(int)>(dlsym(handle, "openblas_set_num_threads"))) set_threads(1);
  if (auto* config = reinterpret_cast<char* (*)()>(dlsym(handle, "openblas_get_config"))) {
    const std::string text = config();  // "OpenBLAS 0.3.21 DYNAMIC_ARCH ..."
    library.name = text.substr(0, text.find(' ', text.find(' ') + 1));
  }
  if (auto* core_name = reinterpret_cast<char* (*)()>(dlsym(handle, "openblas_get_corename")))
    library.name += std::string(" ") + core_name();
  return library;
}

const Library& library() {
  static const Library loaded = load_library();
  return loaded;
}

int narrow(std::int64_t size) {
  FS_ASSERT(size >= 0 && size <= std::numeric_limits<int>::max());
  return static_cast<int>(size);
}

void expect_room_for_buffer() {
  void* room = mmap(nullptr, kBufferBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED)
    throw DeviceError("getting the 128 MiB that OpenBLAS needs for each product that runs at the same time",
                      "out of memory (of the machine, or of what ulimit -v allows)");
  munmap(room, kBufferBytes);
}

// The products that run now, and the buffers that OpenBLAS has. It takes the first that is free, so that n products at a time use the same n.
class BlasBuffers {
 public:
  // One more product runs until the object is destroyed. Throws DeviceError if there is no room for its buffer.
  class Product {
   public:
    explicit Product(BlasBuffers& all) : all_(all) {
      const int running = ++all_.running_;
      if (running <= all_.count_.load(std::memory_order_acquire)) return;
      try {
        all_.grow(running);
      } catch (...) {
        --all_.running_;
        throw;
      }
    }
    ~Product() { --all_.running_; }
    Product(const Product&) = delete;
    Product& operator=(const Product&) = delete;

   private:
    BlasBuffers& all_;
  };

 private:
  // Takes free buffers until `count` different ones have been seen, and gives them back.
  void grow(int count) {
    const Library& blas = library();
    if (!blas.take_buffer || !blas.return_buffer) return;
    const std::lock_guard lock(growing_);
    count = std::min(count, kMost);
    std::array<void*, std::size_t{2} * kMost> taken;  // no allocation: a step has none
    int turns = 0;
    const auto give_back = [&] {
      for (int turn = 0; turn < turns; ++turn) blas.return_buffer(taken[static_cast<std::size_t>(turn)]);
    };
    try {
      while (known_count_ < count && turns < 2 * count) {
        expect_room_for_buffer();  // also where the next one is there already
        void* buffer = blas.take_buffer(0);
        taken[static_cast<std::size_t>(turns++)] = buffer;
        const auto known_end = known_.begin() + known_count_;
        if (std::find(known_.begin(), known_end, buffer) == known_end) known_[static_cast<std::size_t>(known_count_++)] = buffer;
      }
    } catch (...) {
      give_back();
      throw;
    }
    give_back();
    count_.store(std::max(count, count_.load()), std::memory_order_release);
  }

  std::atomic<int> running_ = 0, count_ = 0;
  std::mutex growing_ = {};
  static constexpr int kMost = 256;  // products at the same time that are looked after
  std::array<void*, kMost> known_ = {};
  int known_count_ = 0;
};

BlasBuffers& buffers() {
  static BlasBuffers all;
  return all;
}

template <class T>
void multiply_with(Gemm<T> gemm, const Product<T>& p) {
  if (p.m == 0 || p.n == 0) return;
  if (!gemm || p.k == 0) return multiply_plainly(p);
  const BlasBuffers::Product running(buffers());
  gemm(kRowMajor, p.transpose_a ? kTransposed : kPlain, p.transpose_b ? kTransposed : kPlain, narrow(p.m), narrow(p.n),
       narrow(p.k), p.alpha, p.a, narrow(p.lda), p.b, narrow(p.ldb), p.beta, p.c, narrow(p.ldc));
}

template <class T>
void plain_row(const Product<T>& p, std::int64_t i) {
  T* c = p.c + i * p.ldc;
  for (std::int64_t j = 0; j < p.n; ++j) c[j] = p.beta == 0 ? 0 : p.beta * c[j];
  for (std::int64_t l = 0; l < p.k; ++l) {
    const T a = p.alpha * (p.transpose_a ? p.a[l * p.lda + i] : p.a[i * p.lda + l]);
    const T* b = p.transpose_b ? p.b + l : p.b + l * p.ldb;
    const std::int64_t step = p.transpose_b ? p.ldb : 1;
    for (std::int64_t j = 0; j < p.n; ++j) c[j] += a * b[j * step];
  }
}

}  // namespace

void multiply(const Product<float>& product) { multiply_with(library().single, product); }
void multiply(const Product<double>& product) { multiply_with(library().twice, product); }

void multiply_plainly(const Product<float>& product) {
  for (std::int64_t i = 0; i < product.m; ++i) plain_row(product, i);
}
void multiply_plainly(const Product<double>& product) {
  for (std::int64_t i = 0; i < product.m; ++i) plain_row(product, i);
}

const char* blas_name() { return library().name.c_str(); }

}  // namespace foreshard::host
