#include "exec/cuda_checks/calibrate_nccl.h"

#include <algorithm>
#include <array>
#include <string>

#include "exec/nccl/nccl_communicator.h"

namespace foreshard::gpu {

namespace {

constexpr int kInARow = 5;  // collectives per timing, as in nccl-tests

class NcclRanks : public CollectiveRanks {
 public:
  NcclRanks(Runtime& runtime, nccl::Library& library, const NcclOptions& options, std::vector<RankId> here, Bytes largest,
            MeasuredAlgorithm algorithm)
      : runtime_(runtime), here_(std::move(here)), algorithm_(algorithm), devices_(runtime, library, stop_, options) {
    for (const RankId id : here_) {
      Seat& location = seats_.emplace_back();
      location.backend = devices_.device(id, nullptr);
      location.communicator = devices_.communicator(id, *location.backend);
      location.gpu = static_cast<CudaDevice&>(*location.backend).gpu();
      location.from = {location.backend->arena(Space::Device, largest), largest, DType::F32};
      location.to = {location.backend->arena(Space::Device, largest), largest, DType::F32};
    }
    if (options.mesh) (mesh_ = options.mesh)->guard(&stop_);
  }
  ~NcclRanks() override {
    if (mesh_) mesh_->guard(nullptr);
    for (Seat& location : seats_)
      if (location.stream) runtime_.close_stream(location.stream);
  }
  NcclRanks(const NcclRanks&) = delete;
  NcclRanks& operator=(const NcclRanks&) = delete;

  std::vector<RankId> here() const override { return here_; }
  MeasuredAlgorithm algorithm() const override { return algorithm_; }

  // NCCL tasks run in the order in which they were made, each once per run. So there is a task for every time that a collective runs.
  void prepare(const std::vector<MeasuredCall>& calls) override {
    for (std::size_t r = 0; r < here_.size(); ++r) {
      Seat& location = seats_[r];
      for (const MeasuredCall& measured : calls) {
        CollectiveCall call = measured.call;
        location.first.push_back(location.tasks.size());
        if (std::find(call.members.begin(), call.members.end(), here_[r]) == call.members.end()) continue;
        call.from = location.from, call.to = location.to;
        for (int i = 0; i < measured.rounds * kInARow; ++i) location.tasks.push_back(location.communicator->collective(call));
      }
      runtime_.select(location.gpu);
      location.stream = runtime_.open_stream(false);
      location.begin = location.events.emplace_back(std::make_unique<EventPool>(runtime_, location.gpu, true))->take();
      location.end = location.events.front()->take();
    }
    devices_.connect();
  }

  double run(RankId rank, std::size_t call, int round) override {
    Seat& location = seats_[static_cast<std::size_t>(std::find(here_.begin(), here_.end(), rank) - here_.begin())];
    runtime_.select(location.gpu);
    OnStream on{.runtime = runtime_, .stream = location.stream, .scratch = nullptr, .workspace = nullptr, .met = nullptr};
    runtime_.record(location.begin, location.stream);
    const std::size_t first = location.first[call] + static_cast<std::size_t>(round) * kInARow;
    for (std::size_t i = first; i < first + kInARow; ++i) static_cast<GpuTask&>(*location.tasks[i]).enqueue(on, 0);
    runtime_.record(location.end, location.stream);
    while (!runtime_.idle(location.stream)) {
      if (stop_.raised()) throw Stopped{};
      std::this_thread::yield();
    }
    return static_cast<double>(runtime_.nanoseconds(location.begin, location.end)) * 1e-9 / kInARow;
  }

 private:
  struct Seat {
    std::unique_ptr<Communicator> communicator = {};
    std::unique_ptr<DeviceBackend> backend = {};
    int gpu = 0;
    MemoryRange from = {}, to = {};
    std::vector<std::unique_ptr<StreamTask>> tasks = {};
    std::vector<std::size_t> first = {};  // [call] index of its first task
    Stream* stream = nullptr;
    std::vector<std::unique_ptr<EventPool>> events = {};
    Event *begin = nullptr, *end = nullptr;
  };

  Runtime& runtime_;
  std::vector<RankId> here_;
  MeasuredAlgorithm algorithm_;
  ProcessMesh* mesh_ = nullptr;
  NcclDevices devices_;  // declared before the locations, so that it outlives them
  std::vector<Seat> seats_ = {};
};

}  // namespace

MeasuredAlgorithm algorithm_of(const char* text) {
  std::string plain;
  for (const char* c = text ? text : ""; *c; ++c)
    if (*c != '_') plain += static_cast<char>(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
  constexpr std::array<std::pair<const char*, MeasuredAlgorithm>, 7> kKnown = {
      {{"ring", MeasuredAlgorithm::Ring},
       {"tree", MeasuredAlgorithm::Tree},
       {"collnetdirect", MeasuredAlgorithm::CollnetDirect},
       {"collnetchain", MeasuredAlgorithm::CollnetChain},
       {"nvls", MeasuredAlgorithm::Nvls},
       {"nvlstree", MeasuredAlgorithm::NvlsTree},
       {"pat", MeasuredAlgorithm::Pat}}};
  for (const auto& [name, algorithm] : kKnown)
    if (plain == name) return algorithm;
  return MeasuredAlgorithm::Automatic;
}

std::unique_ptr<CollectiveRanks> nccl_collective_ranks(Runtime& runtime, nccl::Library& library, const NcclOptions& options,
                                                       std::vector<RankId> here, Bytes largest, MeasuredAlgorithm algorithm) {
  return std::make_unique<NcclRanks>(runtime, library, options, std::move(here), largest, algorithm);
}

RankLocation location_of_gpu(Runtime& runtime, int gpu, const std::string& node) {
  const Properties own = runtime.properties(gpu);
  RankLocation location{.node = node, .gpu = own.bus, .nvlinks = own.nvlinks};
  for (int other = 0; other < runtime.devices(); ++other) location.sees.push_back(runtime.properties(other).bus);
  return location;
}

}  // namespace foreshard::gpu
