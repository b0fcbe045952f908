// How to partition a matrix product y [B, O] = x [B, I] w [I, O] over the n members of a group: by samples (Data), or by columns or rows of
// w. The bytes that a member sends follow from the layouts of the operands only (S(d): split along dimension d, B: broadcast, P: partial
// sum; core/network/tensor_layout.h).
//
//              x     w     y            dx           dw           communicated
//   Data       S(0)  B     S(0)         S(0)         P -> B       gradients of w
//   Columns    B     S(1)  S(1) -> B    P -> B       S(1)         y forward, dx backward
//   Rows       S(1)  S(0)  P -> B       S(1) -> B    S(0)         y forward, dx backward
#pragma once

#include <array>
#include <cstdint>

#include "core/base/units.h"
#include "core/network/tensor_layout.h"

namespace foreshard {

struct MatmulShape {
  std::int64_t batch = 1, in = 1, out = 1;  // B, I, O
  bool operator==(const MatmulShape&) const = default;
};

enum class MatmulPartition : std::uint8_t { Data, Columns, Rows };
inline constexpr std::array kMatmulPartitions = {MatmulPartition::Data, MatmulPartition::Columns, MatmulPartition::Rows};

struct MatmulLayouts {
  TensorLayout x = {}, w = {}, y = {}, dx = {}, dw = {};    // y, dx, dw: as the local products leave them
  TensorLayout y_after = {}, dx_after = {}, dw_after = {};  // after the communication
};
MatmulLayouts layouts_of(MatmulPartition partition);

struct MovedBytes {  // bytes that each member sends
  double forward = 0, backward = 0;
  double sum() const { return forward + backward; }
};
// `element`: bytes of an element of y, dx and dw.
MovedBytes moved_bytes(MatmulPartition partition, const MatmulShape& shape, int members, Bytes element);

// The partition that sends the fewest bytes, forward and backward together; of equal ones the first.
MatmulPartition cheapest_partition(const MatmulShape& shape, int members);

}  // namespace foreshard
