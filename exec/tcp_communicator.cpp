#include "exec/tcp_communicator.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/error.h"
#include "exec/host_device.h"
#include "exec/host_reduce.h"

namespace foreshard {

namespace {

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// FNV-1a, 64 bits; 0 is kept for what the processes say to each other.
std::uint64_t channel_of(const std::string& words) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : words) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash | 1U;
}

std::string text(std::size_t bytes) { return std::to_string(bytes) + " bytes"; }

struct Wire {
  ProcessMesh& mesh;
  const Stop& stop;
  RankId own = {};

  void send(RankId to, std::uint64_t channel, const std::byte* data, std::int64_t bytes, std::int64_t when) const {
    mesh.send(own, to, channel, {data, static_cast<std::size_t>(bytes)}, when);
  }
  // `bytes`: what has to come.
  ProcessMesh::Message receive(RankId from, std::uint64_t channel, std::int64_t bytes, const std::string& where) const {
    ProcessMesh::Message message = mesh.receive(from, own, channel, stop);
    if (message.bytes.size() != static_cast<std::size_t>(bytes))
      throw Error("plan", where, text(message.bytes.size()) + " from rank " + std::to_string(from.value),
                  text(static_cast<std::size_t>(bytes)));
    return message;
  }
};

class CollectiveTask : public StreamTask {
 public:
  CollectiveTask(const CollectiveCall& call, Wire wire, std::size_t member)
      : call_(call), wire_(wire), own_(static_cast<std::int64_t>(member)) {
    const std::string name = "collective " + std::to_string(call.what.group.value) + " " +
                             std::to_string(call.members.front().value) + " " + std::to_string(call.sequence);
    first_ = channel_of(name), second_ = channel_of(name + " result");
    const std::string& words = call.what.attributes;
    how_ = says(words, "max") ? Reduction::Max : says(words, "mean") ? Reduction::Mean : Reduction::Sum;
    accumulate_ = says(words, "accumulate");
    each_ = size_of(call.from.dtype).value, elements_ = call.what.bytes.value / each_;
    members_ = static_cast<std::int64_t>(call.members.size());
  }

  TaskTimes run(int) override {
    const std::int64_t arrived = now();
    for (std::int64_t i = 1; i < members_; ++i) {
      const std::int64_t to = (own_ + i) % members_;
      const auto [at, bytes] = part_for(to);
      wire_.send(member(to), first_, call_.from.data + at, bytes, arrived);
    }
    TaskTimes times{.met = arrived};
    std::vector<ProcessMesh::Message> parts(static_cast<std::size_t>(members_));
    for (std::int64_t from = 0; from < members_; ++from) {
      if (from == own_) continue;
      parts[static_cast<std::size_t>(from)] = wire_.receive(member(from), first_, part_from(from), call_.where);
      times.met = std::max(times.met, parts[static_cast<std::size_t>(from)].when);
    }
    const std::int64_t before = thread_cpu_time();
    finish(parts);
    times.own = thread_cpu_time() - before;
    return times;
  }

 private:
  using Parts = std::vector<ProcessMesh::Message>;
  RankId member(std::int64_t i) const { return call_.members[static_cast<std::size_t>(i)]; }
  bool in_place() const { return call_.from.data == call_.to.data; }
  // An all-reduce is cut into slices; one that adds to what is there sums everything everywhere, so that it is rounded once.
  bool sliced() const { return call_.what.kind == CollectiveKind::AllReduce && !accumulate_; }
  std::int64_t slice(std::int64_t i) const { return elements_ * i / members_ * each_; }  // where slice i begins, bytes
  std::int64_t part() const { return call_.what.bytes.value / members_; }

  // What of the own source goes to a member: (where, bytes).
  std::pair<std::int64_t, std::int64_t> part_for(std::int64_t to) const {
    switch (call_.what.kind) {
      case CollectiveKind::AllReduce:
        if (sliced()) return {slice(to), slice(to + 1) - slice(to)};
        return {0, call_.what.bytes.value};
      case CollectiveKind::Reduce: return {0, to == 0 ? call_.what.bytes.value : 0};
      case CollectiveKind::ReduceScatter:
      case CollectiveKind::AllToAll: return {part() * to, part()};
      case CollectiveKind::AllGather: return {in_place() ? part() * own_ : 0, part()};
      case CollectiveKind::Broadcast: return {0, own_ == 0 ? call_.what.bytes.value : 0};
    }
    return {};
  }
  std::int64_t part_from(std::int64_t from) const {
    switch (call_.what.kind) {
      case CollectiveKind::AllReduce: return sliced() ? slice(own_ + 1) - slice(own_) : call_.what.bytes.value;
      case CollectiveKind::Reduce: return own_ == 0 ? call_.what.bytes.value : 0;
      case CollectiveKind::ReduceScatter:
      case CollectiveKind::AllToAll:
      case CollectiveKind::AllGather: return part();
      case CollectiveKind::Broadcast: return from == 0 ? call_.what.bytes.value : 0;
    }
    return 0;
  }

