// Lanes: the spans of a trace in columns (arrays), one lane per class of ranks and kind of work. The timeline draws them and finds in
// them what lies under the mouse.
//
//   compute        [F0====][F1====]      [B0==========]      a slice per span; consecutive slices of an action form a cell
//   in line           #  #    #  #          #    #   #       collectives on the compute stream, drawn at the lower edge of the cells
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

// The kind of work that decides the colour of a slice. InLine: a collective on the compute stream. Transfer: an exchange between stages.
// Both: a forward and a backward in one action (the glossary's cell). Dispatch and Combine: a collective, on any stream, that sends tokens
// to their experts, or results of experts back.
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
  Host,
  Dispatch,
  Combine
};
inline constexpr int kPaints = 13;
inline constexpr int kShades = 8;  // of a paint, one per chunk of the rank; later chunks are lighter

enum class LaneKind : std::uint8_t { Compute, InLine, Communication, Copy };
inline constexpr int kLaneKinds = 4;

struct Look {  // how a slice is painted; Lane::look packs it into one byte
  Paint paint = Paint::Other;
  std::uint8_t shade = 0;
  bool first = true;  // the slice is the first of a cell
  bool operator==(const Look&) const = default;
};

struct Lane {
  ClassId who = {};
  LaneKind kind = LaneKind::Compute;
  std::vector<std::int64_t> begin = {}, end = {};  // ns, ordered by begin
  std::vector<std::int64_t> busy = {};             // ns before this slice begins that any slice covers
  std::vector<std::int32_t> span = {};             // index in Trace::spans
  std::vector<std::uint8_t> look = {};             // packed, see look_of
  std::int64_t longest = 0;                        // duration of the longest slice, ns
  std::int64_t last_end = 0;                       // latest end of a slice, ns

  std::size_t size() const { return begin.size(); }
  Look look_of(std::size_t slice) const;
  void push(Nanoseconds from, Nanoseconds to, std::int32_t span_index, Look how);  // appends; call in the order of begin
  std::size_t first_after(std::int64_t when) const;              // a slice before which none ends after `when`, ns
  std::optional<std::size_t> slice_at(std::int64_t when) const;  // at `when`, ns; of several the last to begin
  std::int64_t busy_until(std::int64_t when) const;              // ns of [0, when) that any slice covers
};

struct Lanes {
  std::vector<Lane> all = {};
  std::vector<std::array<std::int32_t, kLaneKinds>> of_class = {};  // [class][kind]: index in `all`, -1: none
  std::vector<std::int32_t> first_bubble = {};                      // [class + 1]: index of the class's first bubble

  const Lane* find(ClassId who, LaneKind kind) const;
};

Lanes make_lanes(const Plan& plan, const Trace& trace, const std::vector<Bubble>& bubbles);

// The index of the bubble of the class at `when` (ns); -1: none.
std::int32_t bubble_at(const Lanes& lanes, const std::vector<Bubble>& bubbles, ClassId who, std::int64_t when);

}  // namespace foreshard
