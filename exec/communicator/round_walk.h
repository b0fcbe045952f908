// What one member does in the rounds of a collective (core/network/collective_rounds.h): which pieces of its memory it sends and receives, and
// the arithmetic of what it receives. How bytes come from one member to another is the communicator's business, so all communicators
// make the same bits.
//
// A collective works in the output where every part of it is written anyway: all-reduce, all-gather, broadcast. Where it may not
// (reduce-scatter, reduce, all-reduce that adds to its output) it works in memory of its own, window by window:
//
//   tensor    | slice 0: window 0, window 1, ... | slice 1: window 0, window 1, ... |
//   own       | window w of slice 0 | window w of slice 1 |
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "core/network/collective_rounds.h"
#include "exec/communicator/communicator.h"

namespace foreshard {

class RoundWalk {
 public:
  static constexpr std::int64_t kOwnMemory = 1 << 20;  // bytes, so that sums stay in a cache

  // Of a slice that comes in a round: all members that contribute to it, this rank among them where it adds its own; in the order of the members.
  struct Arrival {
    int slice = 0;
    std::vector<int> from = {};
    bool adds = false;
  };
  struct Departure {
    int slice = 0, to = 0;
  };
  struct Round {
    std::vector<Arrival> arrivals = {};
    std::vector<Departure> departures = {};
  };

  // A ring or double tree of two members gives each a half to sum, and where all members serve each sums its slice: these, and all-to-all,
  // are done at once, without rounds.
  static bool wanted(const CollectiveCall& call);
  // `most`: bytes of a piece, at least one element; 0: a slice is one piece where no memory of its own is needed. `own_memory`: the most of that.
  RoundWalk(const CollectiveCall& call, std::size_t own, Bytes most, Bytes own_memory = {kOwnMemory});

  int rounds() const { return static_cast<int>(rounds_.size()); }
  const Round& round(int t) const { return rounds_[static_cast<std::size_t>(t)]; }
  int windows() const { return windows_; }
  Bytes own_memory() const { return own_memory_ ? Bytes{each_ * window_ * slices_} : Bytes{}; }
  Bytes bytes(int slice, int window) const { return {count(slice, window) * each_}; }
  // Where the piece lies for a member that works at `base`: in its own memory or its output.
  std::byte* piece(std::byte* base, int slice, int window) const;

  // Of a window, with `base` of this member: what it has itself, and what becomes of the sums in the end.
  struct Move {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    std::int64_t count = 0;  // elements
  };
  template <class Do>
  void each_own(std::byte* base, int window, Do&& run) const {
    for (int slice = 0; slice < slices_; ++slice)
      if (const Move move = own(base, slice, window); move.to != move.from && move.count > 0) run(move);
  }
  template <class Do>
  void each_result(std::byte* base, int window, Do&& run) const {
    for (int slice = 0; slice < slices_; ++slice)
      if (const Move move = result(base, slice, window); move.count > 0) run(move);
  }
  // How pieces that meet are combined; a mean is divided at the end, by the number of members.
  Combine meets() const { return call_.what.combine == Combine::Max ? Combine::Max : Combine::Sum; }
  std::int64_t count(int slice, int window) const;  // elements of a piece

 private:
  Move own(std::byte* base, int slice, int window) const;
  Move result(std::byte* base, int slice, int window) const;
  std::int64_t first(int slice) const { return std::min(elements_, length_ * slice); }
  std::int64_t at(int slice, int window) const { return first(slice) + window * window_; }  // element of the tensor
  void add_rounds(const CollectiveRounds& all);

  CollectiveCall call_;
  int own_ = 0, members_ = 1, slices_ = 1, windows_ = 1;
  std::int64_t each_ = 1, elements_ = 0, length_ = 0, window_ = 0;  // length_: of a slice
  bool own_memory_ = false;
  std::vector<Round> rounds_ = {};
};

// The same on the host: copies and sums. `sources` are the pieces of arrival.from.
void begin_window(const RoundWalk& walk, const CollectiveCall& call, std::byte* base, int window);
void receive(const RoundWalk& walk, const CollectiveCall& call, std::byte* base, int window, const RoundWalk::Arrival& arrival,
             std::span<const std::byte* const> sources);
void end_window(const RoundWalk& walk, const CollectiveCall& call, std::byte* base, int window);

// The host runs all algorithms but NvlinkSharp. Throws Error that names what the plan wants and what `whose` communicator has.
void check_algorithm(const CollectiveCall& call, std::span<const Algorithm> known, const std::string& whose);
void check_host_algorithm(const CollectiveCall& call);

}  // namespace foreshard
