#include "exec/calibrate/calibrate_collectives.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <exception>
#include <sstream>
#include <thread>

#include "core/base/error.h"
#include "core/base/start_thread.h"
#include "exec/communicator/tcp_communicator.h"
#include "exec/communicator/thread_communicator.h"

namespace foreshard {

namespace {

constexpr int kFewest = 6;
constexpr std::int64_t kVolume = std::int64_t{64} << 20U;  // bytes of all rounds of one size together, approximately

// Ranks on the CPU, with their operands and the tasks of all calls.
class HostRanks : public CollectiveRanks {
 public:
  HostRanks(ProcessMesh* mesh, int threads, Bytes largest) : mesh_(mesh), meetings_(stop_) {
    if (mesh_) here_ = {{mesh_->process()}};
    for (std::int32_t r = 0; !mesh_ && r < threads; ++r) here_.push_back({r});
    for (std::size_t i = 0; i < 2 * here_.size(); ++i)
      blocks_.emplace_back(static_cast<std::size_t>(largest.value) / sizeof(float), 1.0F);
    tasks_.resize(here_.size());
    if (mesh_) mesh_->guard(&stop_);
  }
  ~HostRanks() override {
    if (mesh_) mesh_->guard(nullptr);
  }
  HostRanks(const HostRanks&) = delete;
  HostRanks& operator=(const HostRanks&) = delete;

  std::vector<RankId> here() const override { return here_; }
  MeasuredAlgorithm algorithm() const override { return MeasuredAlgorithm::Direct; }

  void prepare(const std::vector<MeasuredCall>& calls) override {
    for (std::size_t r = 0; r < here_.size(); ++r)
      for (const MeasuredCall& measured : calls) {
        CollectiveCall call = measured.call;
        std::unique_ptr<StreamTask>& task = tasks_[r].emplace_back();
        if (std::count(call.members.begin(), call.members.end(), here_[r]) == 0) continue;
        call.from = block(2 * r), call.to = block(2 * r + 1);
        task = mesh_ ? TcpCommunicator(*mesh_, stop_, here_[r]).collective(call)
                     : ThreadCommunicator(meetings_, here_[r]).collective(call);
      }
  }

  double run(RankId rank, std::size_t call, int round) override {
    const std::size_t r = mesh_ ? 0 : rank.index();
    const auto before = std::chrono::steady_clock::now();
    static_cast<void>(tasks_[r][call]->run(round));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  }

 private:
  MemoryRange block(std::size_t i) {
    std::vector<float>& memory = blocks_[i];
    return {
        reinterpret_cast<std::byte*>(memory.data()), {static_cast<std::int64_t>(memory.size() * sizeof(float))}, DType::F32};
  }

  ProcessMesh* mesh_;
  ThreadMeetings meetings_;
  std::vector<RankId> here_ = {};
  std::vector<std::vector<float>> blocks_ = {};
  std::vector<std::vector<std::unique_ptr<StreamTask>>> tasks_ = {};  // [rank here][call]
};

std::vector<MeasuredCall> calls_of(const std::vector<MeasuredGroup>& groups, const std::vector<CollectiveKind>& kinds,
                                   const CollectiveSizes& sizes) {
  std::vector<MeasuredCall> all;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::int64_t sequence = 0;
    const auto unit = static_cast<std::int64_t>(groups[g].members.size() * sizeof(float));
    for (const CollectiveKind kind : kinds)
      for (std::int64_t size = std::max(sizes.least.value, unit); size <= sizes.most.value; size *= 4) {
        const std::int64_t bytes = size / unit * unit;
        all.push_back(
            {.call = {.what = {.kind = kind, .group = {static_cast<std::int32_t>(g)}, .bytes = {bytes}, .dtype = DType::F32},
                      .members = groups[g].members,
                      .sequence = sequence++,
                      .where = "calibrate"},
             .group = g,
             .rounds = static_cast<int>(std::clamp<std::int64_t>(kVolume / bytes, kFewest, sizes.most_rounds + 1))});
      }
  }
  return all;
}

// Runs all calls on all ranks of all processes, round by round, with a barrier between the rounds.
class Rounds {
 public:
  Rounds(CollectiveRanks& ranks, ProcessMesh* mesh, const std::vector<MeasuredCall>& calls)
      : ranks_(ranks), mesh_(mesh), calls_(calls), here_(ranks.here()), barrier_(static_cast<std::ptrdiff_t>(here_.size())) {}

