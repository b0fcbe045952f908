// RoundWalk: what one member of a group does in the rounds of a collective (core/network/collective_rounds.h): which pieces of the tensor
// it sends and receives in each round, and how it combines what it receives. Each communicator moves the bytes in its own way. All use the
// same RoundWalk, so they all produce the same bits.
//
// All-reduce, all-gather and broadcast overwrite the whole output, so the partial results lie there. Reduce-scatter, reduce and an
// all-reduce that accumulates may not overwrite it: they use a temporary buffer ("own memory"). It holds one window of every slice at a
// time, and all rounds are done for window 0, then for window 1, and so on:
//
//   tensor       | slice 0: window 0, window 1, ... | slice 1: window 0, window 1, ... |
//   own memory   | window w of slice 0 | window w of slice 1 |
//
// A slice is one of the equal parts of the tensor (CollectiveRounds::slices). A piece is one window of one slice: what one message carries.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "core/network/collective_rounds.h"
#include "exec/communicator/communicator.h"

namespace foreshard {

class RoundWalk {
 public:
  static constexpr std::int64_t kOwnMemory = 1 << 20;  // bytes of own memory; few enough to stay in a cache

  // A slice that this member receives in a round. Members are given by their positions in the group.
  struct Arrival {
    int slice = 0;
    std::vector<int> from = {};  // in ascending order: who sends it; if `adds`, also this member, whose own piece is added
    bool adds = false;           // the pieces of all `from` are summed; else the piece of the only sender is copied
  };
  // A slice that this member sends in a round, to member `to`.
  struct Departure {
    int slice = 0, to = 0;
  };
  struct Round {
    std::vector<Arrival> arrivals = {};
    std::vector<Departure> departures = {};
  };

  // Whether the communicators run this collective in rounds. They run the others in one step, in which every member sums or copies its part
  // from all others: an all-to-all, a ring or double tree of two members, and parameter servers if every member is one.
  static bool wanted(const CollectiveCall& call);
  // `own`: position of this member in the group. `most`: largest size of a piece in bytes; 0: no limit, so that without own memory a slice
  // is one piece. `own_memory`: largest size of own memory, in bytes. A piece has at least one element.
  RoundWalk(const CollectiveCall& call, std::size_t own, Bytes most, Bytes own_memory = {kOwnMemory});

  int rounds() const { return static_cast<int>(rounds_.size()); }
  const Round& round(int t) const { return rounds_[static_cast<std::size_t>(t)]; }
  int windows() const { return windows_; }  // windows of a slice
  // Bytes of own memory that it needs; 0: the output is used.
  Bytes own_memory() const { return own_memory_ ? Bytes{each_ * window_ * slices_} : Bytes{}; }
  Bytes bytes(int slice, int window) const { return {count(slice, window) * each_}; }
  // Address of a piece of a member. `base`: where that member's own memory or output begins.
  std::byte* piece(std::byte* base, int slice, int window) const;

  // Calls run(move) for the copies that this member makes before and after the rounds of a window: each_own copies its own data from the
  // input to the pieces, each_result copies the results from the pieces to the output. `base`: as in `piece`.
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
  // How pieces are combined in a round. For a mean that is the sum; the communicator divides it by the number of members in each_result.
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
  // Bytes of an element; elements of the tensor, of a slice, of a window.
  std::int64_t each_ = 1, elements_ = 0, length_ = 0, window_ = 0;
  bool own_memory_ = false;
  std::vector<Round> rounds_ = {};
};

// What is done on the CPU for a window: before the rounds, for each arrival of a round, after the rounds. `base`: as in RoundWalk::piece.
// `sources`: addresses of the pieces of arrival.from, in this order.
void begin_window(const RoundWalk& walk, const CollectiveCall& call, std::byte* base, int window);
void receive(const RoundWalk& walk, const CollectiveCall& call, std::byte* base, int window, const RoundWalk::Arrival& arrival,
             std::span<const std::byte* const> sources);
void end_window(const RoundWalk& walk, const CollectiveCall& call, std::byte* base, int window);

// Throws Error if the plan asks for an algorithm that is not in `known`. `whose` names the communicator in the message. The host
// communicators know all algorithms but NvlinkSharp.
void check_algorithm(const CollectiveCall& call, std::span<const Algorithm> known, const std::string& whose);
void check_host_algorithm(const CollectiveCall& call);

}  // namespace foreshard
