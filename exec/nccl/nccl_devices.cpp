// How NCCL communicators are created, monitored and aborted.
#include <algorithm>
#include <cstring>
#include <sstream>

#include "core/base/error.h"
#include "exec/nccl/nccl_communicator.h"

namespace foreshard::gpu {

using nccl::Result;

namespace {

using namespace std::chrono_literals;
constexpr auto kLook = 20ms;
constexpr auto kClosing = 5s, kReturning = 5s;
constexpr int kSharing = 23003;  // the first version with NCCL_MULTI_RANK_GPU_ENABLE

// Arenas are allocated by NCCL, so that they can be registered for NVLS and zero-copy transports (NCCL user guide, "User Buffer
// Registration").
ArenaSource arenas_of(nccl::Library& library) {
  return {.allocate =
              [&library](Bytes bytes) {
                void* memory = nullptr;
                const bool given = library.memory_allocate(&memory, static_cast<std::size_t>(bytes.value)) == Result::Success;
                return given ? static_cast<std::byte*>(memory) : nullptr;
              },
          .release = [&library](std::byte* memory) { static_cast<void>(library.memory_free(memory)); }};
}

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
    : runtime_(runtime),
      library_(library),
      stop_(stop),
      options_(options),
      memory_(runtime, arenas_of(library)),
      choice_(runtime, options.runs.products) {}

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
  const int gpu = (options_.first_gpu + static_cast<int>(ranks_.size())) % runtime_.devices();
  for (const auto& [other, rank] : ranks_)
    if (rank->gpu() == gpu && !options_.shares_gpus)
      throw DeviceError("NCCL", "rank " + std::to_string(other.value) + " and rank " + std::to_string(id.value) +
                                    " would share GPU " + std::to_string(gpu) + "; NCCL wants one for each" +
                                    (library_.version() >= kSharing ? " (or NCCL_MULTI_RANK_GPU_ENABLE=1)" : ""));
  auto device = std::make_unique<CudaDevice>(runtime_, memory_, choice_, gpu, stop_, alone, options_.runs);
  Rank& rank = *ranks_.emplace(id, std::make_unique<Rank>()).first->second;
  rank.device = device.get();
  if (options_.shares_gpus) rank.begins = rank.events.emplace(runtime_, gpu, false).take();
  return device;
}

std::vector<std::string> NcclDevices::notes() const {
  std::vector<const CudaDevice*> devices;
  for (const auto& [id, rank] : ranks_) devices.push_back(rank->device);
  std::vector<std::string> all = choice_.notes();
  for (std::string& note : attention_notes(devices)) all.push_back(std::move(note));
  return all;
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

// The communicators that were split off the world, then the world itself.
std::vector<nccl::Comm*> NcclDevices::comms_of(const Rank& rank) {
  std::vector<nccl::Comm*> all;
  for (const auto& [group, comm] : rank.groups)
    if (comm) all.push_back(comm);
  for (const auto& [lane, comm] : rank.lanes)
    if (comm) all.push_back(comm);
  if (rank.world) all.push_back(rank.world);
  return all;
}
std::vector<nccl::Comm*> NcclDevices::comms() const {
  std::vector<nccl::Comm*> all;
  for (const auto& [id, rank] : ranks_)
    for (nccl::Comm* comm : comms_of(*rank)) all.push_back(comm);
  return all;
}

void NcclDevices::connect() {
  if (options_.mesh) choice_.adopt(options_.mesh->all_gather(choice_.text()));
  try {
    make_world();
    for (const GroupId group : wanted_groups()) split_group(group);
    gather_messages();
    for (const std::vector<Lane>& round : rounds_of(messages_.apart())) split_lanes(round);
    register_arenas();
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
    runtime_.select(rank->gpu());
    nccl::Config config;
    expect(library_.comm_init_rank_config(&rank->world, options_.ranks, id, rank_id.value, &config), "ncclCommInitRankConfig",
           nullptr);
  }
  expect(library_.group_end(), "ncclGroupEnd", nullptr);
  wait_until_ready("ncclCommInitRankConfig");
}

// The groups of all ranks in all processes, because every rank has to take part in every split.
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

// Every rank has to know the lanes of all ranks and which tags are rings.
void NcclDevices::gather_messages() {
  if (!options_.mesh) return;
  for (const std::string& told : options_.mesh->all_gather(messages_.text())) messages_.add(told);
}

void NcclDevices::split(const std::function<Part(RankId, Rank&)>& part_of) {
  expect(library_.group_start(), "ncclGroupStart", nullptr);
  for (const auto& [id, rank] : ranks_) {
    runtime_.select(rank->gpu());
    const Part part = part_of(id, *rank);
    nccl::Config config;
    expect(library_.comm_split(rank->world, part.color, part.key, part.made ? part.made : &rank->none, &config),
           "ncclCommSplit", rank->world);
  }
  expect(library_.group_end(), "ncclGroupEnd", nullptr);
  wait_until_ready("ncclCommSplit");
}

// One split makes the communicators of all groups of a pattern. The color is the number of a group's first member.
void NcclDevices::split_group(GroupId group) {
  split([&](RankId id, Rank& rank) {
    const auto found = rank.members.find(group);
    if (found == rank.members.end()) return Part{};
    const auto key = std::find(found->second.begin(), found->second.end(), id) - found->second.begin();
    return Part{found->second.front().value, static_cast<int>(key), &rank.groups[group]};
  });
}

void NcclDevices::split_lanes(const std::vector<Lane>& round) {
  split([&](RankId id, Rank& rank) {
    const auto lane = std::find_if(round.begin(), round.end(), [&](const Lane& one) { return one.has(id); });
    if (lane == round.end()) return Part{};
    return Part{static_cast<int>(lane - round.begin()), lane->from == id ? 0 : 1, &rank.lanes[*lane]};
  });
}

// Lets the library access the arenas without copying to its own buffers. If it cannot register one, it returns an error, which is ignored.
void NcclDevices::register_arenas() {
  for (const auto& [id, rank] : ranks_) {
    runtime_.select(rank->gpu());
    for (nccl::Comm* comm : comms_of(*rank))
      for (const auto& [data, bytes] : rank->device->arenas()) {
        void* handle = nullptr;
        if (library_.comm_register(comm, data, static_cast<std::size_t>(bytes.value), &handle) == Result::Success && handle)
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

// Body of the watching thread: raises a stop for an asynchronous error of NCCL. After any stop, it aborts all communicators, so that the
// streams end.
void NcclDevices::watch() {
  std::unique_lock lock(mutex_);
  while (!closed_) {
    changed_.wait_for(lock, kLook, [&] { return closed_; });
    for (const auto& [id, rank] : ranks_)
      for (nccl::Comm* comm : comms_of(*rank)) {
        Result state = Result::Success;
        if (aborted_ || library_.comm_async_error(comm, &state) != Result::Success) continue;
        if (state == Result::Success || state == Result::InProgress) continue;
        const_cast<Stop&>(stop_).raise("NCCL of rank " + std::to_string(id.value) + ": " + words(state, comm));
      }
    if (!stop_.raised()) continue;
    lock.unlock();
    abort_all();
    return;
  }
}

// During an abort no thread may be inside an NCCL call (NCCL user guide, "Fault tolerance"). An abort waits until the kernels of the
// communicator have left the GPU, and these may be queued after those of another communicator; so all are aborted in one group call. If a
// call never returns, nothing is aborted.
void NcclDevices::abort_all() {
  std::vector<std::unique_lock<std::timed_mutex>> outside;
  const auto until = std::chrono::steady_clock::now() + kReturning;
  for (const auto& [id, rank] : ranks_)
    if (!outside.emplace_back(rank->inside, until).owns_lock()) return;
  const std::lock_guard lock(mutex_);
  if (aborted_.exchange(true)) return;
  static_cast<void>(library_.group_start());
  for (nccl::Comm* comm : comms()) static_cast<void>(library_.comm_abort(comm));
  static_cast<void>(library_.group_end());
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
