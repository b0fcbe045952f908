#include "exec/communicator/round_walk.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/network/algorithms.h"
#include "core/plan/plan_words.h"
#include "exec/arithmetic/host_reduce.h"

namespace foreshard {

namespace {

// The elements of slices and pieces, but for the last, are a multiple of this: CUDA kernels access memory in vectors.
constexpr std::int64_t kWhole = 8;

// Whether slice m is the part of member m.
bool belongs_to_members(CollectiveKind kind) {
  return kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllGather;
}

bool adds_into_own_memory(const Collective& what) {
  switch (what.kind) {
    case CollectiveKind::AllReduce: return what.accumulate;
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::Reduce: return true;
    case CollectiveKind::AllGather:
    case CollectiveKind::Broadcast:
    case CollectiveKind::AllToAll: return false;
  }
  return false;
}

void copy(std::byte* to, const std::byte* from, Bytes bytes) {
  if (to != from && bytes.value > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes.value));
}

}  // namespace

bool RoundWalk::wanted(const CollectiveCall& call) {
  const int members = static_cast<int>(call.members.size());
  if (members < 2 || call.what.kind == CollectiveKind::AllToAll) return false;
  const Algorithm algorithm = algorithm_applies(call.what, members) ? call.what.algorithm : Algorithm::Ring;
  if (algorithm == Algorithm::ParameterServer) return call.what.servers < members;
  return members > 2 || algorithm == Algorithm::Tree || algorithm == Algorithm::GatherToRoot;
}

RoundWalk::RoundWalk(const CollectiveCall& call, std::size_t own, Bytes most, Bytes own_memory)
    : call_(call), own_(static_cast<int>(own)), members_(static_cast<int>(call.members.size())) {
  each_ = size_of(call.from.dtype).value;
  elements_ = call.what.bytes.value / each_;
  own_memory_ = adds_into_own_memory(call.what);
  const CollectiveRounds all = collective_rounds(call.what, members_);
  slices_ = all.slices;
  length_ = ceil_div(elements_, slices_);
  if (!belongs_to_members(call.what.kind)) length_ = round_up(length_, kWhole);
  const std::int64_t longest = std::max<std::int64_t>(1, length_);
  const std::int64_t cap = own_memory_ ? own_memory.value / slices_ : most.value > 0 ? most.value : longest * each_;
  const std::int64_t piece = most.value > 0 ? std::min(cap, most.value) : cap;
  window_ = std::min(std::max<std::int64_t>(piece / each_ / kWhole * kWhole, kWhole), longest);
  windows_ = static_cast<int>(ceil_div(longest, window_));
  FS_ASSERT(this->own_memory() <= own_memory);
  add_rounds(all);
}

void RoundWalk::add_rounds(const CollectiveRounds& all) {
  for (const MessageRound& messages : all.rounds) {
    Round& round = rounds_.emplace_back();
    for (const SliceMessage& message : messages) {
      if (message.from == own_) round.departures.push_back({message.slice, message.to});
      if (message.to != own_) continue;
      auto known = std::ranges::find_if(round.arrivals, [&](const Arrival& arrival) { return arrival.slice == message.slice; });
      if (known == round.arrivals.end()) {
        round.arrivals.push_back({.slice = message.slice, .adds = message.adds});
        known = round.arrivals.end() - 1;
        if (message.adds) known->from.push_back(own_);
      }
      known->from.push_back(message.from);
    }
    for (Arrival& arrival : round.arrivals) std::ranges::sort(arrival.from);
    std::ranges::sort(round.arrivals, {}, &Arrival::slice);  // sender and receiver have the same order of messages
    std::ranges::stable_sort(round.departures, {}, &Departure::slice);
  }
}

std::int64_t RoundWalk::count(int slice, int window) const {
  const std::int64_t length = first(slice + 1) - first(slice);
  return std::clamp<std::int64_t>(length - window * window_, 0, window_);
}

std::byte* RoundWalk::piece(std::byte* base, int slice, int window) const {
  return base + (own_memory_ ? slice * window_ : at(slice, window)) * each_;
}

RoundWalk::Move RoundWalk::own(std::byte* base, int slice, int window) const {
  const CollectiveKind kind = call_.what.kind;
  const bool gathers = kind == CollectiveKind::AllGather, in_place = call_.from.data == call_.to.data;
  if ((kind == CollectiveKind::Broadcast && own_ != 0) || (gathers && slice != own_)) return {};
  const std::byte* from = call_.from.data + at(slice, window) * each_;
  if (gathers && !in_place) from -= first(own_) * each_;
  return {piece(base, slice, window), from, count(slice, window)};
}

RoundWalk::Move RoundWalk::result(std::byte* base, int slice, int window) const {
  const CollectiveKind kind = call_.what.kind;
  const bool mean = call_.what.combine == Combine::Mean, scatters = kind == CollectiveKind::ReduceScatter;
  const bool gathers = kind == CollectiveKind::AllGather || kind == CollectiveKind::Broadcast;
  if (gathers || (!own_memory_ && !mean) || (kind == CollectiveKind::Reduce && own_ != 0)) return {};
  if (scatters && slice != own_) return {};
  std::byte* to = call_.to.data + at(slice, window) * each_;
  if (scatters && call_.from.data != call_.to.data) to -= first(own_) * each_;
  return {to, piece(base, slice, window), count(slice, window)};
}

void begin_window(const RoundWalk& walk, const CollectiveCall& call, std::byte* base, int window) {
  const Bytes each = size_of(call.from.dtype);
  walk.each_own(base, window, [&](const RoundWalk::Move& move) { copy(move.to, move.from, each * move.count); });
}

void receive(const RoundWalk& walk, const CollectiveCall& call, std::byte* base, int window, const RoundWalk::Arrival& arrival,
             std::span<const std::byte* const> sources) {
  std::byte* to = walk.piece(base, arrival.slice, window);
  if (!arrival.adds) return copy(to, sources.front(), walk.bytes(arrival.slice, window));
  reduce(call.from.dtype, walk.meets(), false, sources, std::span(&to, 1), 0, walk.count(arrival.slice, window));
}

void end_window(const RoundWalk& walk, const CollectiveCall& call, std::byte* base, int window) {
  const Combine how = call.what.combine == Combine::Mean ? Combine::Mean : Combine::Sum;
  walk.each_result(base, window, [&](const RoundWalk::Move& move) {
    reduce(call.from.dtype, how, call.what.accumulate, std::span(&move.from, 1), std::span(&move.to, 1), 0, move.count,
           std::ssize(call.members));
  });
}

void check_algorithm(const CollectiveCall& call, std::span<const Algorithm> known, const std::string& whose) {
  const Collective& what = call.what;
  const bool rings = !algorithm_applies(what, static_cast<int>(call.members.size())) || call.members.size() < 2;
  if (rings || what.kind == CollectiveKind::AllToAll || std::ranges::find(known, what.algorithm) != known.end()) return;
  std::string words;
  for (const Algorithm algorithm : known) words += (words.empty() ? "" : ", ") + word(algorithm);
  throw Error("plan", call.where, "a collective by " + word(what.algorithm), words + ": what " + whose + " runs");
}

void check_host_algorithm(const CollectiveCall& call) {
  std::vector<Algorithm> known;
  for (const AlgorithmEntry& entry : algorithm_table())
    if (entry.rounds) known.push_back(entry.algorithm);
  check_algorithm(call, known, "the host");
}

}  // namespace foreshard
