#include "exec/communicator/tcp_rounds.h"

#include "exec/communicator/round_walk.h"
#include "exec/host/host_device.h"

namespace foreshard::tcp {

namespace {

constexpr Bytes kPiece = {512 << 10};  // largest size of a message

// Pieces that replace data are received in place; pieces that are added are received in a buffer (`memory_`) and summed from there.
class RoundsTask : public MeetingTask {
 public:
  RoundsTask(const CollectiveCall& call, const RankSender& wire, std::size_t place)
      : MeetingTask(wire, call.members), call_(call), own_(static_cast<int>(place)), walk_(call, place, kPiece) {
    channel_ = channel_of(name_of(call) + " rounds");
    std::size_t most = 0;
    for (int t = 0; t < walk_.rounds(); ++t) {
      std::size_t landings = 0;
      for (const RoundWalk::Arrival& arrival : walk_.round(t).arrivals) landings += arrival.from.size();
      most = std::max(most, landings);
    }
    landings_.resize(most);
    const auto bytes = static_cast<std::size_t>(kPiece.value);
    memory_ = std::make_unique_for_overwrite<std::byte[]>(most * bytes);  // pages that are never touched cost nothing
    if (walk_.own_memory() > Bytes{}) base_ = std::make_unique_for_overwrite<std::byte[]>(RoundWalk::kOwnMemory);
  }

 private:
  RankId member(int i) const { return call_.members[static_cast<std::size_t>(i)]; }
  std::byte* base() const { return base_ ? base_.get() : call_.to.data; }

  void meet(TaskTimes& times) override {
    for (int window = 0; window < walk_.windows(); ++window) {
      work(times, [&] { begin_window(walk_, call_, base(), window); });
      for (int t = 0; t < walk_.rounds(); ++t) play(walk_.round(t), window, times);
      work(times, [&] { end_window(walk_, call_, base(), window); });
    }
  }
  void forget() override {
    for (PendingReceive& it : landings_)
      if (it.from.valid()) it.forget(wire_);
  }

  void play(const RoundWalk::Round& round, int window, TaskTimes& times) {
    std::size_t at = 0;
    for (const RoundWalk::Arrival& arrival : round.arrivals)
      for (const int from : arrival.from) {
        if (from == own_) continue;
        std::byte* place = arrival.adds ? place_of(at) : walk_.piece(base(), arrival.slice, window);
        landings_[at].from = member(from), landings_[at].channel = channel_;
        landings_[at++].post(wire_, place, walk_.bytes(arrival.slice, window).value, changed_);
      }
    for (const RoundWalk::Departure& out : round.departures)
      wire_.send(member(out.to), channel_, walk_.piece(base(), out.slice, window), walk_.bytes(out.slice, window).value,
                 times.met);
    at = 0;
    for (const RoundWalk::Arrival& arrival : round.arrivals) {
      std::vector<const std::byte*> sources;
      for (const int from : arrival.from) {
        sources.push_back(from == own_ ? walk_.piece(base(), arrival.slice, window) : place_of(at));
        if (from != own_) landings_[at++].await(wire_, times.met);
      }
      if (arrival.adds) work(times, [&] { receive(walk_, call_, base(), window, arrival, sources); });
    }
  }

  template <class Do>
  static void work(TaskTimes& times, Do&& run) {
    const std::int64_t before = thread_cpu_time();
    run();
    times.own += thread_cpu_time() - before;
  }

  std::byte* place_of(std::size_t landing) const { return memory_.get() + landing * static_cast<std::size_t>(kPiece.value); }

  CollectiveCall call_;
  int own_ = 0;
  RoundWalk walk_;
  std::uint64_t channel_ = 0;
  std::vector<PendingReceive> landings_;        // the receives of a round
  std::unique_ptr<std::byte[]> memory_, base_;  // received pieces that are added; own memory of the walk
  std::condition_variable changed_;
};

}  // namespace

std::unique_ptr<StreamTask> rounds_task(const CollectiveCall& call, const RankSender& wire, std::size_t place) {
  return std::make_unique<RoundsTask>(call, wire, place);
}

}  // namespace foreshard::tcp
