// Philox4x32-10, a counter-based random generator: random words are a pure function of a key and a counter (Salmon et al., SC'11, "Parallel
// random numbers: as easy as 1, 2, 3"). With global indices (of samples, elements, ...) as counters, the numbers have the same bits under
// every sharding.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace foreshard {

using PhiloxBlock = std::array<std::uint32_t, 4>;

// Ten rounds; multipliers and key increments as in section 3.4 of the paper.
constexpr PhiloxBlock philox(PhiloxBlock counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0], b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// Block `index` of the sequence `stream`: counter {index, stream}, key {seed}; of each 64-bit number, the low word comes first.
constexpr PhiloxBlock philox(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), static_cast<std::uint32_t>(stream),
                 static_cast<std::uint32_t>(stream >> 32)},
                {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

// out[i] = philox(seed, stream, first + i); faster than one by one.
void philox_words(std::uint64_t seed, std::uint64_t stream, std::uint64_t first, std::span<PhiloxBlock> out);

// An approximately normal number: the scaled sum of eight 16-bit uniform numbers, with mean 0, variance 1 and magnitude at most 4.9. The
// sum is an integer and there is only one multiplication, so the result is equal on every machine.
double standard_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);
// out[i] = standard_normal(seed, stream, first + i); faster than one by one.
void standard_normals(std::uint64_t seed, std::uint64_t stream, std::uint64_t first, std::span<double> out);

// The 64-bit finaliser of MurmurHash3: a bijection whose every output bit depends on every input bit.
constexpr std::uint64_t scramble(std::uint64_t h) {
  h = (h ^ (h >> 33)) * 0xFF51AFD7ED558CCDu;
  h = (h ^ (h >> 33)) * 0xC4CEB9FE1A85EC53u;
  return h ^ (h >> 33);
}

// Combines two keys into one, for example into a `stream`; mix_keys(a, b) differs from mix_keys(b, a).
constexpr std::uint64_t mix_keys(std::uint64_t a, std::uint64_t b) { return scramble(scramble(a + 0x9E3779B97F4A7C15u) + b); }

// The 64-bit FNV-1a hash of a name, for example of a tensor or a layer.
constexpr std::uint64_t name_key(std::string_view name) {
  std::uint64_t h = 0xCBF29CE484222325u;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return h;
}

}  // namespace foreshard
