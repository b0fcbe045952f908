// Numbers that are sent in fewer bytes (docs/compression.md). An array is cut into `parts` parts of one length, each encoded by itself, so
// that every rank of an all-to-all gets a part:
//
//   array     | part 0 | part 1 | ... | part n-1 |       the last part may be shorter
//   payload   | codes 0 | codes 1 | ... | codes n-1 |    each of payload_bytes(code, elements of a part)
//
// What one part of a payload holds:
//   Largest     `kept` numbers (fp32), then their places (int32): the largest by size, of equal ones the first
//   Signs       one fp32 a block of 1024: the mean size; then a bit an element, set for negative numbers
//   EightBits   one fp32 a block of 256: the largest size; then a signed byte an element, 127 for the largest
//   Segments    the `segments` + 1 borders of the segments (fp32); then `bits` an element: segment and level within it
#pragma once

#include <algorithm>

#include "core/base/units.h"
#include "core/op/op.h"

namespace foreshard::ops {

enum class Code : std::uint8_t { Largest, Signs, EightBits, Segments };

struct CodeForm {
  Code code = Code::Segments;
  std::int64_t kept = 0;      // Largest: numbers of a part
  std::int64_t bits = 8;      // Segments: of an element, 2, 4 or 8
  std::int64_t segments = 0;  // Segments: with equally many levels; 0: a centre and two tails
  std::int64_t parts = 1;
  bool operator==(const CodeForm&) const = default;

  static constexpr std::int64_t kSignBlock = 1024, kByteBlock = 256;
  // A centre with half of the levels and two tails with a quarter each are four segments with equally many levels.
  std::int64_t equal_segments() const { return segments == 0 ? 4 : segments; }
  std::int64_t levels() const { return (std::int64_t{1} << bits) / equal_segments(); }  // of a segment
  // Of a part of an array: whole words of 32 signs, so that codes of a part are whole words too.
  std::int64_t part_elements(std::int64_t elements) const {
    return parts == 1 ? elements : round_up(ceil_div(elements, parts), 32);
  }
  std::int64_t first_of(std::int64_t part, std::int64_t elements) const {
    return std::min(elements, part * part_elements(elements));
  }
  Bytes part_bytes(std::int64_t elements) const {  // `elements`: of a part
    switch (code) {
      case Code::Largest: return {8 * kept};
      case Code::Signs: return {4 * ceil_div(elements, kSignBlock) + 4 * ceil_div(elements, 32)};
      case Code::EightBits: return {4 * ceil_div(elements, kByteBlock) + round_up(elements, 4)};
      case Code::Segments: return {4 * (equal_segments() + 1) + round_up(ceil_div(elements * bits, 8), 4)};
    }
    return {};
  }
  Bytes payload(std::int64_t elements) const { return part_bytes(part_elements(elements)) * parts; }

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("code", self.code), visit("kept", self.kept), visit("bits", self.bits), visit("segments", self.segments);
    visit("parts", self.parts);
  }
};

// x, [moment], [what was left out], [velocity] -> payload, [what is left out], [velocity]; shapes {elements}. With a slice: of the part that
// belongs to the rank's place in that group, all operands being of that part.
//
//   feedback   what earlier runs left out is added to x, and what the code leaves out is kept for the next (Seide et al. 2014)
//   velocity   u = momentum u + x is added to what was left out instead of x; places that are sent begin at 0 again
//              (Lin et al. 2018, algorithm 4: momentum correction and factor masking)
//   averaging  instead of x: this rank's share of the next first moment of Adam, beta1 m / averaging + (1 - beta1) x; `averaging` is the number of ranks
//              (Tang et al. 2021, algorithm 1); the moment m is the second read. 0: x
struct Encode : Laws {
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
  // `each`: bytes of a number of x. States are fp32. Passes over the array: the largest are found digit by digit of their size, four times
  // eight bits; scales and segments need the sizes first.
  OpWork work(std::int64_t elements, Bytes each, Bytes payload) const {
    const Bytes states = Bytes{4} * ((feedback ? 1 : 0) + (velocity ? 1 : 0));
    const Bytes moment = averaging > 0 ? Bytes{4} : Bytes{};
    const std::int64_t again = form.code == Code::Largest ? 4 : form.code == Code::Segments ? 2 : 1;
    const Bytes value = feedback || velocity ? Bytes{4} : each;  // what a later pass reads
    const double flops = form.code == Code::Segments ? 12 : 6;
    return {{flops * static_cast<double>(elements)}, (each + moment + states * 2 + value * again) * elements + payload};
  }
  bool operator==(const Encode&) const = default;
};

// payload -> y; shapes {elements}. `adds`: the parts of the payload are of the same elements, one of each rank, and y is their sum: all
// elements, or with a slice the part that belongs to the rank's place in that group.
struct Decode : Laws {
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
  OpWork work(std::int64_t elements, Bytes each, Bytes payload) const {  // elements of y
    const double times = adds ? static_cast<double>(form.parts) : 1;
    return {{2 * times * static_cast<double>(elements)}, each * elements + payload};
  }
  bool operator==(const Decode&) const = default;
};

}  // namespace foreshard::ops
