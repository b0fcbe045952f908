#include "exec/communicator/tcp_communicator.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>

#include "core/base/error.h"
#include "exec/arithmetic/host_reduce.h"
#include "exec/communicator/round_walk.h"
#include "exec/communicator/tcp_meeting.h"
#include "exec/communicator/tcp_rounds.h"
#include "exec/host/host_device.h"

namespace foreshard {

using namespace tcp;

namespace {

// A chunk is sent, received and summed as a whole. Its bytes fit into the caches, and are enough that the cost per message is small.
// Regions of at least kLarge bytes have large chunks; in smaller ones, small chunks overlap better.
constexpr std::int64_t kLargeChunk = 512 << 10, kSmallChunk = 256 << 10, kLarge = 2 << 20;
// Lent messages are read and summed in pieces of this size, which stay in the cache of the core.
constexpr std::int64_t kPiece = 128 << 10;
// A rank sends this number of chunks before it sums the first.
constexpr std::int64_t kAhead = 4;
// Buffers for received chunks: a peer is at most this many chunks ahead, so that a receive is posted before its chunk arrives.
constexpr std::int64_t kPlaces = 2 * kAhead + 1;

// The bytes of the operands that one member sums, or sends to one other member, cut into chunks (at least one, possibly empty). `size`:
// bytes of a chunk.
struct Region {
  std::int64_t at = 0, bytes = 0;
  std::int64_t size() const { return bytes >= kLarge ? kLargeChunk : kSmallChunk; }
  std::int64_t chunks() const { return std::max<std::int64_t>(1, ceil_div(bytes, size())); }
  Region chunk(std::int64_t c) const { return {at + c * size(), std::min(size(), bytes - c * size())}; }
};

class CollectiveTask : public MeetingTask {
 public:
  CollectiveTask(const CollectiveCall& call, const RankSender& wire, std::size_t place)
      : MeetingTask(wire, call.members), call_(call), own_(static_cast<std::int64_t>(place)) {
    const std::string name = name_of(call);
    first_ = channel_of(name), second_ = channel_of(name + " result"), third_ = channel_of(name + " done");
    each_ = size_of(call.from.dtype).value;
    members_ = static_cast<std::int64_t>(call.members.size());
    freed_.resize(call.members.size());
  }

 protected:
  RankId member(std::int64_t i) const { return call_.members[static_cast<std::size_t>(i)]; }
  std::int64_t next(std::int64_t i) const { return (own_ + i) % members_; }
  bool in_place() const { return call_.from.data == call_.to.data; }
  std::int64_t part() const { return call_.what.bytes.value / members_; }

  CollectiveCall call_;
  std::int64_t own_ = 0, members_ = 1, each_ = 1;
  // Tells the members whose memory this one has read that it is done, and waits until those that read this one's memory say so: then the
  // operands may change.
  void part_from_neighbours() {
    for (std::int64_t i = 1; i < members_; ++i)
      if (wire_.mesh.lends_to(member(next(i)))) {
        PendingReceive& it = freed_[static_cast<std::size_t>(i)];
        it.from = member(next(i)), it.channel = third_;
        it.post(wire_, nullptr, 0, changed_);
      }
    for (std::int64_t i = 1; i < members_; ++i)
      if (wire_.mesh.borrows_from(member(next(i)))) wire_.send(member(next(i)), third_, nullptr, 0, 0);
    std::int64_t unused = 0;
    for (std::int64_t i = 1; i < members_; ++i)
      if (wire_.mesh.lends_to(member(next(i)))) freed_[static_cast<std::size_t>(i)].await(wire_, unused);
  }
  void forget_neighbours() {
    for (PendingReceive& it : freed_)
      if (it.from.valid()) it.forget(wire_);
  }

