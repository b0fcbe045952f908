// The arithmetic of the codes of core/op/codec.h, part by part. Used by exec/host/host_encode.cpp, and by tests as the reference.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/op/codec.h"

namespace foreshard::host {

// Encodes a part of `length` elements, of which x are the first; the others are padding. `left`: what the code leaves out of x, x less what
// decode_part makes of it; may be null.
template <class T>
void encode_part(const ops::CodeForm& form, std::span<const T> x, std::int64_t length, std::byte* codes, T* left);

// The first elements of such a part are added to `y`, or overwrite it.
template <class T>
void decode_part(const ops::CodeForm& form, const std::byte* codes, std::int64_t length, bool add, std::span<T> y);

// Borders of segments, so that rounding each number to the middle of its level has a small mean squared error.
//
//   segments 0   -m, -c, 0, c, m with m the largest size: c is the best of 4095 places (centre and two tails)
//   else         from the smallest to the largest number, by a dynamic program over at most 255 inner places: each 32nd of 4096 equal bins,
//                and the bins where the share of smaller numbers passes a multiple of 1/128
//
// The error of a segment of n numbers is taken as n width^2 / (12 levels^2). Counts and widths are whole numbers, so that every backend
// finds the same borders; of equal errors the lowest places.
inline constexpr std::int64_t kMostSegments = 16;
struct SegmentBorders {
  std::array<float, kMostSegments + 1> at = {};
};
template <class T>
SegmentBorders choose_segments(const ops::CodeForm& form, std::span<const T> x);

}  // namespace foreshard::host
