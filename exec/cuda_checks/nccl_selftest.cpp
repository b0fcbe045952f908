#include "exec/cuda_checks/nccl_selftest.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "core/base/error.h"
#include "core/plan/plan_words.h"
#include "exec/arithmetic/host_convert.h"
#include "exec/nccl/nccl_communicator.h"

namespace foreshard::gpu {

namespace {

struct Case {
  CollectiveKind kind = {};
  DType dtype = DType::F32;
  Combine combine = Combine::Sum;
  bool accumulate = false;
  std::int64_t part = 1;  // elements of the tensor divided by the number of ranks
  bool message = false;   // not a collective: every rank sends to the next one
};

constexpr std::int64_t kMostPart = 3000;
// Numbers of at most 6 bits, so that sums over a few ranks are exact in 16 bits; a mean over three ranks is not.
constexpr double kExact = 0, kMeanOfSingle = 1e-6, kMeanOfHalf = 1.0 / 128;

double input(std::int64_t rank, std::int64_t i) { return static_cast<double>((i * 7 + rank * 3) % 13 - 6) / 4; }
double before(std::int64_t rank, std::int64_t i) { return static_cast<double>((i * 5 + rank) % 7 - 3) / 2; }

std::vector<Case> cases(int ranks) {
  using enum CollectiveKind;
  std::vector<Case> all;
  for (const std::int64_t part : {std::int64_t{1}, kMostPart}) {
    for (const DType dtype : {DType::F32, DType::BF16})
      for (const CollectiveKind kind : {AllReduce, ReduceScatter, Reduce})
        for (const auto& [combine, accumulate] :
             {std::pair{Combine::Sum, false}, {Combine::Mean, false}, {Combine::Max, false}, {Combine::Sum, true}})
          all.push_back({kind, dtype, combine, accumulate, part});
    for (const CollectiveKind kind : {AllGather, Broadcast, AllToAll}) all.push_back({.kind = kind, .part = part});
    if (ranks > 1) all.push_back({.part = part, .message = true});
  }
  return all;
}

double over_ranks(const Case& tried, int ranks, std::int64_t i) {
  double result = input(0, i);
  for (int r = 1; r < ranks; ++r) result = tried.combine == Combine::Max ? std::max(result, input(r, i)) : result + input(r, i);
  return tried.combine == Combine::Mean ? result / ranks : result;
}

// The expected element i of rank q's output; elements that the collective does not write stay unchanged.
double expected(const Case& tried, int ranks, int q, std::int64_t i) {
  const std::int64_t part = tried.part;
  const double kept = tried.accumulate ? before(q, i) : 0;
  if (tried.message) return input((q + ranks - 1) % ranks, i);
  switch (tried.kind) {
    case CollectiveKind::AllReduce: return over_ranks(tried, ranks, i) + kept;
    case CollectiveKind::ReduceScatter: return i < part ? over_ranks(tried, ranks, q * part + i) + kept : before(q, i);
    case CollectiveKind::Reduce: return q == 0 ? over_ranks(tried, ranks, i) + kept : before(q, i);
    case CollectiveKind::AllGather: return input(i / part, i % part);
    case CollectiveKind::Broadcast: return input(0, i);
    case CollectiveKind::AllToAll: return input(i / part, q * part + i % part);
  }
  return 0;
}

class Selftest {
 public:
  Selftest(Runtime& runtime, nccl::Library& library, const NcclOptions& options, std::chrono::milliseconds patience)
      : runtime_(runtime), ranks_(options.ranks), patience_(patience), devices_(runtime, library, stop_, options) {
    const Bytes block{kMostPart * ranks_ * std::int64_t{sizeof(float)}};
    for (int r = 0; r < ranks_; ++r) {
      Seat& seat = seats_.emplace_back();
      seat.device = devices_.device({r}, nullptr);
      seat.communicator = devices_.communicator({r}, *seat.device);
      seat.gpu = static_cast<CudaDevice&>(*seat.device).gpu();
      seat.from = seat.device->arena(Space::Device, block), seat.to = seat.device->arena(Space::Device, block);
      runtime_.select(seat.gpu);
      seat.stream = runtime_.open_stream(false);
    }
    for (const Case& tried : cases_)
      for (int r = 0; r < ranks_; ++r) seats_[static_cast<std::size_t>(r)].tasks.push_back(task(tried, r));
    devices_.connect();
  }
  ~Selftest() {
    for (Seat& seat : seats_) runtime_.close_stream(seat.stream);
  }
  Selftest(const Selftest&) = delete;
  Selftest& operator=(const Selftest&) = delete;

  std::vector<NcclOutcome> outcomes() {
    std::vector<NcclOutcome> all;
    for (std::size_t c = 0; c < cases_.size() && !stop_.raised(); ++c) all.push_back(outcome(c));
    return all;
  }

 private:
  struct Seat {
    std::unique_ptr<Communicator> communicator = {};
    std::unique_ptr<DeviceBackend> device = {};
    int gpu = 0;
    std::byte *from = nullptr, *to = nullptr;
    Stream* stream = nullptr;
    std::vector<std::unique_ptr<StreamTask>> tasks = {};
  };

