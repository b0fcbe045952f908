// Layouts of a logical tensor over the n members of a group, and conversions between them (OneFlow's SBP; GSPMD, Mesh-TensorFlow say
// the same in other words). Of a tensor of Z bytes each member sends:
//
//   from  to      by                volume          from  to      by                 volume
//   S(i)  B       all-gather        (n-1)/n Z       B     S       itself: a part     0
//   P     B       all-reduce        2(n-1)/n Z      B     P       itself: or zeros   0
//   P     S       reduce-scatter    (n-1)/n Z       S     P       itself: or zeros   0
//   S(i)  S(j)    all-to-all        (n-1)/n^2 Z     equal ones    nothing            0
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

// The collective that converts; none: each member does it by itself.
std::optional<CollectiveKind> conversion(const TensorLayout& from, const TensorLayout& to);
// Bytes that leave each member, by a ring where there is a choice.
double conversion_bytes(const TensorLayout& from, const TensorLayout& to, Bytes tensor, int members);

// Elements of the tensor (row-major) that a member holds, in the order in which they lie in its memory.
std::vector<std::int64_t> held_elements(const TensorLayout& layout, const std::vector<std::int64_t>& shape, int members,
                                        int member);

// The elements that a member puts into the collective's input, and finds in its output, in order. Without a collective `put` is empty and
// `found` what it keeps; of a partial result the first member alone keeps what all have, the others zeros.
struct ConversionOrder {
  std::vector<std::int64_t> put = {}, found = {};
};
ConversionOrder conversion_order(const TensorLayout& from, const TensorLayout& to, const std::vector<std::int64_t>& shape,
                                 int members, int member);

}  // namespace foreshard