  std::uint64_t first_ = 0, second_ = 0, third_ = 0;
  std::vector<PendingReceive> freed_;
  std::condition_variable changed_;
};

// All-reduce, reduce-scatter and reduce without rounds (see RoundWalk::wanted). Every member sums its region chunk by chunk, in the order
// of the members, while the next chunks are on their way. In an all-reduce it sends each summed chunk to all members at once. A rank sends
// and receives 2 (n - 1) / n of the bytes, as in a ring (Patarasu and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations", 2009), but in two rounds instead of 2 (n - 1).
class ReductionTask : public CollectiveTask {
 public:
  ReductionTask(const CollectiveCall& call, const RankSender& wire, std::size_t place) : CollectiveTask(call, wire, place) {
    how_ = call.what.combine;
    accumulate_ = call.what.accumulate;
    const Region own = region(own_);
    const std::int64_t places = std::min(kPlaces, own.chunks()), length = std::min(own.size(), own.bytes);
    for (std::int64_t i = 0; i < members_; ++i) most_chunks_ = std::max(most_chunks_, region(i).chunks());
    const std::int64_t chunks = places * (members_ - 1) * length;
    length_ = std::min(length, kPiece);
    memory_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(chunks + members_ * length_));
    taken_ = memory_.get() + chunks;
    parts_.resize(static_cast<std::size_t>(places * members_));
    sources_.resize(static_cast<std::size_t>(members_));
    for (std::int64_t c = 0; c < places; ++c)
      for (std::int64_t i = 0, at = 0; i < members_; ++i) {
        Part& it = part_at(c, i);
        it.landing.from = member(i), it.landing.channel = first_;
        if (i != own_) it.memory = memory_.get() + (c * (members_ - 1) + at++) * length;
      }
    if (!sliced()) return;
    std::size_t count = 0;
    for (std::int64_t i = 0; i < members_; ++i) count += i == own_ ? 0U : static_cast<std::size_t>(region(i).chunks());
    results_.resize(count);
  }

 private:
  struct Part {
    PendingReceive landing = {};
    std::byte* memory = nullptr;
  };
  Part& part_at(std::int64_t place, std::int64_t i) { return parts_[static_cast<std::size_t>(place * members_ + i)]; }
  std::int64_t places() const { return static_cast<std::int64_t>(parts_.size()) / members_; }
  // Whether each member sums a slice and sends it to the others. An all-reduce that accumulates does not: every member sums the whole
  // tensor, so that the result is rounded only once.
  bool sliced() const { return call_.what.kind == CollectiveKind::AllReduce && !accumulate_; }

  // The region that member i sums.
  Region region(std::int64_t i) const {
    const std::int64_t bytes = call_.what.bytes.value, elements = bytes / each_;
    if (call_.what.kind == CollectiveKind::ReduceScatter) return {part() * i, part()};
    if (call_.what.kind == CollectiveKind::Reduce) return {0, i == 0 ? bytes : 0};
    if (!sliced()) return {0, bytes};
    const std::int64_t first = elements * i / members_ * each_, end = elements * (i + 1) / members_ * each_;
    return {first, end - first};
  }
  std::byte* target() const {  // where byte 0 of the full tensor would lie in the output
    const bool scatters = call_.what.kind == CollectiveKind::ReduceScatter && !in_place();
    return call_.to.data - (scatters ? part() * own_ : 0);
  }

  void meet(TaskTimes& times) override {
    const std::int64_t arrived = times.met, chunks = region(own_).chunks();
    for (std::int64_t c = 0; c < places(); ++c) await_parts(c);
    await_results();
    for (std::int64_t t = 0; t < std::max(most_chunks_, chunks + kAhead); ++t) {
      for (std::int64_t i = 1; i < members_; ++i)
        if (const Region whole = region(next(i)); t < whole.chunks()) {
          const Region out = whole.chunk(t);
          give(member(next(i)), call_.from.data + out.at, out.bytes, arrived);
        }
      if (t >= kAhead && t - kAhead < chunks) sum(t - kAhead, times);
    }
    std::int64_t unused = 0;
    for (PendingReceive& it : results_) it.await(wire_, unused);
    part_from_neighbours();
  }
  void forget() override {
    for (Part& it : parts_) it.landing.forget(wire_);
    for (PendingReceive& it : results_) it.forget(wire_);
    forget_neighbours();
  }

  // An accumulating collective in place overwrites its input while others might still read it, so it sends a copy.
  void give(RankId to, const std::byte* data, std::int64_t bytes, std::int64_t arrived) const {
    if (in_place() && accumulate_)
      wire_.send(to, first_, data, bytes, arrived);
    else
      wire_.lend(to, first_, data, bytes, arrived);
  }

  void await_parts(std::int64_t c) {
    const Region in = region(own_).chunk(c);
    for (std::int64_t i = 0; i < members_; ++i) {
      Part& it = part_at(c % places(), i);
      if (i != own_) it.landing.post(wire_, it.memory, in.bytes, changed_);
    }
  }