  std::int64_t elements(const Case& tried) const { return tried.part * ranks_; }

  std::unique_ptr<StreamTask> task(const Case& tried, int r) {
    Seat& seat = seats_[static_cast<std::size_t>(r)];
    runtime_.select(seat.gpu);  // some tasks allocate memory
    const Bytes bytes = size_of(tried.dtype) * elements(tried);
    const MemoryRange from{seat.from, bytes, tried.dtype}, to{seat.to, bytes, tried.dtype};
    if (tried.message)
      return seat.communicator->exchange(
          {.to = {(r + 1) % ranks_}, .from = {(r + ranks_ - 1) % ranks_}, .tag = "t", .send = from, .receive = to});
    CollectiveCall call{.what = {.kind = tried.kind,
                                 .group = {0},
                                 .bytes = bytes,
                                 .dtype = tried.dtype,
                                 .combine = tried.combine,
                                 .accumulate = tried.accumulate},
                        .from = from,
                        .to = to,
                        .where = "selftest"};
    for (int member = 0; member < ranks_; ++member) call.members.push_back({member});
    return seat.communicator->collective(call);
  }

  NcclOutcome outcome(std::size_t c) {
    const Case& tried = cases_[c];
    const std::string what = tried.message ? "exchange" : word(tried.kind) + " " + name_of(tried.dtype);
    NcclOutcome found{.name = what +
                              (tried.combine != Combine::Sum ? ", " + word(tried.combine)
                               : tried.accumulate            ? ", accumulate"
                                                             : "") +
                              ", " + std::to_string(elements(tried)) + " elements"};
    const bool rounds = tried.combine == Combine::Mean;
    found.tolerance = !rounds ? kExact : tried.dtype == DType::F32 ? kMeanOfSingle : kMeanOfHalf;
    for (int r = 0; r < ranks_; ++r) fill(tried, r);
    std::vector<std::thread> threads;
    for (int r = 0; r < ranks_; ++r) threads.emplace_back([this, c, r] { work(c, r); });
    for (std::thread& thread : threads) thread.join();
    found.fault = stop_.why();
    for (int r = 0; r < ranks_ && found.fault.empty(); ++r) found.error = std::max(found.error, error(tried, r));
    return found;
  }

  void fill(const Case& tried, int r) {
    const std::int64_t count = elements(tried);
    std::vector<double> from, to;
    for (std::int64_t i = 0; i < count; ++i) from.push_back(input(r, i)), to.push_back(before(r, i));
    std::vector<std::byte> bytes(static_cast<std::size_t>((size_of(tried.dtype) * count).value));
    Seat& seat = seats_[static_cast<std::size_t>(r)];
    for (const auto& [numbers, place] : {std::pair{&from, seat.from}, {&to, seat.to}}) {
      host::store(numbers->data(), count, {bytes.data(), count, tried.dtype}, 0);
      seat.device->write(place, bytes.data(), size_of(tried.dtype) * count);
    }
  }

  double error(const Case& tried, int r) {
    const std::int64_t count = elements(tried);
    std::vector<std::byte> bytes(static_cast<std::size_t>((size_of(tried.dtype) * count).value));
    std::vector<double> found(static_cast<std::size_t>(count));
    Seat& seat = seats_[static_cast<std::size_t>(r)];
    seat.device->read(bytes.data(), seat.to, size_of(tried.dtype) * count);
    host::load({bytes.data(), count, tried.dtype}, 0, count, found.data());
    double largest = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const double wanted = expected(tried, ranks_, r, i), apart = std::abs(found[static_cast<std::size_t>(i)] - wanted);
      largest = std::max(largest, std::isfinite(apart) ? apart / std::max(std::abs(wanted), 1.0) : 1e300);
    }
    return largest;
  }

  void work(std::size_t c, int r) {
    try {
      Seat& seat = seats_[static_cast<std::size_t>(r)];
      runtime_.select(seat.gpu);
      OnStream on{.runtime = runtime_, .stream = seat.stream, .scratch = nullptr, .workspace = nullptr, .met = nullptr};
      static_cast<GpuTask&>(*seat.tasks[c]).enqueue(on, 0);
      const auto until = std::chrono::steady_clock::now() + patience_;
      while (!runtime_.idle(seat.stream) && !stop_.raised()) {
        if (std::chrono::steady_clock::now() > until) stop_.raise("rank " + std::to_string(r) + " does not come to an end");
        std::this_thread::yield();
      }
    } catch (const Stopped&) {  // the reason is reported by the thread that raised the stop
    } catch (const std::exception& problem) {
      stop_.raise(problem.what());
    }
  }

  Runtime& runtime_;
  int ranks_;
  std::chrono::milliseconds patience_;
  std::vector<Case> cases_ = cases(ranks_);
  Stop stop_;
  NcclDevices devices_;  // declared before the seats, so that it outlives them
  std::vector<Seat> seats_ = {};
};

}  // namespace

std::vector<NcclOutcome> nccl_outcomes(Runtime& runtime, nccl::Library& library, const NcclOptions& options,
                                       std::chrono::milliseconds patience) {
  return Selftest(runtime, library, options, patience).outcomes();
}

}  // namespace foreshard::gpu
