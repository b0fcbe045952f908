// Quantities as types: a raw number gets its unit where it enters and loses it where it leaves.
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>

namespace foreshard {

struct Bytes {
  std::int64_t value = 0;
  auto operator<=>(const Bytes&) const = default;
  constexpr Bytes& operator+=(Bytes b) {
    value += b.value;
    return *this;
  }
  constexpr Bytes& operator-=(Bytes b) {
    value -= b.value;
    return *this;
  }
};
constexpr Bytes operator+(Bytes a, Bytes b) { return {a.value + b.value}; }
constexpr Bytes operator-(Bytes a, Bytes b) { return {a.value - b.value}; }
constexpr Bytes operator-(Bytes a) { return {-a.value}; }
constexpr Bytes operator*(Bytes a, std::int64_t n) { return {a.value * n}; }
constexpr Bytes operator*(std::int64_t n, Bytes a) { return {a.value * n}; }
constexpr double in_gib(Bytes a) { return static_cast<double>(a.value) / (1024.0 * 1024.0 * 1024.0); }

struct Flops {
  double value = 0;
  auto operator<=>(const Flops&) const = default;
  constexpr Flops& operator+=(Flops b) {
    value += b.value;
    return *this;
  }
};
constexpr Flops operator+(Flops a, Flops b) { return {a.value + b.value}; }
constexpr Flops operator*(Flops a, double n) { return {a.value * n}; }
constexpr Flops operator*(double n, Flops a) { return {a.value * n}; }

// Durations while they are being computed; a Trace holds Nanoseconds.
struct Seconds {
  double value = 0;
  auto operator<=>(const Seconds&) const = default;
  constexpr Seconds& operator+=(Seconds b) {
    value += b.value;
    return *this;
  }
};
constexpr Seconds operator+(Seconds a, Seconds b) { return {a.value + b.value}; }
constexpr Seconds operator-(Seconds a, Seconds b) { return {a.value - b.value}; }
constexpr Seconds operator*(Seconds a, double n) { return {a.value * n}; }
constexpr Seconds operator*(double n, Seconds a) { return {a.value * n}; }
constexpr Seconds max(Seconds a, Seconds b) { return a < b ? b : a; }

struct Nanoseconds {
  std::int64_t value = 0;
  auto operator<=>(const Nanoseconds&) const = default;
  constexpr Nanoseconds& operator+=(Nanoseconds b) {
    value += b.value;
    return *this;
  }
};
constexpr Nanoseconds operator+(Nanoseconds a, Nanoseconds b) { return {a.value + b.value}; }
constexpr Nanoseconds operator-(Nanoseconds a, Nanoseconds b) { return {a.value - b.value}; }
constexpr Nanoseconds operator*(Nanoseconds a, std::int64_t n) { return {a.value * n}; }
inline Nanoseconds to_nanoseconds(Seconds s) { return {std::llround(s.value * 1e9)}; }
constexpr Seconds to_seconds(Nanoseconds n) { return {static_cast<double>(n.value) * 1e-9}; }

struct BytesPerSecond {
  double value = 0;
  auto operator<=>(const BytesPerSecond&) const = default;
};
constexpr BytesPerSecond operator*(BytesPerSecond a, double n) { return {a.value * n}; }
constexpr Seconds operator/(Bytes a, BytesPerSecond b) { return {static_cast<double>(a.value) / b.value}; }

struct FlopsPerSecond {
  double value = 0;
  auto operator<=>(const FlopsPerSecond&) const = default;
};
constexpr FlopsPerSecond operator*(FlopsPerSecond a, double n) { return {a.value * n}; }
constexpr Seconds operator/(Flops a, FlopsPerSecond b) { return {a.value / b.value}; }

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t multiple) { return ceil_div(a, multiple) * multiple; }

}  // namespace foreshard
