// Axes of ranks. The ranks of a stage form two grids: dense layers see tensor x context x data, expert layers see expert-tensor x
// expert x expert-data. An axis is a factor of both, so that every group of either grid is a set of axes. Every meaning of an axis is
// read from its kinds; its name is for people.
//
//   tensor 2, context 2, data 4, expert 8:   axis   dense    expert        rank = a0 + 2 a1 + 4 a2 + 8 a3
//                                            a0 2   Tensor   Expert
//                                            a1 2   Context  Expert        dense gradients: over a1 a2 a3 (Context, Data)
//                                            a2 2   Data     Expert        expert gradients: over a3 (ExpertData)
//                                            a3 2   Data     ExpertData    tokens go to experts over a0 a1 a2 (Expert)
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/base/ids.h"

namespace foreshard {

enum class Grid : std::uint8_t { Dense, Expert };
enum class DenseKind : std::uint8_t { Tensor, Context, Data, OuterData };  // OuterData: between ZeRO groups
inline constexpr int kDenseKinds = 4;
enum class ExpertKind : std::uint8_t { ExpertTensor, Expert, ExpertData };

struct Axis {
  std::string name = {};
  DenseKind dense = DenseKind::Data;
  ExpertKind expert = ExpertKind::ExpertData;
  int size = 1;
  bool operator==(const Axis&) const = default;
};

// What is said of ranks is said by kinds of axes, so that it holds whatever the degrees: sums, cuts, groups.
using AxisKind = std::variant<DenseKind, ExpertKind>;

// Some of them, in the order in which they were given; at most as many as there are. A value without memory of its own: every tensor and
// every operator has one.
class Kinds {
 public:
  constexpr Kinds() = default;
  constexpr Kinds(std::initializer_list<AxisKind> kinds) {
    FS_ASSERT(kinds.size() <= kinds_.size());
    for (const AxisKind& kind : kinds) kinds_[size_++] = kind;
  }
  constexpr const AxisKind* begin() const { return kinds_.data(); }
  constexpr const AxisKind* end() const { return kinds_.data() + size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr std::size_t size() const { return size_; }
  bool operator==(const Kinds&) const = default;

 private:
  std::array<AxisKind, 7> kinds_ = {};  // those behind size_ stay as they are made
  std::uint8_t size_ = 0;
};
bool is_of(const Axis& axis, const Kinds& kinds);  // of one of them, in its grid

// Ranks along the axis hold the same tensors of the grid and see other tokens: gradients are summed over it.
bool is_data(const Axis& axis, Grid grid);

// What ranks are counted off by when they take devices, fastest first: each kind of dense axis and (no kind) the role, once.
using RankOrder = std::vector<std::optional<DenseKind>>;
const RankOrder& default_rank_order();     // tensor, context, data, outer data, role: neighbours communicate most
bool is_complete(const RankOrder& order);  // outer data may be left out
// The same order with outer data, if it is not there, behind data.
RankOrder with_outer_data(RankOrder order);
// The axes in that order, an invalid id for the role. `axes` are listed slowest first; those of one kind stay so.
std::vector<AxisId> in_order(const std::vector<Axis>& axes, const RankOrder& order);

// What people call an axis of the kind, on the command line too: tp, cp, dp, dp_outer. A further factor: "tp.2".
const std::vector<std::string>& short_names();  // in the order of the kinds
std::string axis_name(DenseKind kind, int factor = 1);
std::string to_text(const RankOrder& order);  // "tp,cp,dp,dp_outer,role"

}  // namespace foreshard
