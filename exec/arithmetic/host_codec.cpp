#include "exec/arithmetic/host_codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/base/error.h"
#include "core/base/float8.h"

namespace foreshard::host {

namespace {

using ops::Code;
using ops::CodeForm;

template <class Number>
void put(std::byte* to, std::int64_t at, Number value) {
  std::memcpy(to + at * static_cast<std::int64_t>(sizeof value), &value, sizeof value);
}
template <class Number>
Number get(const std::byte* from, std::int64_t at) {
  Number value;
  std::memcpy(&value, from + at * static_cast<std::int64_t>(sizeof value), sizeof value);
  return value;
}

template <class T>
void leave(std::int64_t at, std::span<const T> x, T decoded, T* left) {
  if (left) left[at] = x[static_cast<std::size_t>(at)] - decoded;
}

// ---- the largest numbers ------------------------------------------------------------------------------------------------------------

// Keys compare as the magnitudes of their numbers.
template <class T>
std::uint32_t size_key(T value) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(std::abs(value)));
}

// The key of the kept-th largest number, and how many of the numbers with that key are kept. Radix selection, eight bits at a time from the
// highest.
struct LeastKept {
  std::uint32_t key = 0;
  std::int64_t equal = 0;
};
template <class T>
LeastKept least_kept(std::span<const T> x, std::int64_t kept) {
  LeastKept least{.equal = kept};
  for (int shift = 24; shift >= 0; shift -= 8) {
    std::array<std::int64_t, 256> count = {};
    const std::uint64_t above = ~std::uint64_t{0} << (shift + 8);
    for (const T value : x) {
      const std::uint32_t key = size_key(value);
      if ((key & above) == (least.key & above)) ++count[key >> shift & 255U];
    }
    std::uint32_t digit = 255;
    for (; digit > 0 && count[digit] < least.equal; --digit) least.equal -= count[digit];
    least.key |= digit << shift;
  }
  return least;
}

template <class T>
void encode_largest(const CodeForm& form, std::span<const T> x, std::byte* codes, T* left) {
  LeastKept least = least_kept(x, form.kept);
  std::byte* places = codes + 4 * form.kept;
  std::int64_t next = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint32_t key = size_key(x[i]);
    const bool sent = key > least.key || (key == least.key && least.equal-- > 0);
    const auto value = static_cast<float>(x[i]);
    if (left) left[i] = sent ? x[i] - static_cast<T>(value) : x[i];
    if (!sent) continue;
    put(codes, next, value);
    put(places, next++, static_cast<std::int32_t>(i));
  }
  FS_ASSERT(next == form.kept);
}

template <class T>
void decode_largest(const CodeForm& form, const std::byte* codes, bool add, std::span<T> y) {
  if (!add) std::fill(y.begin(), y.end(), T(0));
  for (std::int64_t i = 0; i < form.kept; ++i) {
    const auto at = static_cast<std::size_t>(get<std::int32_t>(codes + 4 * form.kept, i));
    if (at < y.size()) y[at] += static_cast<T>(get<float>(codes, i));
  }
}

// ---- signs, bytes: a scale for each block --------------------------------------------------------------------------------------------

template <class T, class Body>
void for_each_block(std::span<T> x, std::int64_t block, Body&& body) {
  for (std::size_t first = 0, b = 0; first < x.size(); first += static_cast<std::size_t>(block), ++b)
    body(static_cast<std::int64_t>(b), first, x.subspan(first, std::min(x.size() - first, static_cast<std::size_t>(block))));
}

template <class T>
T largest(std::span<const T> block) {
  T most = 0;
  for (const T value : block) most = std::max(most, std::abs(value));
  return most;
}

template <class T>
void encode_signs(std::span<const T> x, std::int64_t length, std::byte* codes, T* left) {
  const auto elements = static_cast<std::int64_t>(x.size());
  std::byte* words = codes + 4 * ceil_div(length, CodeForm::kSignBlock);
  for_each_block(x, CodeForm::kSignBlock, [&](std::int64_t b, std::size_t first, std::span<const T> block) {
    T sum = 0;
    for (const T value : block) sum += std::abs(value);
    const auto scale = static_cast<float>(sum / static_cast<T>(block.size()));
    put(codes, b, scale);
    for (std::size_t i = 0; i < block.size(); ++i)
      leave<T>(static_cast<std::int64_t>(first + i), x, std::signbit(block[i]) ? -T(scale) : T(scale), left);
  });
  for (std::int64_t word = 0; word < ceil_div(length, 32); ++word) {
    std::uint32_t bits = 0;
    for (std::int64_t i = 0; i < std::min<std::int64_t>(32, elements - word * 32); ++i)
      bits |= std::uint32_t{std::signbit(x[static_cast<std::size_t>(word * 32 + i)])} << i;
    put(words, word, bits);
  }
}

