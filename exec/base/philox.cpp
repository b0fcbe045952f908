#include "exec/base/philox.h"

#include <algorithm>
#include <cmath>

namespace foreshard {

void philox_words(std::uint64_t seed, std::uint64_t stream, std::uint64_t first, std::span<PhiloxBlock> out) {
  constexpr std::size_t lanes = 16;  // number of counters in a vectorised loop
  for (std::size_t at = 0; at < out.size(); at += lanes) {
    std::uint32_t c0[lanes], c1[lanes], c2[lanes], c3[lanes];
    for (std::size_t i = 0; i < lanes; ++i) {
      c0[i] = static_cast<std::uint32_t>(first + at + i);
      c1[i] = static_cast<std::uint32_t>((first + at + i) >> 32);
      c2[i] = static_cast<std::uint32_t>(stream);
      c3[i] = static_cast<std::uint32_t>(stream >> 32);
    }
    std::uint32_t k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
#pragma omp simd
      for (std::size_t i = 0; i < lanes; ++i) {
        const std::uint64_t a = std::uint64_t{0xD2511F53} * c0[i], b = std::uint64_t{0xCD9E8D57} * c2[i];
        c0[i] = static_cast<std::uint32_t>(b >> 32) ^ c1[i] ^ k0;
        c1[i] = static_cast<std::uint32_t>(b);
        c2[i] = static_cast<std::uint32_t>(a >> 32) ^ c3[i] ^ k1;
        c3[i] = static_cast<std::uint32_t>(a);
      }
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    for (std::size_t i = 0; i < lanes && at + i < out.size(); ++i) out[at + i] = {c0[i], c1[i], c2[i], c3[i]};
  }
}

static double standard_normal(const PhiloxBlock& words) {
  std::int64_t sum = 0;
  for (const std::uint32_t word : words) sum += (word & 0xFFFF) + (word >> 16);
  // Twice the distance from the mean, which is no integer; the variance of one uniform number is (2^32 - 1) / 12.
  static const double scale = 1 / (2 * std::sqrt(8 * (0x1p32 - 1) / 12));
  return static_cast<double>(2 * sum - std::int64_t{8} * 0xFFFF) * scale;
}

double standard_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return standard_normal(philox(seed, stream, index));
}

void standard_normals(std::uint64_t seed, std::uint64_t stream, std::uint64_t first, std::span<double> out) {
  std::array<PhiloxBlock, 256> words;
  for (std::size_t at = 0; at < out.size(); at += words.size()) {
    const std::size_t count = std::min(words.size(), out.size() - at);
    philox_words(seed, stream, first + at, {words.data(), count});
    for (std::size_t i = 0; i < count; ++i) out[at + i] = standard_normal(words[i]);
  }
}

}  // namespace foreshard