  // Sums the parts in the order of the members; the own one lies in the source at `at`.
  void sum(const Parts& parts, std::int64_t at, std::int64_t bytes, std::byte* to) const {
    std::vector<const std::byte*> sources;
    for (std::int64_t i = 0; i < members_; ++i)
      sources.push_back(i == own_ ? call_.from.data + at : parts[static_cast<std::size_t>(i)].bytes.data());
    reduce(call_.from.dtype, how_, accumulate_, sources, std::span(&to, 1), 0, bytes / each_);
  }

  void finish(const Parts& parts) {
    const std::int64_t bytes = call_.what.bytes.value;
    switch (call_.what.kind) {
      case CollectiveKind::AllReduce: {
        if (!sliced()) return sum(parts, 0, bytes, call_.to.data);
        const std::int64_t at = slice(own_), length = slice(own_ + 1) - at;
        sum(parts, at, length, call_.to.data + at);
        spread(at, length);
        return;
      }
      case CollectiveKind::Reduce:
        if (own_ == 0) sum(parts, 0, bytes, call_.to.data);
        return;
      case CollectiveKind::ReduceScatter:
        sum(parts, part() * own_, part(), call_.to.data + (in_place() ? part() * own_ : 0));
        return;
      case CollectiveKind::AllGather:
      case CollectiveKind::AllToAll:
        for (std::int64_t i = 0; i < members_; ++i) {
          const bool gathers = call_.what.kind == CollectiveKind::AllGather;
          const std::int64_t own_at = gathers ? (in_place() ? part() * own_ : 0) : part() * own_;
          const std::byte* source = i == own_ ? call_.from.data + own_at : parts[static_cast<std::size_t>(i)].bytes.data();
          if (std::byte* to = call_.to.data + part() * i; to != source)
            std::memcpy(to, source, static_cast<std::size_t>(part()));
        }
        return;
      case CollectiveKind::Broadcast: {
        const std::byte* source = own_ == 0 ? call_.from.data : parts[0].bytes.data();
        if (source != call_.to.data) std::memcpy(call_.to.data, source, static_cast<std::size_t>(bytes));
        return;
      }
    }
  }

  // Every member gives its slice of the result to all.
  void spread(std::int64_t at, std::int64_t length) const {
    for (std::int64_t i = 1; i < members_; ++i)
      wire_.send(member((own_ + i) % members_), second_, call_.to.data + at, length, now());
    for (std::int64_t from = 0; from < members_; ++from) {
      if (from == own_) continue;
      const std::int64_t there = slice(from), bytes = slice(from + 1) - there;
      const ProcessMesh::Message message = wire_.receive(member(from), second_, bytes, call_.where);
      if (bytes > 0) std::memcpy(call_.to.data + there, message.bytes.data(), static_cast<std::size_t>(bytes));
    }
  }

  CollectiveCall call_;
  Wire wire_;
  std::int64_t own_ = 0, members_ = 1, each_ = 1, elements_ = 0;
  std::uint64_t first_ = 0, second_ = 0;
  Reduction how_ = Reduction::Sum;
  bool accumulate_ = false;
};

// The receiver tells the sender that it has the message; both know then when they met.
class ExchangeTask : public StreamTask {
 public:
  ExchangeTask(const ExchangeCall& call, Wire wire) : call_(call), wire_(wire) {
    const std::string name = "exchange " + call.tag + " ";
    out_ = channel_of(name + std::to_string(call.sent)), in_ = channel_of(name + std::to_string(call.received));
    taken_out_ = channel_of(name + "taken " + std::to_string(call.sent));
    taken_in_ = channel_of(name + "taken " + std::to_string(call.received));
  }

  TaskTimes run(int) override {
    const std::int64_t arrived = now();
    TaskTimes times{.met = arrived};
    if (call_.to.valid()) wire_.send(call_.to, out_, call_.send.data, call_.send.bytes.value, arrived);
    if (call_.from.valid()) {
      const ProcessMesh::Message message = wire_.receive(call_.from, in_, call_.receive.bytes.value, call_.where);
      times.met = std::max(times.met, message.when);
      const std::int64_t before = thread_cpu_time();
      std::memcpy(call_.receive.data, message.bytes.data(), message.bytes.size());
      times.own = thread_cpu_time() - before;
      wire_.send(call_.from, taken_in_, nullptr, 0, arrived);
    }
    if (call_.to.valid()) times.met = std::max(times.met, wire_.receive(call_.to, taken_out_, 0, call_.where).when);
    return times;
  }

 private:
  ExchangeCall call_;
  Wire wire_;
  std::uint64_t out_ = 0, in_ = 0, taken_out_ = 0, taken_in_ = 0;
};

}  // namespace

std::unique_ptr<StreamTask> TcpCommunicator::collective(const CollectiveCall& call) {
  check_call(call);
  const auto own = std::find(call.members.begin(), call.members.end(), rank_);
  if (own == call.members.end()) throw Error("plan", call.where, "a group without the rank", "one of its own groups");
  return std::make_unique<CollectiveTask>(call, Wire{mesh_, stop_, rank_},
                                          static_cast<std::size_t>(own - call.members.begin()));
}

std::unique_ptr<StreamTask> TcpCommunicator::exchange(const ExchangeCall& call) {
  return std::make_unique<ExchangeTask>(call, Wire{mesh_, stop_, rank_});
}

}  // namespace foreshard
