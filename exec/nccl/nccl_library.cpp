#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/base/error.h"
#include "exec/nccl/nccl.h"

namespace foreshard::nccl {

namespace fs = std::filesystem;

std::string version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
}

Library::Library(const std::string& path) : path_(path), handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (!handle_) {
    const char* why = dlerror();
    throw DeviceError("dlopen of " + path, why ? why : "no reason");
  }
  try {
    find_calls();
  } catch (const DeviceError&) {
    dlclose(handle_);
    throw;
  }
}

Library::~Library() { dlclose(handle_); }

void Library::find_calls() {
  const auto find = [&](const char* name) {
    void* found = dlsym(handle_, name);
    if (!found) throw DeviceError("dlsym of " + std::string(name) + " in " + path_, "not there");
    return found;
  };
  const auto bind = [&](auto& call, const char* name) { call = reinterpret_cast<std::decay_t<decltype(call)>>(find(name)); };
  Result (*get_version)(int*) = nullptr;
  bind(get_version, "ncclGetVersion");
  if (get_version(&version_) != Result::Success || version_ < kOldest)
    throw DeviceError("NCCL in " + path_, "version " + version_text(version_) + "; 2.26 or later is needed");
  bind(get_unique_id, "ncclGetUniqueId");
  bind(comm_init_rank_config, "ncclCommInitRankConfig");
  bind(comm_split, "ncclCommSplit");
  bind(comm_finalize, "ncclCommFinalize");
  bind(comm_destroy, "ncclCommDestroy");
  bind(comm_abort, "ncclCommAbort");
  bind(comm_async_error, "ncclCommGetAsyncError");
  bind(error_string, "ncclGetErrorString");
  bind(last_error, "ncclGetLastError");
  bind(reduce, "ncclReduce");
  bind(broadcast, "ncclBroadcast");
  bind(all_reduce, "ncclAllReduce");
  bind(reduce_scatter, "ncclReduceScatter");
  bind(all_gather, "ncclAllGather");
  bind(send, "ncclSend");
  bind(receive, "ncclRecv");
  bind(group_start, "ncclGroupStart");
  bind(group_end, "ncclGroupEnd");
  bind(comm_register, "ncclCommRegister");
  bind(comm_deregister, "ncclCommDeregister");
  bind(memory_allocate, "ncclMemAlloc");
  bind(memory_free, "ncclMemFree");
  const char* shares = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  if (!shares || std::string(shares) != "1") setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0);
}

namespace {

class Search {
 public:
  explicit Search(std::string root) : root_(std::move(root)) {}

  void file(const fs::path& path) {
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored)) return;
    const fs::path file = fs::weakly_canonical(path, ignored);  // a file with several names is listed once
    if (std::find(known_.begin(), known_.end(), file) != known_.end()) return;
    known_.push_back(file);
    found.push_back(path.string());
  }
  // A relative path would lead into the working directory, where anybody's file may lie.
  void folder(const fs::path& path) {
    if (path.is_absolute()) file(under(path) / "libnccl.so.2");
  }
  // Folders such as lib/python3.*/site-packages/nvidia/nccl/lib.
  void python(const fs::path& prefix) {
    if (!prefix.is_absolute()) return;
    std::error_code ignored;
    std::vector<fs::path> versions;
    for (const auto& entry : fs::directory_iterator(under(prefix) / "lib", ignored))
      if (entry.path().filename().string().starts_with("python3")) versions.push_back(entry.path());
    std::sort(versions.begin(), versions.end());
    for (const fs::path& version : versions)
      for (const char* packages : {"site-packages", "dist-packages"}) file(version / packages / "nvidia/nccl/lib/libnccl.so.2");
  }

  std::vector<std::string> found = {};

 private:
  fs::path under(const fs::path& path) const { return root_.empty() ? path : fs::path(root_) / path.relative_path(); }
  std::string root_;
  std::vector<fs::path> known_ = {};
};

std::vector<std::string> pieces(const std::string& text) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(':', at), text.size());
    if (end > at) all.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

}  // namespace

std::vector<std::string> candidates(const std::function<const char*(const char*)>& variable, const std::string& root) {
  const auto word = [&](const char* name) {
    const char* found = variable(name);
    return std::string(found ? found : "");
  };
  Search search(root);
  if (const std::string own = word("FORESHARD_NCCL"); !own.empty()) return {own};
  for (const char* name : {"NCCL_ROOT", "NCCL_HOME"})
    if (const std::string home = word(name); !home.empty())
      for (const char* below : {"lib", "lib64", ""}) search.folder(fs::path(home) / below);
  for (const std::string& path : pieces(word("LD_LIBRARY_PATH"))) search.folder(path);
  for (const std::string& home : {word("CUDA_HOME"), word("CUDA_PATH"), std::string("/usr/local/cuda")})
    if (!home.empty())
      for (const char* below : {"lib64", "lib"}) search.folder(fs::path(home) / below);
  for (const char* path :
       {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"})
    search.folder(path);
  for (const std::string& prefix : {word("VIRTUAL_ENV"), word("CONDA_PREFIX")})
    if (!prefix.empty()) search.python(prefix);
  for (const std::string& path : pieces(word("PYTHONPATH"))) search.folder(fs::path(path) / "nvidia/nccl/lib");
  if (const std::string home = word("HOME"); !home.empty()) search.python(fs::path(home) / ".local");
  search.folder("/usr/lib/python3/dist-packages/nvidia/nccl/lib");
  for (const char* prefix : {"/usr/local", "/usr"}) search.python(prefix);
  return search.found;
}

std::unique_ptr<Library> open_library(const std::function<const char*(const char*)>& variable) {
  std::string tried;
  for (const std::string& path : candidates(variable)) {
    try {
      return std::make_unique<Library>(path);
    } catch (const DeviceError& error) {
      tried += (tried.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  throw DeviceError("looking for NCCL", tried.empty() ? "no libnccl.so.2 in the toolkit, the distribution or a Python wheel"
                                                        " (FORESHARD_NCCL=FILE names one)"
                                                      : tried);
}

}  // namespace foreshard::nccl
