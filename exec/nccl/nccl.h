// The calls of NCCL that the executor makes, opened at run time: no header of NCCL and no link to it. Versions 2.26 to 2.x, whose numbers and
// layouts are the same; tests/cuda/nccl_layout.cpp compares them with the header where there is one.
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

// ncclConfig_t of 2.18: a newer library reads `size` bytes of it and takes its own defaults for the rest.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef, version = 21800;
  int blocking = 0;
  int cga_cluster_size = INT_MIN, min_ctas = INT_MIN, max_ctas = INT_MIN;
  const char* net_name = nullptr;
  int split_share = INT_MIN;
  int traffic_class = INT_MIN;  // of later versions; to 2.18 the bytes that fill the struct up
};

inline constexpr int kOldest = 22602;  // 2.26.2: NCCL_LAUNCH_ORDER_IMPLICIT
inline constexpr int kNoColor = -1;    // of a rank that has no part in a split

// ncclGetVersion: 22809 is 2.28.9.
std::string version_text(int version);

// Closed when it goes.
class Library {
 public:
  // Throws DeviceError when the file cannot be opened, lacks a call or is older than 2.26. Kernels of several communicators that GPUs begin in
  // different orders can wait for each other for ever; NCCL leaves that to the caller (its guide, "Using multiple NCCL communicators concurrently")
  // unless NCCL_LAUNCH_ORDER_IMPLICIT is 1: then they begin in the order of the host's calls. Set here, before the library first looks at it,
  // where the user has not set it and ranks do not share GPUs.
  explicit Library(const std::string& path);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const std::string& path() const { return path_; }
  int version() const { return version_; }

  using Stream = void*;
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

// Files that may be NCCL, the likeliest first: FORESHARD_NCCL, then NCCL_ROOT / NCCL_HOME, LD_LIBRARY_PATH, the CUDA toolkit (CUDA_HOME, CUDA_PATH,
// usr/local/cuda), the distribution, and Python wheels (nvidia/nccl/lib below VIRTUAL_ENV, CONDA_PREFIX, HOME, PYTHONPATH and the system's Python). `root`: before every
// folder, for tests; "" the machine itself.
std::vector<std::string> candidates(const std::function<const char*(const char*)>& variable, const std::string& root = "");
// The first that can be used; throws DeviceError naming all that were tried.
std::unique_ptr<Library> open_library(const std::function<const char*(const char*)>& variable);

}  // namespace foreshard::nccl
