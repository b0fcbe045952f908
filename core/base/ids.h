// Strong indices. An Id is the position of an element in the vector that owns it, typed by what it refers to; -1 refers to nothing.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace foreshard {

template <class Tag>
struct Id {
  std::int32_t value = -1;
  auto operator<=>(const Id&) const = default;
  constexpr bool valid() const { return value >= 0; }
  constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
};

using AxisId = Id<struct AxisTag>;
using RoleId = Id<struct RoleTag>;
using GroupId = Id<struct GroupTag>;
using StreamId = Id<struct StreamTag>;
using EventId = Id<struct EventTag>;
using BufferId = Id<struct BufferTag>;
using TensorId = Id<struct TensorTag>;
using SegmentId = Id<struct SegmentTag>;
using ParamId = Id<struct ParamTag>;
using LayerId = Id<struct LayerTag>;
using DeviceId = Id<struct DeviceTag>;  // a GPU of the cluster: node * gpus_per_node + local index
using RankId = Id<struct RankTag>;
using LinkId = Id<struct LinkTag>;    // one direction of a link of the expanded cluster
using ClassId = Id<struct ClassTag>;  // a class of identical ranks in a folded simulation

}  // namespace foreshard
