#include "strategy/partition/matmul_partition.h"

#include <algorithm>

namespace foreshard {

MatmulLayouts layouts_of(MatmulPartition partition) {
  switch (partition) {
    case MatmulPartition::Data:
      return {.x = split(0),
              .w = broadcast(),
              .y = split(0),
              .dx = split(0),
              .dw = partial(),
              .y_after = split(0),
              .dx_after = split(0)};
    case MatmulPartition::Columns:
      return {.x = broadcast(), .w = split(1), .y = split(1), .dx = partial(), .dw = split(1), .dw_after = split(1)};
    case MatmulPartition::Rows:
      return {.x = split(1), .w = split(0), .y = partial(), .dx = split(1), .dw = split(0), .dw_after = split(0)};
  }
  return {};
}

MovedBytes moved_bytes(MatmulPartition partition, const MatmulShape& shape, int members, Bytes element) {
  const MatmulLayouts of = layouts_of(partition);
  return {.forward = conversion_bytes(of.y, of.y_after, element * (shape.batch * shape.out), members),
          .backward = conversion_bytes(of.dx, of.dx_after, element * (shape.batch * shape.in), members) +
                      conversion_bytes(of.dw, of.dw_after, element * (shape.in * shape.out), members)};
}

MatmulPartition cheapest_partition(const MatmulShape& shape, int members) {
  return *std::ranges::min_element(
      kMatmulPartitions, {}, [&](MatmulPartition partition) { return moved_bytes(partition, shape, members, {1}).sum(); });
}

}  // namespace foreshard
