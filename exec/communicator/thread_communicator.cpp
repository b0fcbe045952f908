#include "exec/communicator/thread_communicator.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "exec/arithmetic/host_reduce.h"
#include "exec/base/steady_now.h"
#include "exec/communicator/round_walk.h"
#include "exec/host/host_device.h"

namespace foreshard {

// All members meet before any of them accesses another's operands.
class ThreadMeetings::MeetingTask : public StreamTask {
 protected:
  MeetingTask(const CollectiveCall& call, PendingCollective& pending_collective, const Stop& stop, std::size_t member)
      : call_(call), collective_(pending_collective), stop_(stop), member_(member) {}

  void meet() {
    std::unique_lock lock(collective_.mutex);
    if (++collective_.arrived == collective_.members) {
      collective_.arrived = 0;
      if (collective_.generation++ % meetings_per_run() == 0) collective_.met = steady_now();
      collective_.changed.notify_all();
      return;
    }
    const std::uint64_t generation = collective_.generation;
    stop_.wait(lock, collective_.changed, [&] { return collective_.generation != generation; });
  }
  virtual std::uint64_t meetings_per_run() const = 0;

  CollectiveCall call_;
  PendingCollective& collective_;
  const Stop& stop_;
  std::size_t member_;
};

class ThreadMeetings::CollectiveTask : public MeetingTask {
 public:
  CollectiveTask(const CollectiveCall& call, PendingCollective& pending_collective, const Stop& stop, std::size_t member)
      : MeetingTask(call, pending_collective, stop, member) {
    how_ = call.what.combine;
    accumulate_ = call.what.accumulate;
  }

  TaskTimes run(int) override {
    {
      const std::lock_guard lock(collective_.mutex);
      collective_.sources[member_] = call_.from.data;
      collective_.destinations[member_] = call_.to.data;
    }
    meet();
    const std::int64_t met = collective_.met;
    const std::int64_t before = thread_cpu_time();
    move();
    const std::int64_t own = thread_cpu_time() - before;
    meet();  // after it, no member accesses the operands of another
    return {.met = met, .own = own};
  }

 private:
  std::uint64_t meetings_per_run() const override { return 2; }

  void move() {
    const auto n = static_cast<std::int64_t>(collective_.members), own = static_cast<std::int64_t>(member_);
    const std::int64_t each = size_of(call_.from.dtype).value, bytes = call_.what.bytes.value, elements = bytes / each;
    const std::int64_t part = bytes / n;
    const bool in_place = call_.from.data == call_.to.data;
    const auto copy = [](std::byte* to, const std::byte* from, std::int64_t count) {
      if (to != from) std::memcpy(to, from, static_cast<std::size_t>(count));
    };
    switch (call_.what.kind) {
      case CollectiveKind::AllReduce: {
        const std::int64_t first = elements * own / n, end = elements * (own + 1) / n;
        sum(collective_.destinations, first, end - first);
        return;
      }
      case CollectiveKind::Reduce:
        if (own == 0) sum(std::span(collective_.destinations).first(1), 0, elements);
        return;
      case CollectiveKind::ReduceScatter: {
        const std::int64_t first = elements / n * own;
        // So that slice `own` of it begins at the output
        std::byte* to = in_place ? call_.to.data : call_.to.data - part * own;
        sum(std::span(&to, 1), first, elements / n);
        return;
      }
      case CollectiveKind::AllGather:
        for (std::int64_t step = 0; step < n; ++step) {
          const std::int64_t peer = (own + step) % n;
          const std::byte* source = collective_.sources[static_cast<std::size_t>(peer)];
          const bool peer_in_place = source == collective_.destinations[static_cast<std::size_t>(peer)];
          copy(call_.to.data + part * peer, peer_in_place ? source + part * peer : source, part);
        }
        return;
      case CollectiveKind::Broadcast: copy(call_.to.data, collective_.sources[0], bytes); return;
      case CollectiveKind::AllToAll:
        for (std::int64_t peer = 0; peer < n; ++peer)
          copy(call_.to.data + part * peer, collective_.sources[static_cast<std::size_t>(peer)] + part * own, part);
        return;
    }
  }

  void sum(std::span<std::byte* const> to, std::int64_t first, std::int64_t count) const {
    reduce(call_.from.dtype, how_, accumulate_, collective_.sources, to, first, count);
  }