template <class T>
void encode_bytes(std::span<const T> x, std::int64_t length, std::byte* codes, T* left) {
  std::byte* bytes = codes + 4 * ceil_div(length, CodeForm::kByteBlock);
  for_each_block(x, CodeForm::kByteBlock, [&](std::int64_t b, std::size_t first, std::span<const T> block) {
    const auto scale = static_cast<float>(largest(block));
    put(codes, b, scale);
    const T steps = scale > 0 ? T(127) / T(scale) : T(0);
    for (std::size_t i = 0; i < block.size(); ++i) {
      const T code = std::clamp(std::nearbyint(block[i] * steps), T(-127), T(127));
      put(bytes, static_cast<std::int64_t>(first + i), static_cast<std::int8_t>(code));
      leave<T>(static_cast<std::int64_t>(first + i), x, code * (T(scale) / T(127)), left);
    }
  });
}

// E4M3, scaled by the largest power of two with which the block's numbers fit (core/base/float8.h).
template <class T>
void encode_floats(std::span<const T> x, std::int64_t length, std::byte* codes, T* left) {
  std::byte* bytes = codes + 4 * ceil_div(length, CodeForm::kFloatBlock);
  for_each_block(x, CodeForm::kFloatBlock, [&](std::int64_t b, std::size_t first, std::span<const T> block) {
    const float scale = float8_scale(static_cast<float>(largest(block)), Float8::E4M3);
    put(codes, b, scale);
    for (std::size_t i = 0; i < block.size(); ++i) {
      const std::uint8_t code = float8_code(static_cast<float>(block[i]) * scale, Float8::E4M3);
      put(bytes, static_cast<std::int64_t>(first + i), code);
      leave<T>(static_cast<std::int64_t>(first + i), x, static_cast<T>(float8_value(code, Float8::E4M3) / scale), left);
    }
  });
}

template <class T>
T decoded_float(const std::byte* codes, const std::byte* bytes, std::int64_t i) {
  return static_cast<T>(float8_value(get<std::uint8_t>(bytes, i), Float8::E4M3) / get<float>(codes, i / CodeForm::kFloatBlock));
}

template <class T>
T decoded_sign(const std::byte* codes, const std::byte* words, std::int64_t i) {
  const T scale = get<float>(codes, i / CodeForm::kSignBlock);
  return get<std::uint32_t>(words, i / 32) >> (i % 32) & 1U ? -scale : scale;
}
template <class T>
T decoded_byte(const std::byte* codes, const std::byte* bytes, std::int64_t i) {
  return static_cast<T>(get<std::int8_t>(bytes, i)) * (T(get<float>(codes, i / CodeForm::kByteBlock)) / T(127));
}

// ---- segments -----------------------------------------------------------------------------------------------------------------------

constexpr std::int64_t kBins = 4096, kShares = 128;
using Below = std::array<std::int64_t, kBins + 1>;  // [bin]: count of numbers in lower bins

template <class T>
struct Range {
  T low = 0, high = 0;
  bool empty() const { return !(high > low) || !std::isfinite(high - low); }
  T border(std::int64_t bin) const {
    return bin == kBins ? high : low + (high - low) * (static_cast<T>(bin) / static_cast<T>(kBins));
  }
};

template <class T>
T seen(T value, bool sizes) {
  return sizes ? std::abs(value) : value;
}

template <class T>
Range<T> range_of(std::span<const T> x, bool sizes) {
  if (x.empty()) return {};
  Range<T> range{sizes ? T(0) : x[0], seen(x[0], sizes)};
  for (const T value : x)
    range.low = std::min(range.low, seen(value, sizes)), range.high = std::max(range.high, seen(value, sizes));
  return range;
}

template <class T>
Below count_bins(std::span<const T> x, const Range<T>& range, bool sizes) {
  Below below = {};
  const T per_bin = static_cast<T>(kBins) / (range.high - range.low);
  for (const T value : x)
    ++below[static_cast<std::size_t>(
        std::clamp<std::int64_t>(static_cast<std::int64_t>((seen(value, sizes) - range.low) * per_bin), 0, kBins - 1) + 1)];
  for (std::size_t bin = 1; bin < below.size(); ++bin) below[bin] += below[bin - 1];
  return below;
}

