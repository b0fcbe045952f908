#include "core/network/tensor_layout.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/network/network.h"

namespace foreshard {

namespace {

using Elements = std::vector<std::int64_t>;
using Kind = TensorLayout::Kind;

void append(Elements& to, const Elements& more) { to.insert(to.end(), more.begin(), more.end()); }

Elements common(const Elements& some, const Elements& others) {  // both rise
  Elements both;
  std::ranges::set_intersection(some, others, std::back_inserter(both));
  return both;
}

}  // namespace

std::optional<CollectiveKind> conversion(const TensorLayout& from, const TensorLayout& to) {
  if (from == to || from.kind == Kind::Broadcast || to.kind == Kind::Partial) return {};
  if (from.kind == Kind::Split) return to.kind == Kind::Split ? CollectiveKind::AllToAll : CollectiveKind::AllGather;
  return to.kind == Kind::Split ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce;
}

double conversion_bytes(const TensorLayout& from, const TensorLayout& to, Bytes tensor, int members) {
  const auto kind = conversion(from, to);
  if (!kind) return 0;
  const double share = *kind == CollectiveKind::AllToAll ? 1.0 / members : 1.0;  // Collective::bytes: of what a member holds
  return collective_volume(*kind, Algorithm::Ring, tensor, members).bytes * share;
}

Elements held_elements(const TensorLayout& layout, const std::vector<std::int64_t>& shape, int members, int member) {
  const auto all = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  Elements held;
  if (layout.kind != Kind::Split) {
    held.resize(static_cast<std::size_t>(all));
    std::iota(held.begin(), held.end(), 0);
    return held;
  }
  const auto dim = static_cast<std::size_t>(layout.dim);
  FS_ASSERT(dim < shape.size() && shape[dim] % members == 0);
  const auto inner = std::accumulate(shape.begin() + layout.dim + 1, shape.end(), std::int64_t{1}, std::multiplies<>());
  const std::int64_t part = shape[dim] / members * inner, whole = shape[dim] * inner;
  for (std::int64_t outer = 0; outer < all; outer += whole)
    for (std::int64_t i = 0; i < part; ++i) held.push_back(outer + part * member + i);
  return held;
}

ConversionOrder conversion_order(const TensorLayout& from, const TensorLayout& to, const std::vector<std::int64_t>& shape,
                                 int members, int member) {
  const auto held = [&](const TensorLayout& layout, int of) { return held_elements(layout, shape, members, of); };
  const auto kind = conversion(from, to);
  ConversionOrder order;
  if (!kind) {
    const bool keeps = to.kind != Kind::Partial || from.kind != Kind::Broadcast || member == 0;
    if (keeps) order.found = held(to.kind == Kind::Partial ? from : to, member);
    return order;
  }
  switch (*kind) {
    case CollectiveKind::AllGather:
      order.put = held(from, member);
      for (int other = 0; other < members; ++other) append(order.found, held(from, other));
      return order;
    case CollectiveKind::ReduceScatter:
      for (int other = 0; other < members; ++other) append(order.put, held(to, other));
      order.found = held(to, member);
      return order;
    case CollectiveKind::AllToAll:
      for (int other = 0; other < members; ++other) {
        append(order.put, common(held(from, member), held(to, other)));
        append(order.found, common(held(from, other), held(to, member)));
      }
      return order;
    case CollectiveKind::AllReduce:
    case CollectiveKind::Broadcast:
    case CollectiveKind::Reduce: order.put = order.found = held(broadcast(), member); return order;
  }
  return order;
}

}  // namespace foreshard