  // Returns the measured seconds [call]; they are right in process 0 only.
  std::vector<double> measure() {
    std::vector<std::thread> others;
    others.reserve(here_.size());
    try {
      for (std::size_t r = 1; r < here_.size(); ++r) others.push_back(start_thread([this, r] { work(r); }));
    } catch (const DeviceError&) {  // the others wait for those that are missing, without which they leave the first barrier
      fail(std::current_exception());
      for (std::size_t r = others.size() + 1; r < here_.size(); ++r) barrier_.arrive_and_drop();
    }
    work(0);
    for (std::thread& other : others) other.join();
    if (failure_) std::rethrow_exception(failure_);
    return times_;
  }

 private:
  void work(std::size_t r) {
    for (std::size_t c = 0; c < calls_.size(); ++c) {
      const std::vector<RankId>& members = calls_[c].call.members;
      const bool member = std::find(members.begin(), members.end(), here_[r]) != members.end();
      for (int round = 0; round < calls_[c].rounds; ++round) {
        if (!meet(r, c, round)) return;
        if (member) run(r, c, round);
      }
    }
    static_cast<void>(meet(r, calls_.size(), 0));
  }

  void run(std::size_t r, std::size_t call, int round) {
    try {
      const auto time = static_cast<std::int64_t>(ranks_.run(here_[r], call, round) * 1e12);  // picoseconds
      const std::lock_guard lock(mutex_);
      sum_ += time;
    } catch (const Stopped&) {
      fail(std::make_exception_ptr(DeviceError("calibrate", ranks_.stop().why())));
    } catch (const std::exception& problem) {
      fail(std::current_exception());
      ranks_.stop().raise(problem.what());
    }
  }

  // Barrier before a round. It also collects the times of the previous round. Returns false in all ranks if one has failed.
  bool meet(std::size_t r, std::size_t call, int round) {
    barrier_.arrive_and_wait();
    if (r == 0) {
      if (!failed()) gather(call, round);
      goes_on_ = !failed();  // all ranks read it before another round can fail
    }
    barrier_.arrive_and_wait();
    return goes_on_;
  }

  void gather(std::size_t call, int round) {
    try {
      std::int64_t sum = std::exchange(sum_, 0);
      if (mesh_) {
        const std::vector<std::string> told = mesh_->all_gather(std::to_string(sum));
        sum = 0;
        for (const std::string& text : told) {
          std::int64_t one = 0;
          std::istringstream in(text);
          if (!(in >> one)) throw DeviceError("calibrate", "a process told no time");
          sum += one;
        }
      }
      const std::size_t of = round > 0 ? call : call - 1;
      if (of >= calls_.size()) return;  // the very first barrier: no round has run
      if (round != 1)                   // the first round does not count
        seconds_.push_back(static_cast<double>(sum) * 1e-12 / static_cast<double>(calls_[of].call.members.size()));
      if (round == 0) finish();
    } catch (const std::exception&) {
      fail(std::current_exception());
    }
  }

  void finish() {
    const auto middle = seconds_.begin() + static_cast<std::ptrdiff_t>(seconds_.size() / 2);
    std::nth_element(seconds_.begin(), middle, seconds_.end());
    times_.push_back(std::max(*middle, 1e-9));
    seconds_.clear();
  }

  void fail(std::exception_ptr why) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(why);
  }
  bool failed() {
    const std::lock_guard lock(mutex_);
    return failure_ != nullptr;
  }

