// Layouts of a logical tensor over the n members of a group: split S(dim), broadcast B, partial sum P (OneFlow's SBP; sharding in GSPMD and
// Mesh-TensorFlow). A conversion of a tensor of Z bytes makes each member send `volume`:
//
//   from  to      by                volume          from  to      by                 volume
//   S(i)  B       all-gather        (n-1)/n Z       B     S       taking a part      0
//   P     B       all-reduce        2(n-1)/n Z      B     P       one member keeps   0
//   P     S       reduce-scatter    (n-1)/n Z       S     P       filling with zeros 0
//   S(i)  S(j)    all-to-all        (n-1)/n^2 Z     equal layouts nothing            0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

struct TensorLayout {
  enum class Kind : std::uint8_t {
    Split,      // along a dimension: member m has the m-th of n equal parts
    Broadcast,  // every member has all of it
    Partial     // every member has a tensor of full size; the value is their sum
  };
  Kind kind = Kind::Broadcast;
  int dim = 0;  // of Split
  bool operator==(const TensorLayout&) const = default;
};
constexpr TensorLayout split(int dim) { return {TensorLayout::Kind::Split, dim}; }
constexpr TensorLayout broadcast() { return {}; }
constexpr TensorLayout partial() { return {TensorLayout::Kind::Partial}; }

// The collective that converts; empty: each member converts locally.
std::optional<CollectiveKind> conversion(const TensorLayout& from, const TensorLayout& to);
// Bytes that each member sends, with the ring algorithm.
double conversion_bytes(const TensorLayout& from, const TensorLayout& to, Bytes tensor, int members);

// The elements of the tensor that a member holds, as row-major positions in `shape`, in the order of its memory.
std::vector<std::int64_t> held_elements(const TensorLayout& layout, const std::vector<std::int64_t>& shape, int members,
                                        int member);

// The elements that a member puts into the collective's input, and those that it finds in its output, in order. If no collective is needed,
// `put` is empty and `found` lists the elements that the member keeps; from B to P the first member keeps all and the others keep none
// (their tensors are zero).
struct ConversionOrder {
  std::vector<std::int64_t> put = {}, found = {};
};
ConversionOrder conversion_order(const TensorLayout& from, const TensorLayout& to, const std::vector<std::int64_t>& shape,
                                 int members, int member);

}  // namespace foreshard