  void await_results() {
    if (!sliced()) return;
    auto at = results_.begin();
    for (std::int64_t i = 1; i < members_; ++i)
      for (std::int64_t c = 0; c < region(next(i)).chunks(); ++c, ++at) {
        const Region in = region(next(i)).chunk(c);
        at->from = member(next(i)), at->channel = second_;
        at->post(wire_, call_.to.data + in.at, in.bytes, changed_);
      }
  }

  void sum(std::int64_t c, TaskTimes& times) {
    const Region chunk = region(own_).chunk(c);
    bool lent = false;
    for (std::int64_t i = 0; i < members_; ++i) {
      if (i == own_) continue;
      part_at(c % places(), i).landing.meet(wire_, times.met);
      lent = lent || part_at(c % places(), i).landing.lent();
    }
    const std::int64_t piece = lent ? length_ : std::max<std::int64_t>(chunk.bytes, 1);
    for (std::int64_t at = 0; at < chunk.bytes; at += piece)
      sum_piece(c, {chunk.at + at, std::min(piece, chunk.bytes - at)}, times);
    if (c + places() < region(own_).chunks()) await_parts(c + places());
    for (std::int64_t i = 1; i < members_ && sliced(); ++i)
      wire_.lend(member(next(i)), second_, call_.to.data + chunk.at, chunk.bytes, times.met);
  }

  void sum_piece(std::int64_t c, Region piece, TaskTimes& times) {
    const std::int64_t offset = piece.at - region(own_).chunk(c).at;
    for (std::int64_t i = 0; i < members_; ++i) {
      const std::byte*& source = sources_[static_cast<std::size_t>(i)];
      const PendingReceive& it = part_at(c % places(), i).landing;
      if (i == own_)
        source = call_.from.data + piece.at;
      else if (it.lent())
        source = it.take(wire_, offset, taken_ + i * length_, piece.bytes);
      else
        source = part_at(c % places(), i).memory + offset;
    }
    const std::int64_t before = thread_cpu_time();
    std::byte* to = target() + piece.at;
    reduce(call_.from.dtype, how_, accumulate_, sources_, std::span(&to, 1), 0, piece.bytes / each_);
    times.own += thread_cpu_time() - before;
  }

  std::int64_t most_chunks_ = 0;
  std::int64_t length_ = 0;              // bytes of a piece
  std::unique_ptr<std::byte[]> memory_;  // received chunks; if all messages are lent, its pages are never touched
  std::byte* taken_ = nullptr;           // the end of memory_: [member], pieces read from lent messages
  std::vector<Part> parts_;              // [place][member]
  std::vector<PendingReceive> results_;
  std::vector<const std::byte*> sources_;
  Combine how_ = Combine::Sum;
  bool accumulate_ = false;
};

// All-gather, broadcast, all-to-all: every byte is sent directly to its final place.
class GatherTask : public CollectiveTask {
 public:
  GatherTask(const CollectiveCall& call, const RankSender& wire, std::size_t place) : CollectiveTask(call, wire, place) {
    for (std::int64_t i = 1; i < members_; ++i)
      for (std::int64_t c = 0; c < incoming(next(i)).chunks(); ++c)
        landings_.push_back({.from = member(next(i)), .channel = first_});
  }

 private:
  Region outgoing(std::int64_t to) const {  // in the input
    switch (call_.what.kind) {
      case CollectiveKind::AllGather: return {in_place() ? part() * own_ : 0, part()};
      case CollectiveKind::AllToAll: return {part() * to, part()};
      case CollectiveKind::Broadcast: return {0, own_ == 0 && to != 0 ? call_.what.bytes.value : 0};
      case CollectiveKind::AllReduce:
      case CollectiveKind::ReduceScatter:
      case CollectiveKind::Reduce: return {};
    }
    return {};
  }
  Region incoming(std::int64_t from) const {  // in the output
    if (call_.what.kind == CollectiveKind::Broadcast) return {0, from == 0 && own_ != 0 ? call_.what.bytes.value : 0};
    return {part() * from, part()};
  }

  void meet(TaskTimes& times) override {
    const std::int64_t arrived = times.met;
    // An all-to-all in place overwrites what it has yet to send, so its receives are posted after its sends.
    const bool late = overwrites();
    if (!late) post();
    std::int64_t most = 0;
    for (std::int64_t i = 1; i < members_; ++i) most = std::max(most, outgoing(next(i)).chunks());
    for (std::int64_t c = 0; c < most; ++c)
      for (std::int64_t i = 1; i < members_; ++i)
        if (const Region whole = outgoing(next(i)); c < whole.chunks())
          give(member(next(i)), call_.from.data + whole.chunk(c).at, whole.chunk(c).bytes, arrived);
    if (late) post();
    keep_own(times);
    for (PendingReceive& it : landings_) it.await(wire_, times.met);
    part_from_neighbours();
  }
  void forget() override {
    for (PendingReceive& it : landings_) it.forget(wire_);
    forget_neighbours();
  }