  CollectiveRanks& ranks_;
  ProcessMesh* mesh_;
  const std::vector<MeasuredCall>& calls_;
  std::vector<RankId> here_;
  std::barrier<> barrier_;
  std::mutex mutex_;
  std::exception_ptr failure_;
  bool goes_on_ = true;
  std::int64_t sum_ = 0;  // picoseconds of all ranks of this process in the last round
  std::vector<double> seconds_ = {}, times_ = {};
};

}  // namespace

std::unique_ptr<CollectiveRanks> host_ranks(ProcessMesh* mesh, int threads, Bytes largest) {
  return std::make_unique<HostRanks>(mesh, threads, largest);
}

// From NCCL's table of implemented algorithms, src/graph/tuning.cc. An all-to-all is not in it, as NCCL makes it of send and receive.
std::vector<CollectiveKind> kinds_of(MeasuredAlgorithm algorithm) {
  using enum CollectiveKind;
  switch (algorithm) {
    case MeasuredAlgorithm::Automatic:
    case MeasuredAlgorithm::Direct: return {AllReduce, ReduceScatter, AllGather, Broadcast, AllToAll};
    case MeasuredAlgorithm::Ring: return {AllReduce, ReduceScatter, AllGather, Broadcast};
    case MeasuredAlgorithm::Nvls:
    case MeasuredAlgorithm::CollnetDirect: return {AllReduce, ReduceScatter, AllGather};
    case MeasuredAlgorithm::Pat: return {ReduceScatter, AllGather};
    case MeasuredAlgorithm::Tree:
    case MeasuredAlgorithm::CollnetChain:
    case MeasuredAlgorithm::NvlsTree: return {AllReduce};
  }
  return {};
}

std::vector<CollectiveMeasure> measure_collectives(CollectiveRanks& ranks, ProcessMesh* mesh,
                                                   const std::vector<MeasuredGroup>& groups, const CollectiveSizes& sizes) {
  const std::vector<MeasuredCall> calls = calls_of(groups, kinds_of(ranks.algorithm()), sizes);
  ranks.prepare(calls);
  const std::vector<double> times = Rounds(ranks, mesh, calls).measure();
  std::vector<CollectiveMeasure> all;
  if (mesh && mesh->process() != 0) return all;
  for (std::size_t c = 0; c < calls.size(); ++c) {
    const MeasuredGroup& group = groups[calls[c].group];
    all.push_back({.kind = calls[c].call.what.kind,
                   .algorithm = ranks.algorithm(),
                   .link = group.link,
                   .ranks = static_cast<int>(group.members.size()),
                   .nodes = group.nodes,
                   .bytes = calls[c].call.what.bytes,
                   .time = {times[c]}});
  }
  std::sort(all.begin(), all.end(), comes_before);
  return all;
}

void take_collectives(MachineProfile& profile, const std::vector<CollectiveMeasure>& measures) {
  std::erase_if(profile.collectives, [&](const CollectiveMeasure& old) {
    return std::any_of(measures.begin(), measures.end(),
                       [&](const CollectiveMeasure& at) { return at.link == old.link && at.algorithm == old.algorithm; });
  });
  profile.collectives.insert(profile.collectives.end(), measures.begin(), measures.end());
  std::sort(profile.collectives.begin(), profile.collectives.end(), comes_before);
  for (const MeasuredLink link :
       {MeasuredLink::NvLink, MeasuredLink::Pcie, MeasuredLink::Node, MeasuredLink::Process, MeasuredLink::Network})
    if (const auto fit = fitted_link(profile.collectives, link)) {
      profile.link_latency = fit->latency, profile.link_bandwidth = fit->bandwidth;
      return;
    }
  if (profile.link_bandwidth.value > 0) return;
  for (const CollectiveMeasure& at : profile.collectives)  // there is no all-reduce to fit
    if (at.bus_bandwidth() > profile.link_bandwidth) profile.link_bandwidth = at.bus_bandwidth();
}

}  // namespace foreshard