  Combine how_ = Combine::Sum;
  bool accumulate_ = false;
};

class ThreadMeetings::RoundsTask : public MeetingTask {
 public:
  RoundsTask(const CollectiveCall& call, ThreadMeetings& meetings, PendingCollective& pending_collective, std::size_t member)
      : MeetingTask(call, pending_collective, meetings.stop_, member), meetings_(meetings), walk_(call, member, {}) {
    pending_collective.bases.resize(pending_collective.members), pending_collective.progress.resize(pending_collective.members);
    for (int t = 0; t < walk_.rounds(); ++t) {
      std::vector<int> of_round = read_.empty() ? std::vector<int>{} : read_.back();
      for (const RoundWalk::Departure& out : walk_.round(t).departures)
        if (std::ranges::find(of_round, out.to) == of_round.end()) of_round.push_back(out.to);
      read_.push_back(std::move(of_round));
    }
  }

  TaskTimes run(int) override {
    std::unique_ptr<std::byte[]> memory = walk_.own_memory() > Bytes{} ? meetings_.take_memory() : nullptr;
    {
      const std::lock_guard lock(collective_.mutex);
      collective_.bases[member_] = memory ? memory.get() : call_.to.data;
    }
    meet();
    TaskTimes times{.met = collective_.met};
    for (int window = 0; window < walk_.windows(); ++window) play(window, times);
    if (memory) meetings_.give_memory(std::move(memory));
    return times;
  }

 private:
  std::uint64_t meetings_per_run() const override { return 1; }

  void play(int window, TaskTimes& times) {
    std::byte* base = collective_.bases[member_];
    work(times, [&] { begin_window(walk_, call_, base, window); });
    advance();
    for (int t = 0; t < walk_.rounds(); ++t) {
      const RoundWalk::Round& round = walk_.round(t);
      await(round, t);
      for (const RoundWalk::Arrival& arrival : round.arrivals) {
        sources_.clear();
        for (const int from : arrival.from)
          sources_.push_back(walk_.piece(collective_.bases[static_cast<std::size_t>(from)], arrival.slice, window));
        work(times, [&] { receive(walk_, call_, base, window, arrival, sources_); });
        tell(arrival, window);
      }
      advance();
    }
    await({}, walk_.rounds());  // after it, no member reads this one's pieces
    work(times, [&] { end_window(walk_, call_, base, window); });
  }

  template <class Do>
  static void work(TaskTimes& times, Do&& run) {
    const std::int64_t before = thread_cpu_time();
    run();
    times.own += thread_cpu_time() - before;
  }

  void advance() {
    const std::lock_guard lock(collective_.mutex);
    ++collective_.progress[member_];
    collective_.changed.notify_all();
  }

  // Waits until the senders of this round have done the round before, so that their pieces are complete, and until the members that this
  // one has sent something before have read it, as this round may overwrite it.
  void await(const RoundWalk::Round& round, int t) {
    std::unique_lock lock(collective_.mutex);
    const std::uint64_t here = collective_.progress[member_];
    const auto is_here = [&](int member) { return collective_.progress[static_cast<std::size_t>(member)] >= here; };
    stop_.wait(lock, collective_.changed, [&] {
      for (const RoundWalk::Arrival& arrival : round.arrivals)
        if (!std::ranges::all_of(arrival.from, is_here)) return false;
      return t == 0 || std::ranges::all_of(read_[static_cast<std::size_t>(t) - 1], is_here);
    });
  }

  void tell(const RoundWalk::Arrival& arrival, int window) const {
    if (!meetings_.on_message) return;
    for (const int from : arrival.from)
      if (static_cast<std::size_t>(from) != member_)
        meetings_.on_message(call_.members[static_cast<std::size_t>(from)], call_.members[member_],
                             walk_.bytes(arrival.slice, window));
  }

  ThreadMeetings& meetings_;
  RoundWalk walk_;
  std::vector<std::vector<int>> read_ = {};  // [round]: the members that were sent something up to this round
  std::vector<const std::byte*> sources_ = {};
};

// The receiver copies the message from the sender's memory; the sender waits until that is done.
class ThreadMeetings::ExchangeTask : public StreamTask {
 public:
  ExchangeTask(const ExchangeCall& call, PendingMessage* out, PendingMessage* in, const Stop& stop)
      : call_(call), out_(out), in_(in), stop_(stop) {}

  TaskTimes run(int) override {
    TaskTimes times;
    if (out_) {
      const std::lock_guard lock(out_->mutex);
      out_->data = call_.send.data;
      ++out_->sent;
      if (out_->waited_for >= out_->sent) out_->met = steady_now();
      out_->changed.notify_all();
    }
    if (in_) {
      std::unique_lock lock(in_->mutex);
      const std::uint64_t turn = ++in_->waited_for;
      if (in_->sent >= turn) in_->met = steady_now();
      stop_.wait(lock, in_->changed, [&] { return in_->sent >= turn; });
      times.met = in_->met;
      const std::byte* data = in_->data;
      lock.unlock();
      const std::int64_t before = thread_cpu_time();
      std::memcpy(call_.receive.data, data, static_cast<std::size_t>(call_.receive.bytes.value));
      times.own = thread_cpu_time() - before;
      lock.lock();
      in_->taken = turn;
      in_->changed.notify_all();
    }
    if (out_) {
      std::unique_lock lock(out_->mutex);
      const std::uint64_t turn = out_->sent;
      stop_.wait(lock, out_->changed, [&] { return out_->taken >= turn; });
      times.met = std::max(times.met, out_->met);
    }
    return times;
  }