  bool overwrites() const { return call_.what.kind == CollectiveKind::AllToAll && in_place(); }
  void give(RankId to, const std::byte* data, std::int64_t bytes, std::int64_t arrived) const {
    if (overwrites())
      wire_.send(to, first_, data, bytes, arrived);
    else
      wire_.lend(to, first_, data, bytes, arrived);
  }

  void post() {
    auto at = landings_.begin();
    for (std::int64_t i = 1; i < members_; ++i)
      for (std::int64_t c = 0; c < incoming(next(i)).chunks(); ++c, ++at) {
        const Region in = incoming(next(i)).chunk(c);
        at->post(wire_, call_.to.data + in.at, in.bytes, changed_);
      }
  }

  void keep_own(TaskTimes& times) const {
    const bool whole = call_.what.kind == CollectiveKind::Broadcast;
    if (whole && own_ != 0) return;
    const std::byte* from = call_.from.data + (whole ? 0 : outgoing(own_).at);
    std::byte* to = call_.to.data + (whole ? 0 : part() * own_);
    const std::int64_t before = thread_cpu_time();
    if (to != from) std::memcpy(to, from, static_cast<std::size_t>(whole ? call_.what.bytes.value : part()));
    times.own += thread_cpu_time() - before;
  }

  std::vector<PendingReceive> landings_;
};

// The receiver confirms the message to the sender, so that both know the time at which both had arrived.
class ExchangeTask : public MeetingTask {
 public:
  ExchangeTask(const ExchangeCall& call, const RankSender& wire)
      : MeetingTask(wire, std::array{call.from, call.to}), call_(call) {
    const std::string name = "exchange " + call.tag + " ";
    out_ = channel_of(name + std::to_string(call.sent));
    taken_in_ = channel_of(name + "taken " + std::to_string(call.received));
    message_.from = call.from, message_.channel = channel_of(name + std::to_string(call.received));
    taken_.from = call.to, taken_.channel = channel_of(name + "taken " + std::to_string(call.sent));
  }

 private:
  void forget() override {
    if (call_.from.valid()) message_.forget(wire_);
    if (call_.to.valid()) taken_.forget(wire_);
  }
  void meet(TaskTimes& times) override {
    const std::int64_t arrived = times.met;
    if (call_.from.valid()) message_.post(wire_, call_.receive.data, call_.receive.bytes.value, changed_);
    if (call_.to.valid()) taken_.post(wire_, nullptr, 0, changed_);
    if (call_.to.valid()) wire_.lend(call_.to, out_, call_.send.data, call_.send.bytes.value, arrived);
    if (call_.from.valid()) {
      message_.await(wire_, times.met);
      wire_.send(call_.from, taken_in_, nullptr, 0, arrived);
    }
    if (call_.to.valid()) taken_.await(wire_, times.met);
  }

  ExchangeCall call_;
  std::uint64_t out_ = 0, taken_in_ = 0;
  PendingReceive message_ = {}, taken_ = {};
  std::condition_variable changed_;
};

}  // namespace

std::unique_ptr<StreamTask> TcpCommunicator::collective(const CollectiveCall& call) {
  check_call(call);
  check_host_algorithm(call);
  const auto own = std::find(call.members.begin(), call.members.end(), rank_);
  if (own == call.members.end()) throw Error("plan", call.where, "a group without the rank", "one of its own groups");
  const auto place = static_cast<std::size_t>(own - call.members.begin());
  const RankSender wire{mesh_, stop_, rank_};
  if (RoundWalk::wanted(call)) return rounds_task(call, wire, place);
  switch (call.what.kind) {
    case CollectiveKind::AllReduce:
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::Reduce: return std::make_unique<ReductionTask>(call, wire, place);
    case CollectiveKind::AllGather:
    case CollectiveKind::Broadcast:
    case CollectiveKind::AllToAll: break;
  }
  return std::make_unique<GatherTask>(call, wire, place);
}

std::unique_ptr<StreamTask> TcpCommunicator::exchange(const ExchangeCall& call) {
  return std::make_unique<ExchangeTask>(call, RankSender{mesh_, stop_, rank_});
}

}  // namespace foreshard
