// How the communicators of NCCL are made, watched and given up.
#include <algorithm>
#include <cstring>
#include <sstream>

#include "core/base/error.h"
#include "exec/cuda/nccl_communicator.h"

namespace foreshard::gpu {

using nccl::Result;

namespace {

using namespace std::chrono_literals;
constexpr auto kLook = 20ms;
constexpr auto kClosing = 5s;
constexpr int kSharing = 23003;  // NCCL_MULTI_RANK_GPU_ENABLE

}  // namespace

bool shares_gpus(const nccl::Library& library, const char* variable) {
  return library.version() >= kSharing && variable && std::string(variable) == "1";
}

std::function<std::unique_ptr<RankDevices>(const Stop&)> ranks_by_nccl(Runtime& runtime, nccl::Library& library,
                                                                       NcclOptions options) {
  return [&runtime, &library, options](const Stop& stop) {
    return std::make_unique<NcclDevices>(runtime, library, stop, options);
  };
}

NcclDevices::NcclDevices(Runtime& runtime, nccl::Library& library, const Stop& stop, NcclOptions options)
    : runtime_(runtime), library_(library), stop_(stop), options_(options), memory_(runtime) {}

NcclDevices::~NcclDevices() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  if (watcher_.joinable()) watcher_.join();
  close();
}

std::unique_ptr<DeviceBackend> NcclDevices::device(RankId id, std::mutex* alone) {
  auto made = std::make_unique<Rank>();
  made->gpu = (options_.first_gpu + static_cast<int>(ranks_.size())) % runtime_.devices();
  const int gpu = made->gpu;
  for (const auto& [other, rank] : ranks_)
    if (rank->gpu == gpu && !options_.shares_gpus)
      throw DeviceError("NCCL", "rank " + std::to_string(other.value) + " and rank " + std::to_string(id.value) +
                                    " would share GPU " + std::to_string(gpu) + "; NCCL wants one for each" +
                                    (library_.version() >= kSharing ? " (or NCCL_MULTI_RANK_GPU_ENABLE=1)" : ""));
  ranks_.emplace(id, std::move(made));
  return std::make_unique<CudaDevice>(runtime_, memory_, gpu, stop_, alone, options_.graphs);
}

std::unique_ptr<Communicator> NcclDevices::communicator(RankId id, DeviceBackend&) {
  return std::make_unique<NcclCommunicator>(*this, id);
}

std::string NcclDevices::words(Result result, nccl::Comm* comm) const {
  std::string text = library_.error_string(result);
  const char* more = comm ? library_.last_error(comm) : nullptr;
  return text + (more && *more ? std::string(": ") + more : "");
}

void NcclDevices::expect(Result result, const std::string& call, nccl::Comm* comm) const {
  if (result != Result::Success && result != Result::InProgress) throw DeviceError(call, words(result, comm));
}

std::vector<nccl::Comm*> NcclDevices::comms() const {
  std::vector<nccl::Comm*> all;
  for (const auto& [id, rank] : ranks_) {
    for (const auto& [group, comm] : rank->groups)
      if (comm) all.push_back(comm);
    if (rank->world) all.push_back(rank->world);  // after those that were split off it
  }
  return all;
}

void NcclDevices::connect() {
  try {
    make_world();
    for (const GroupId group : wanted_groups()) split(group);
    register_buffers();
  } catch (...) {
    abort_all();
    throw;
  }
  {
    const std::lock_guard lock(mutex_);
    connected_ = true;
  }
  watcher_ = std::thread([this] { watch(); });
}

void NcclDevices::make_world() {
  nccl::UniqueId id;
  std::string text;
  if (ranks_.begin()->first.value == 0) {
    expect(library_.get_unique_id(&id), "ncclGetUniqueId", nullptr);
    text.assign(id.internal, sizeof id.internal);
  }
  if (options_.mesh) {
    text = options_.mesh->all_gather(text)[0];
    if (text.size() != sizeof id.internal) throw DeviceError("NCCL", "process 0 told no id");
    std::memcpy(id.internal, text.data(), sizeof id.internal);
  }
  expect(library_.group_start(), "ncclGroupStart", nullptr);
  for (const auto& [rank_id, rank] : ranks_) {
    runtime_.select(rank->gpu);
    nccl::Config config;
    expect(library_.comm_init_rank_config(&rank->world, options_.ranks, id, rank_id.value, &config), "ncclCommInitRankConfig",
           nullptr);
  }
  expect(library_.group_end(), "ncclGroupEnd", nullptr);
  wait_until_ready("ncclCommInitRankConfig");
}