// The width of the centre, in bins of the magnitude, with the least error. The centre (two segments) has half of the levels, each tail a
// quarter, so all four segments have equally many levels, and the error is proportional to the sum of count * width^2.
std::int64_t best_centre(const Below& below) {
  std::int64_t best = 1;
  std::uint64_t least = ~std::uint64_t{0};
  for (std::int64_t c = 1; c < kBins; ++c) {
    const auto inside = static_cast<std::uint64_t>(below[static_cast<std::size_t>(c)]);
    const auto outside = static_cast<std::uint64_t>(below.back()) - inside;
    const std::uint64_t error =
        inside * static_cast<std::uint64_t>(c * c) + outside * static_cast<std::uint64_t>((kBins - c) * (kBins - c));
    if (error < least) least = error, best = c;
  }
  return best;
}

struct Places {
  std::array<std::int64_t, 2 * kShares + 1> bin = {};
  std::int64_t count = 0;
};

Places border_places(const Below& below) {
  Places places;
  std::int64_t share = 1;
  for (std::int64_t bin = 0; bin <= kBins; ++bin) {
    bool takes = bin % (kBins / kShares) == 0;
    while (share < kShares && below[static_cast<std::size_t>(bin)] * kShares >= share * below.back()) takes = true, ++share;
    if (takes) places.bin[static_cast<std::size_t>(places.count++)] = bin;
  }
  return places;
}

// Dynamic program. After round s, best[j] is the least error of the numbers below place j in s segments; from[s][j] is the place at which
// the last of these segments begins.
void best_segments(const Below& below, std::int64_t segments, std::int64_t* borders) {
  const Places places = border_places(below);
  constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::array<std::uint64_t, 2 * kShares + 1> best, next;
  std::array<std::array<std::int16_t, 2 * kShares + 1>, kMostSegments + 1> from = {};
  best.fill(kNone), best[0] = 0;
  for (std::int64_t s = 1; s <= segments; ++s) {
    next.fill(kNone);
    for (std::int64_t j = s; j < places.count; ++j)
      for (std::int64_t i = s - 1; i < j; ++i) {
        if (best[static_cast<std::size_t>(i)] == kNone) continue;
        const std::int64_t first = places.bin[static_cast<std::size_t>(i)], end = places.bin[static_cast<std::size_t>(j)];
        const auto inside =
            static_cast<std::uint64_t>(below[static_cast<std::size_t>(end)] - below[static_cast<std::size_t>(first)]);
        const std::uint64_t error =
            best[static_cast<std::size_t>(i)] + inside * static_cast<std::uint64_t>((end - first) * (end - first));
        if (error >= next[static_cast<std::size_t>(j)]) continue;
        next[static_cast<std::size_t>(j)] = error;
        from[static_cast<std::size_t>(s)][static_cast<std::size_t>(j)] = static_cast<std::int16_t>(i);
      }
    best = next;
  }
  std::int64_t place = places.count - 1;
  for (std::int64_t s = segments; s > 0; --s) {
    borders[s] = places.bin[static_cast<std::size_t>(place)];
    place = from[static_cast<std::size_t>(s)][static_cast<std::size_t>(place)];
  }
  borders[0] = 0;
}

// The levels of a payload, from its borders, in the arithmetic type.
template <class T>
struct Levels {
  std::array<T, kMostSegments + 1> border = {};
  std::array<T, kMostSegments> step = {};
  std::int64_t segments = 0, levels = 0;

  Levels(const CodeForm& form, const std::byte* codes) : segments(form.equal_segments()), levels(form.levels()) {
    for (std::int64_t s = 0; s <= segments; ++s) border[static_cast<std::size_t>(s)] = T(get<float>(codes, s));
    for (std::size_t s = 0; s < static_cast<std::size_t>(segments); ++s)
      step[s] = (border[s + 1] - border[s]) / static_cast<T>(levels);
  }
  std::int64_t code(T value) const {
    std::size_t s = 0;
    while (static_cast<std::int64_t>(s) + 1 < segments && value >= border[s + 1]) ++s;
    const T at = step[s] > 0 ? (value - border[s]) / step[s] : T(0);
    return static_cast<std::int64_t>(s) * levels + static_cast<std::int64_t>(std::clamp(at, T(0), static_cast<T>(levels - 1)));
  }
  T value(std::int64_t code) const {
    const auto s = static_cast<std::size_t>(code / levels);
    return border[s] + (static_cast<T>(code % levels) + T(0.5)) * step[s];
  }
};

