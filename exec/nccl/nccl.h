// The NCCL functions that the executor uses, looked up at run time, so that neither NCCL's header nor the library is needed to build.
// Supports version 2.26 and later 2.x, which have the same constants and struct layouts. tests/cuda/nccl_layout.cpp compares these
// declarations with NCCL's header if it is installed.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace foreshard::nccl {

struct Comm;  // ncclComm_t; opaque
enum class Result : int {
  Success,
  UnhandledCudaError,
  SystemError,
  InternalError,
  InvalidArgument,
  InvalidUsage,
  RemoteError,
  InProgress
};
enum class DataType : int { Int8, Uint8, Int32, Uint32, Int64, Uint64, Float16, Float32, Float64, Bfloat16 };
enum class RedOp : int { Sum, Prod, Max, Min, Avg };

struct UniqueId {
  char internal[128] = {};
};

// ncclConfig_t as of version 2.18. A newer library reads `size` bytes of it and uses its defaults for the rest.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef, version = 21800;
  int blocking = 0;
  int cga_cluster_size = INT_MIN, min_ctas = INT_MIN, max_ctas = INT_MIN;
  const char* net_name = nullptr;
  int split_share = INT_MIN;
  int traffic_class = INT_MIN;  // a member of later versions; padding in 2.18
};

inline constexpr int kOldest = 22602;  // 2.26.2, the oldest supported version: it introduced NCCL_LAUNCH_ORDER_IMPLICIT
inline constexpr int kNoColor = -1;    // NCCL_SPLIT_NOCOLOR: the rank gets no communicator from a split

// A version number of ncclGetVersion as text: 22809 -> "2.28.9".
std::string version_text(int version);

// An open NCCL library and its functions; the destructor closes it.
class Library {
 public:
  // Opens the file. Throws DeviceError if it cannot be opened, lacks a function or is older than kOldest.
  // It also sets the environment variable NCCL_LAUNCH_ORDER_IMPLICIT=1 before the library reads it, unless the user has set it or ranks
  // share GPUs. With it, kernels of several communicators start in the order of the host's calls. Otherwise GPUs may start them in
  // different orders, and they can wait for each other forever (NCCL user guide, "Using multiple NCCL communicators concurrently").
  explicit Library(const std::string& path);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const std::string& path() const { return path_; }
  int version() const { return version_; }

  using Stream = void*;  // cudaStream_t
  Result (*get_unique_id)(UniqueId*) = nullptr;
  Result (*comm_init_rank_config)(Comm**, int ranks, UniqueId, int rank, Config*) = nullptr;
  Result (*comm_split)(Comm*, int color, int key, Comm**, Config*) = nullptr;
  Result (*comm_finalize)(Comm*) = nullptr;
  Result (*comm_destroy)(Comm*) = nullptr;
  Result (*comm_abort)(Comm*) = nullptr;
  Result (*comm_async_error)(Comm*, Result*) = nullptr;
  const char* (*error_string)(Result) = nullptr;
  const char* (*last_error)(Comm*) = nullptr;
  Result (*reduce)(const void*, void*, std::size_t, DataType, RedOp, int root, Comm*, Stream) = nullptr;
  Result (*broadcast)(const void*, void*, std::size_t, DataType, int root, Comm*, Stream) = nullptr;
  Result (*all_reduce)(const void*, void*, std::size_t, DataType, RedOp, Comm*, Stream) = nullptr;
  Result (*reduce_scatter)(const void*, void*, std::size_t, DataType, RedOp, Comm*, Stream) = nullptr;
  Result (*all_gather)(const void*, void*, std::size_t, DataType, Comm*, Stream) = nullptr;
  Result (*send)(const void*, std::size_t, DataType, int peer, Comm*, Stream) = nullptr;
  Result (*receive)(void*, std::size_t, DataType, int peer, Comm*, Stream) = nullptr;
  Result (*group_start)() = nullptr;
  Result (*group_end)() = nullptr;
  Result (*comm_register)(Comm*, void*, std::size_t, void** handle) = nullptr;
  Result (*comm_deregister)(Comm*, void* handle) = nullptr;
  Result (*memory_allocate)(void**, std::size_t) = nullptr;
  Result (*memory_free)(void*) = nullptr;

 private:
  void find_calls();
  std::string path_;
  void* handle_ = nullptr;
  int version_ = 0;
};

// Files that may be the NCCL library, in order of preference: $FORESHARD_NCCL; then those in NCCL_ROOT and NCCL_HOME; LD_LIBRARY_PATH; the
// CUDA toolkit (CUDA_HOME, CUDA_PATH, /usr/local/cuda); the folders of the distribution; Python wheels (nvidia/nccl/lib below VIRTUAL_ENV,
// CONDA_PREFIX, HOME, PYTHONPATH and the system's Python). Relative folders are left out. `variable`: value of an environment variable, null if it is not set. `root`:
// prefix of all folders, for tests.
std::vector<std::string> candidates(const std::function<const char*(const char*)>& variable, const std::string& root = "");
// Opens the first candidate that can be used. Throws DeviceError that lists all that were tried.
std::unique_ptr<Library> open_library(const std::function<const char*(const char*)>& variable);

}  // namespace foreshard::nccl