// Those of all ranks, everywhere: a split is a call that every rank has to make.
std::set<GroupId> NcclDevices::wanted_groups() const {
  std::set<GroupId> all;
  std::string own;
  for (const auto& [id, rank] : ranks_)
    for (const auto& [group, members] : rank->members)
      if (all.insert(group).second) own += std::to_string(group.value) + " ";
  if (!options_.mesh) return all;
  for (const std::string& told : options_.mesh->all_gather(own)) {
    std::istringstream in(told);
    for (std::int32_t group = 0; in >> group;) all.insert({group});
    if (!in.eof()) throw DeviceError("NCCL", "a process told groups that are none");
  }
  return all;
}

// The first member's number is the color: it tells the groups of one pattern apart.
void NcclDevices::split(GroupId group) {
  expect(library_.group_start(), "ncclGroupStart", nullptr);
  for (const auto& [id, rank] : ranks_) {
    runtime_.select(rank->gpu);
    const auto found = rank->members.find(group);
    const bool in = found != rank->members.end();
    const auto key = in ? std::find(found->second.begin(), found->second.end(), id) - found->second.begin() : 0;
    nccl::Config config;
    expect(library_.comm_split(rank->world, in ? found->second.front().value : nccl::kNoColor, static_cast<int>(key),
                               &rank->groups[group], &config),
           "ncclCommSplit", rank->world);
  }
  expect(library_.group_end(), "ncclGroupEnd", nullptr);
  wait_until_ready("ncclCommSplit");
  for (const auto& [id, rank] : ranks_)
    if (!rank->groups[group]) rank->groups.erase(group);
}

// From 2.19 on the library may then reach the blocks without a copy of its own. What it cannot use it says by an error that changes nothing.
void NcclDevices::register_buffers() {
  if (!library_.comm_register) return;
  for (const auto& [id, rank] : ranks_) {
    runtime_.select(rank->gpu);
    for (const auto& [group, comm] : rank->groups)
      for (const auto& [data, bytes] : rank->buffers) {
        void* handle = nullptr;
        if (library_.comm_register(comm, data, static_cast<std::size_t>(bytes), &handle) == Result::Success && handle)
          rank->registered.emplace_back(comm, handle);
      }
  }
}

void NcclDevices::wait_until_ready(const std::string& call) {
  const auto until = std::chrono::steady_clock::now() + options_.meet;
  for (const nccl::Comm* unused : comms()) {
    auto* comm = const_cast<nccl::Comm*>(unused);
    while (true) {
      Result state = Result::Success;
      expect(library_.comm_async_error(comm, &state), "ncclCommGetAsyncError", comm);
      expect(state, call, comm);
      if (state == Result::Success) break;
      if (stop_.raised()) throw DeviceError("the run", stop_.why());
      if (std::chrono::steady_clock::now() > until)
        throw DeviceError(call, "not all ranks were there after " + std::to_string(options_.meet.count()) + " ms");
      std::this_thread::sleep_for(1ms);
    }
  }
}

// Errors that NCCL meets on its own threads, and a stop by anybody: then all is aborted, and the streams come to an end.
void NcclDevices::watch() {
  std::unique_lock lock(mutex_);
  while (!closed_) {
    changed_.wait_for(lock, kLook, [&] { return closed_; });
    for (const auto& [id, rank] : ranks_) {
      std::vector<nccl::Comm*> own = {rank->world};
      for (const auto& [group, comm] : rank->groups) own.push_back(comm);
      for (nccl::Comm* comm : own) {
        Result state = Result::Success;
        if (aborted_ || library_.comm_async_error(comm, &state) != Result::Success) continue;
        if (state == Result::Success || state == Result::InProgress) continue;
        const_cast<Stop&>(stop_).raise("NCCL of rank " + std::to_string(id.value) + ": " + words(state, comm));
      }
    }
    if (!stop_.raised()) continue;
    lock.unlock();
    abort_all();
    return;
  }
}

void NcclDevices::abort_all() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(aborted_, true)) return;
  for (nccl::Comm* comm : comms()) static_cast<void>(library_.comm_abort(comm));
}

void NcclDevices::close() {
  if (stop_.raised()) abort_all();
  if (aborted_) return;
  for (const auto& [id, rank] : ranks_)
    for (const auto& [comm, handle] : rank->registered) static_cast<void>(library_.comm_deregister(comm, handle));
  const std::vector<nccl::Comm*> all = comms();
  for (nccl::Comm* comm : all) static_cast<void>(library_.comm_finalize(comm));
  const auto until = std::chrono::steady_clock::now() + kClosing;
  for (nccl::Comm* comm : all) {
    Result state = Result::InProgress;
    while (library_.comm_async_error(comm, &state) == Result::Success && state == Result::InProgress &&
           std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(1ms);
    static_cast<void>(state == Result::Success ? library_.comm_destroy(comm) : library_.comm_abort(comm));
  }
}

}  // namespace foreshard::gpu
