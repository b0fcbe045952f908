// A matrix product y [B, O] = x [B, I] w [I, O] on n members: by data or by columns or rows of w. What each sends follows from the layouts
// of the operands alone (core/network/tensor_layout.h); nothing is known of fully connected or convolutional layers.
//
//              x     w     y            dx           dw           moved
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
  std::int64_t batch = 1, in = 1, out = 1;
  bool operator==(const MatmulShape&) const = default;
};

enum class MatmulPartition : std::uint8_t { Data, Columns, Rows };
inline constexpr std::array kMatmulPartitions = {MatmulPartition::Data, MatmulPartition::Columns, MatmulPartition::Rows};

struct MatmulLayouts {
  TensorLayout x = {}, w = {}, y = {}, dx = {}, dw = {};  // as the products make them
  TensorLayout y_after = {}, dx_after = {}, dw_after = {};
};
MatmulLayouts layouts_of(MatmulPartition partition);

struct MovedBytes {  // out of each member
  double forward = 0, backward = 0;
  double sum() const { return forward + backward; }
};
MovedBytes moved_bytes(MatmulPartition partition, const MatmulShape& shape, int members, Bytes element);

// The one that moves least; of equals the first.
MatmulPartition cheapest_partition(const MatmulShape& shape, int members);

}  // namespace foreshard
