// Colours of the timeline and the memory curve: lightened Okabe-Ito hues, which colour-blind readers can tell apart, on screen and
// in print. Bubbles differ also by the direction of their hatching, and kinds of work by their letter.
#pragma once

#include <cstdint>
#include <string>

#include "core/plan/plan.h"
#include "core/result/summary.h"

namespace foreshard {

struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Colour&) const = default;
};

// share_of_b: 0 gives `a`, 1 gives `b`.
constexpr Colour mix(Colour a, Colour b, double share_of_b) {
  const auto part = [&](std::uint8_t x, std::uint8_t y) {
    return static_cast<std::uint8_t>(  // NOLINT(bugprone-incorrect-roundings): lround is not constexpr
        static_cast<double>(x) * (1 - share_of_b) + static_cast<double>(y) * share_of_b + 0.5);
  };
  return {part(a.red, b.red), part(a.green, b.green), part(a.blue, b.blue)};
}

inline constexpr Colour kWhite = {255, 255, 255}, kInk = {38, 43, 51}, kFaint = {120, 128, 140}, kRule = {222, 226, 232};
inline constexpr Colour kTransfer = {0, 114, 178}, kCollective = {213, 94, 0}, kCopy = {0, 158, 115};
inline constexpr Colour kInLine = {204, 121, 167};  // a collective on the compute stream
inline constexpr Colour kLimit = {190, 40, 30};

// The kind of work that a cell of the timeline shows.
enum class Cell : std::uint8_t {
  Forward,
  Backward,
  WeightGradient,
  Both,
  Update,
  Other
};  // Both: a forward overlapped with a backward
inline constexpr int kCells = 6;
Cell cell_of(const Action& action);
Colour colour_of(Cell cell);
const char* name_of(Cell cell);
Colour colour_of(BubbleCause cause);
Colour colour_of(Category category);
const char* name_of(Category category);   // as in files
const char* words_of(Category category);  // as in tables and pictures

std::string hex(Colour colour);      // "#56b4e9"
Colour label_on(Colour background);  // ink or white, whichever has the better contrast (WCAG relative luminance)

}  // namespace foreshard
