// Encodes and decodes one part of an array on the CPU. core/op/codec.h describes parts and codes. Used by exec/host/host_encode.cpp, and as
// the reference in tests of the CUDA kernels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/op/codec.h"

namespace foreshard::host {

// Encodes a part of `length` elements: x, then padding. Writes form.part_bytes(length) bytes to `codes`. `left`: receives the residual, x
// minus the decoded x; may be null.
template <class T>
void encode_part(const ops::CodeForm& form, std::span<const T> x, std::int64_t length, std::byte* codes, T* left);

// Decodes the first y.size() elements of a part of `length` elements. `add`: adds them to y; else overwrites y.
template <class T>
void decode_part(const ops::CodeForm& form, const std::byte* codes, std::int64_t length, bool add, std::span<T> y);

// Chooses the borders of the segments of Code::Segments, such that rounding each number to the middle of its level has a small squared
// error. The range of the numbers is cut into 4096 equal bins, and borders lie at bin edges:
//
//   form.segments = 0   borders -m, -c, 0, c, m, where m is the largest magnitude; all 4095 inner edges are tried for c
//   else                from the smallest to the largest number; a dynamic program finds the best inner borders among at
//                       most 255 edges: every 32nd edge, and the edges at which the fraction of smaller numbers passes a
//                       multiple of 1/128
//
// The squared error of a segment with n numbers is estimated as n width^2 / (12 levels^2), the variance of uniform quantization (Bennett,
// "Spectra of quantized signals", 1948). It is computed in integers (counts and widths in bins), so that CPU and GPU find the same borders.
// Among borders with equal error, the lowest is chosen.
inline constexpr std::int64_t kMostSegments = 16;
struct SegmentBorders {
  std::array<float, kMostSegments + 1> at = {};  // ascending; the first equal_segments() + 1 are used
};
template <class T>
SegmentBorders choose_segments(const ops::CodeForm& form, std::span<const T> x);

}  // namespace foreshard::host
