// Operators that compress numbers before they are sent, and decompress them (docs/compression.md). An array is cut into `parts` parts of
// equal length, and each part is encoded separately, so that an all-to-all can send one part to each rank:
//
//   array     | part 0 | part 1 | ... | part n-1 |       the last part may be shorter
//   payload   | codes 0 | codes 1 | ... | codes n-1 |    each of part_bytes(elements of a part)
//
// One part of a payload holds, by Code:
//   Largest     the `kept` numbers of largest magnitude (fp32; among equal ones the first), then their positions (int32)
//   Signs       one fp32 per block of 1024 elements: the mean magnitude; then one bit per element, set for negative numbers
//   EightBits   one fp32 per block of 256 elements: the largest magnitude; then one signed byte per element, 127 for the largest
//   Floats      one fp32 per block of 128 elements: a power of two; then one E4M3 number per element, the element times it
//   Segments    the `equal_segments` + 1 borders of the segments (fp32); then `bits` bits per element: segment and level within it
#pragma once

#include <algorithm>

#include "core/base/units.h"
#include "core/op/op.h"

namespace foreshard::ops {

enum class Code : std::uint8_t { Largest, Signs, EightBits, Segments, Floats };

struct CodeForm {
  Code code = Code::Segments;
  std::int64_t kept = 0;      // Largest: numbers kept of each part
  std::int64_t bits = 8;      // Segments: bits per element, 2, 4 or 8
  std::int64_t segments = 0;  // Segments: number of segments with equal numbers of levels; 0: a centre and two tails
  std::int64_t parts = 1;     // of the array
  bool operator==(const CodeForm&) const = default;

  static constexpr std::int64_t kSignBlock = 1024, kByteBlock = 256, kFloatBlock = 128;
  // A centre with half of the levels and two tails with a quarter each count as four segments with equal numbers of levels.
  std::int64_t equal_segments() const { return segments == 0 ? 4 : segments; }
  std::int64_t levels() const { return (std::int64_t{1} << bits) / equal_segments(); }  // of a segment
  // Elements of a part of an array of `elements`: a multiple of 32, so that the codes of a part are whole 32-bit words.
  std::int64_t part_elements(std::int64_t elements) const {
    return parts == 1 ? elements : round_up(ceil_div(elements, parts), 32);
  }
  // The first element of a part.
  std::int64_t first_of(std::int64_t part, std::int64_t elements) const {
    return std::min(elements, part * part_elements(elements));
  }
  Bytes part_bytes(std::int64_t elements) const {  // of the codes of a part of `elements`
    switch (code) {
      case Code::Largest: return {8 * kept};
      case Code::Signs: return {4 * ceil_div(elements, kSignBlock) + 4 * ceil_div(elements, 32)};
      case Code::EightBits: return {4 * ceil_div(elements, kByteBlock) + round_up(elements, 4)};
      case Code::Floats: return {4 * ceil_div(elements, kFloatBlock) + round_up(elements, 4)};
      case Code::Segments: return {4 * (equal_segments() + 1) + round_up(ceil_div(elements * bits, 8), 4)};
    }
    return {};
  }
  // Bytes of the payload of an array of `elements`.
  Bytes payload(std::int64_t elements) const { return part_bytes(part_elements(elements)) * parts; }

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("code", self.code), visit("kept", self.kept), visit("bits", self.bits), visit("segments", self.segments);
    visit("parts", self.parts);
  }
};

// Compresses: x, [moment], [residual], [velocity] -> payload, [residual], [velocity]. Shapes {elements}. The operands in brackets exist if
// the settings below need them; the residual is the error of the code. With Compute::slice, all operands are of the part of the array that
// belongs to the rank's position in that group.
//
//   feedback   the residual of earlier runs is added to x, and the new residual is kept for the next run (Seide et al. 2014)
//   velocity   instead of x, u = momentum u + x is added to the residual; elements that are sent start again with u = 0
//              (Lin et al. 2018, algorithm 4: momentum correction and factor masking)
//   averaging  number of ranks; 0: encodes x. Else encodes, instead of x, this rank's share of Adam's next first moment,
//              beta1 m / averaging + (1 - beta1) x, where m is the second operand read (Tang et al. 2021, algorithm 1)
struct Encode : OperatorTraits {
  CodeForm form = {};
  bool feedback = false, velocity = false;
  double momentum = 0;
  std::int64_t averaging = 0;

  static constexpr const char* kWord = "encode";
  static constexpr bool encodes = true;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    CodeForm::fields(self.form, visit);
    visit("feedback", self.feedback), visit("velocity", self.velocity), visit("momentum", self.momentum);
    visit("averaging", self.averaging);
  }
  static PartialSums partial_sums(Phase) { return {.pass = true}; }
  // `each`: bytes of an element of x; `payload`: of the whole payload. Residual and velocity are fp32. The array is read several times:
  // Largest selects by radix, 8 bits of the magnitude in each of four passes; Segments first needs the range.
  OpWork work(std::int64_t elements, Bytes each, Bytes payload) const {
    const Bytes states = Bytes{4} * ((feedback ? 1 : 0) + (velocity ? 1 : 0));
    const Bytes moment = averaging > 0 ? Bytes{4} : Bytes{};
    const std::int64_t again = form.code == Code::Largest ? 4 : form.code == Code::Segments ? 2 : 1;
    const Bytes value = feedback || velocity ? Bytes{4} : each;  // bytes of an element that a later pass reads
    const double flops = form.code == Code::Segments ? 12 : 6;
    return {{flops * static_cast<double>(elements)}, (each + moment + states * 2 + value * again) * elements + payload};
  }
  bool operator==(const Encode&) const = default;
};

// Decompresses: payload -> y. Shapes {elements}. With `adds`, every part of the payload comes from another rank and encodes the same
// elements, and y is the sum of the parts. With Compute::slice, y is the part that belongs to the rank's position in that group.
struct Decode : OperatorTraits {
  CodeForm form = {};
  bool adds = false;

  static constexpr const char* kWord = "decode";
  static constexpr bool decodes = true;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    CodeForm::fields(self.form, visit);
    visit("adds", self.adds);
  }
  PartialSums partial_sums(Phase) const { return {.pass = true}; }
  bool adds_parts() const { return adds; }
  OpWork work(std::int64_t elements, Bytes each, Bytes payload) const {  // `elements`: of y
    const double times = adds ? static_cast<double>(form.parts) : 1;
    return {{2 * times * static_cast<double>(elements)}, each * elements + payload};
  }
  bool operator==(const Decode&) const = default;
};

}  // namespace foreshard::ops
