// Axes of ranks. An axis is one parallel dimension of the ranks of a stage. The same ranks form two grids: the dense grid (tensor x
// context x data) for ordinary layers, and the expert grid (expert-tensor x expert x expert-data) for expert layers. An axis is a factor
// of both grids, so that every group of either grid is a set of axes. The kind of an axis in each grid decides what it means; its name is
// for people.
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

// The two grids, and the kinds of an axis in each.
enum class Grid : std::uint8_t { Dense, Expert };
enum class DenseKind : std::uint8_t { Tensor, Context, Data, OuterData };  // OuterData: across ZeRO groups
inline constexpr int kDenseKinds = 4;
// OuterExpert: between the nodes of an expert group, where tokens are sent to nodes first.
enum class ExpertKind : std::uint8_t { ExpertTensor, Expert, ExpertData, OuterExpert };

struct Axis {
  std::string name = {};
  DenseKind dense = DenseKind::Data;
  ExpertKind expert = ExpertKind::ExpertData;
  int size = 1;
  bool operator==(const Axis&) const = default;
};

// Reductions, splits and groups are described by kinds of axes, so that the description does not depend on the degrees.
using AxisKind = std::variant<DenseKind, ExpertKind>;

// A list of up to eight kinds, in the given order. It does not allocate, because every parameter and every communication of an op graph
// has one.
class Kinds {
 public:
  constexpr Kinds() = default;
  constexpr Kinds(std::initializer_list<AxisKind> kinds) {
    FS_ASSERT(kinds.size() <= kinds_.size());
    for (const AxisKind& kind : kinds) kinds_[size_++] = kind;
  }
  constexpr Kinds with(const AxisKind& kind) const {  // this list, and `kind` behind it
    FS_ASSERT(size_ < kinds_.size());
    Kinds longer = *this;
    longer.kinds_[longer.size_++] = kind;
    return longer;
  }
  constexpr const AxisKind* begin() const { return kinds_.data(); }
  constexpr const AxisKind* end() const { return kinds_.data() + size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr std::size_t size() const { return size_; }
  bool operator==(const Kinds&) const = default;

 private:
  std::array<AxisKind, 8> kinds_ = {};  // elements from size_ on keep their default
  std::uint8_t size_ = 0;
};
bool is_of(const Axis& axis, const Kinds& kinds);  // whether the axis is, in the grid of that kind, of one of these kinds

// Whether ranks along the axis hold the same parameters of the grid's layers and see different tokens, so that their gradients are summed.
// In the dense grid that includes Context.
bool is_data(const Axis& axis, Grid grid);

// Whether ranks along the axis hold other experts.
constexpr bool is_of_experts(const Axis& axis) {
  return axis.expert == ExpertKind::Expert || axis.expert == ExpertKind::OuterExpert;
}

// The order in which ranks are laid out over devices, fastest first: each kind of dense axis once, and the role once (an empty element).
using RankOrder = std::vector<std::optional<DenseKind>>;
// Tensor, context, data, outer data, role: ranks that communicate most are neighbours.
const RankOrder& default_rank_order();
bool is_complete(const RankOrder& order);  // each kind and the role once; outer data may be missing
// The same order; if outer data is missing, it is inserted after data.
RankOrder with_outer_data(RankOrder order);
// The axes in this order, fastest first, and an invalid id for the role. `axes` are listed slowest first, also among axes of one kind.
std::vector<AxisId> in_order(const std::vector<Axis>& axes, const RankOrder& order);

// Names of the dense kinds for people and on the command line: tp, cp, dp, dp_outer. If a kind has several axes, the second is "tp.2".
const std::vector<std::string>& short_names();  // in the order of DenseKind
std::string axis_name(DenseKind kind, int factor = 1);
std::string to_text(const RankOrder& order);  // "tp,cp,dp,dp_outer,role"

}  // namespace foreshard