 private:
  ExchangeCall call_;
  PendingMessage* out_;
  PendingMessage* in_;
  const Stop& stop_;
};

std::unique_ptr<std::byte[]> ThreadMeetings::take_memory() {
  const std::lock_guard lock(memory_mutex_);
  if (free_memory_.empty()) return std::make_unique_for_overwrite<std::byte[]>(RoundWalk::kOwnMemory);
  std::unique_ptr<std::byte[]> memory = std::move(free_memory_.back());
  free_memory_.pop_back();
  return memory;
}

void ThreadMeetings::give_memory(std::unique_ptr<std::byte[]> memory) {
  const std::lock_guard lock(memory_mutex_);
  free_memory_.push_back(std::move(memory));
}

ThreadMeetings::PendingCollective& ThreadMeetings::pending_collective(const CollectiveCall& call) {
  PendingCollective*& known = collective_of_[{call.what.group, call.members.front(), call.sequence}];
  if (!known) {
    known = &pending_collectives_.emplace_back();
    known->what = call.what;
    known->where = call.where;
    known->members = call.members.size();
    known->sources.resize(call.members.size());
    known->destinations.resize(call.members.size());
  }
  if (known->what.kind != call.what.kind || known->what.bytes != call.what.bytes ||
      known->what.algorithm != call.what.algorithm || known->what.servers != call.what.servers ||
      known->what.served_by != call.what.served_by || known->members != call.members.size())
    throw Error("plan", call.where, "a collective of " + bytes_text(call.what.bytes),
                "the kind and size that its partner has: " + bytes_text(known->what.bytes) + " (" + known->where + ")");
  ++known->known;
  return *known;
}

ThreadMeetings::PendingMessage& ThreadMeetings::pending_message(RankId from, RankId to, const std::string& tag,
                                                                std::int64_t sequence, Bytes bytes, bool sending,
                                                                const std::string& where) {
  PendingMessage*& known = message_of_[{from, to, tag, sequence}];
  if (!known) {
    known = &pending_messages_.emplace_back();
    known->bytes = bytes;
  }
  if (known->bytes != bytes)
    throw Error("plan", where, bytes_text(bytes),
                bytes_text(known->bytes) + ", as the other side has (" + known->sender + known->receiver + ")");
  (sending ? known->sender : known->receiver) = where;
  return *known;
}

void ThreadMeetings::check() const {
  for (const PendingCollective& pending_collective : pending_collectives_)
    if (pending_collective.known != pending_collective.members)
      throw Error("plan", pending_collective.where, std::to_string(pending_collective.known) + " ranks that call it",
                  "all " + std::to_string(pending_collective.members) + " members of the group");
  for (const PendingMessage& pending_message : pending_messages_)
    if (pending_message.sender.empty() || pending_message.receiver.empty())
      throw Error("plan", pending_message.sender + pending_message.receiver, "an exchange that nobody answers",
                  pending_message.sender.empty() ? "a send" : "a receive");
}

std::unique_ptr<StreamTask> ThreadCommunicator::collective(const CollectiveCall& call) {
  check_call(call);
  check_host_algorithm(call);
  const auto own = std::find(call.members.begin(), call.members.end(), rank_);
  if (own == call.members.end()) throw Error("plan", call.where, "a group without the rank", "one of its own groups");
  ThreadMeetings::PendingCollective& pending_collective = meetings_.pending_collective(call);
  const auto member = static_cast<std::size_t>(own - call.members.begin());
  if (RoundWalk::wanted(call)) return std::make_unique<ThreadMeetings::RoundsTask>(call, meetings_, pending_collective, member);
  return std::make_unique<ThreadMeetings::CollectiveTask>(call, pending_collective, meetings_.stop_, member);
}

std::unique_ptr<StreamTask> ThreadCommunicator::exchange(const ExchangeCall& call) {
  ThreadMeetings::PendingMessage *out = nullptr, *in = nullptr;
  if (call.to.valid()) out = &meetings_.pending_message(rank_, call.to, call.tag, call.sent, call.send.bytes, true, call.where);
  if (call.from.valid())
    in = &meetings_.pending_message(call.from, rank_, call.tag, call.received, call.receive.bytes, false, call.where);
  return std::make_unique<ThreadMeetings::ExchangeTask>(call, out, in, meetings_.stop_);
}

}  // namespace foreshard
