// Lanes: the spans of a trace as columns, one lane per class of ranks and kind of work; what the timeline draws and hits.
//
//   compute        [F0====][F1====]      [B0==========]      slices: one per span; a cell is a run of one action
//   in line           #  #    #  #          #    #   #       collectives on the compute stream, drawn on the cells' foot
//   communication     [~~]    [~~]              [~~]         every other stream that communicates; may overlap
//   copy                                 [--]                copies, host and storage
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/plan/plan.h"
#include "core/result/trace.h"
#include "report/causes/bubbles.h"

namespace foreshard {

// What a slice is painted as.
enum class Paint : std::uint8_t {
  Forward,
  Backward,
  WeightGradient,
  Both,
  Update,
  Other,
  InLine,
  Transfer,
  Collective,
  Copy,
  Host
};
inline constexpr int kPaints = 11;
inline constexpr int kShades = 8;  // chunks of a rank that holds several stages; later ones are lighter

enum class LaneKind : std::uint8_t { Compute, InLine, Communication, Copy };
inline constexpr int kLaneKinds = 4;

struct Look {  // of a slice, packed
  Paint paint = Paint::Other;
  std::uint8_t shade = 0;
  bool first = true;  // begins a cell
  bool operator==(const Look&) const = default;
};

struct Lane {
  ClassId who = {};
  LaneKind kind = LaneKind::Compute;
  std::vector<std::int64_t> begin = {}, end = {};  // ns, ordered by begin
  std::vector<std::int64_t> busy = {};             // time with a slice before this one begins
  std::vector<std::int32_t> span = {};             // index in Trace::spans
  std::vector<std::uint8_t> look = {};
  std::int64_t longest = 0;   // ns, of a slice
  std::int64_t last_end = 0;  // ns

  std::size_t size() const { return begin.size(); }
  Look look_of(std::size_t slice) const;
  void push(Nanoseconds from, Nanoseconds to, std::int32_t span_index, Look how);  // in the order of begin
  std::size_t first_after(std::int64_t when) const;                                // no slice before this one ends after `when`
  std::optional<std::size_t> slice_at(std::int64_t when) const;                    // of several the one that began last
  std::int64_t busy_until(std::int64_t when) const;                                // ns with a slice in [0, when)
};

struct Lanes {
  std::vector<Lane> all = {};
  std::vector<std::array<std::int32_t, kLaneKinds>> of_class = {};  // [class][kind]: index in `all`, -1: none
  std::vector<std::int32_t> first_bubble = {};                      // [class], and one more: ranges of the bubbles

  const Lane* find(ClassId who, LaneKind kind) const;
};

Lanes make_lanes(const Plan& plan, const Trace& trace, const std::vector<Bubble>& bubbles);

// The bubble of the class at a moment: its index, -1 when none.
std::int32_t bubble_at(const Lanes& lanes, const std::vector<Bubble>& bubbles, ClassId who, std::int64_t when);

}  // namespace foreshard