template <class T>
void encode_segments(const CodeForm& form, std::span<const T> x, std::int64_t length, std::byte* codes, T* left) {
  const SegmentBorders borders = choose_segments(form, x);
  for (std::int64_t s = 0; s <= form.equal_segments(); ++s) put(codes, s, borders.at[static_cast<std::size_t>(s)]);
  const Levels<T> levels(form, codes);
  std::byte* packed = codes + 4 * (form.equal_segments() + 1);
  const auto elements = static_cast<std::int64_t>(x.size()), per_byte = 8 / form.bits;
  for (std::int64_t byte = 0; byte < round_up(ceil_div(length, per_byte), 4); ++byte) {
    std::int64_t bits = 0;
    for (std::int64_t i = byte * per_byte; i < std::min(elements, (byte + 1) * per_byte); ++i) {
      const std::int64_t code = levels.code(x[static_cast<std::size_t>(i)]);
      bits |= code << (i % per_byte * form.bits);
      leave<T>(i, x, levels.value(code), left);
    }
    packed[byte] = static_cast<std::byte>(bits);
  }
}

template <class T, class Value>
void decode_each(bool add, std::span<T> y, Value&& value) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = (add ? y[i] : T(0)) + value(static_cast<std::int64_t>(i));
}

}  // namespace

template <class T>
SegmentBorders choose_segments(const CodeForm& form, std::span<const T> x) {
  SegmentBorders borders;
  const bool sizes = form.segments == 0;
  const Range<T> range = range_of(x, sizes);
  const auto at = [&](std::int64_t s, T value) { borders.at[static_cast<std::size_t>(s)] = static_cast<float>(value); };
  if (range.empty()) {
    borders.at.fill(static_cast<float>(range.low));
    if (sizes) at(4, range.high), at(0, -range.high);  // all magnitudes are equal
    return borders;
  }
  const Below below = count_bins(x, range, sizes);
  if (sizes) {
    const T c = range.border(best_centre(below));
    at(0, -range.high), at(1, -c), at(2, T(0)), at(3, c), at(4, range.high);
    return borders;
  }
  std::array<std::int64_t, kMostSegments + 1> bins = {};
  best_segments(below, form.segments, bins.data());
  for (std::int64_t s = 0; s <= form.segments; ++s) at(s, range.border(bins[static_cast<std::size_t>(s)]));
  return borders;
}

template <class T>
void encode_part(const CodeForm& form, std::span<const T> x, std::int64_t length, std::byte* codes, T* left) {
  if (form.code != Code::Largest) std::fill_n(codes, form.part_bytes(length).value, std::byte{0});
  switch (form.code) {
    case Code::Largest: return encode_largest(form, x, codes, left);
    case Code::Signs: return encode_signs(x, length, codes, left);
    case Code::EightBits: return encode_bytes(x, length, codes, left);
    case Code::Segments: return encode_segments(form, x, length, codes, left);
    case Code::Floats: return encode_floats(x, length, codes, left);
  }
}

template <class T>
void decode_part(const CodeForm& form, const std::byte* codes, std::int64_t length, bool add, std::span<T> y) {
  switch (form.code) {
    case Code::Largest: return decode_largest(form, codes, add, y);
    case Code::Signs: {
      const std::byte* words = codes + 4 * ceil_div(length, CodeForm::kSignBlock);
      return decode_each(add, y, [&](std::int64_t i) { return decoded_sign<T>(codes, words, i); });
    }
    case Code::EightBits: {
      const std::byte* bytes = codes + 4 * ceil_div(length, CodeForm::kByteBlock);
      return decode_each(add, y, [&](std::int64_t i) { return decoded_byte<T>(codes, bytes, i); });
    }
    case Code::Floats: {
      const std::byte* bytes = codes + 4 * ceil_div(length, CodeForm::kFloatBlock);
      return decode_each(add, y, [&](std::int64_t i) { return decoded_float<T>(codes, bytes, i); });
    }
    case Code::Segments: {
      const Levels<T> levels(form, codes);
      const std::byte* packed = codes + 4 * (form.equal_segments() + 1);
      const std::int64_t per_byte = 8 / form.bits, mask = (std::int64_t{1} << form.bits) - 1;
      return decode_each(add, y, [&](std::int64_t i) {
        const auto byte = static_cast<std::int64_t>(packed[i / per_byte]);
        return levels.value(byte >> (i % per_byte * form.bits) & mask);
      });
    }
  }
}

template SegmentBorders choose_segments(const CodeForm&, std::span<const float>);
template SegmentBorders choose_segments(const CodeForm&, std::span<const double>);
template void encode_part(const CodeForm&, std::span<const float>, std::int64_t, std::byte*, float*);
template void encode_part(const CodeForm&, std::span<const double>, std::int64_t, std::byte*, double*);
template void decode_part(const CodeForm&, const std::byte*, std::int64_t, bool, std::span<float>);
template void decode_part(const CodeForm&, const std::byte*, std::int64_t, bool, std::span<double>);

}  // namespace foreshard::host
