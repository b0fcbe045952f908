// Checksums of 64 bits that find damaged files. The checksum of a tensor is a sum over its elements, modulo 2^64,
//
//   sum over i of h(i, bits of element i)
//
// so ranks that write different elements add what each has computed, in any order (AdHASH: Bellare, Micciancio, "A new paradigm for
// collision-free hashing: incrementality at reduced cost", EUROCRYPT '97, section 5). h is mix_keys of exec/base/philox.h; for a given i it is
// a bijection of the bits, so damage to one element is always found, and any other but once in 2^64. Not against forgery: there is no key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace foreshard {

// What the elements `first`, `first` + 1, ... of a tensor add to its checksum. `bytes`: as they lie in the file, little-endian, `width` bytes
// each (1 to 8).
std::uint64_t checksum_of_elements(std::int64_t first, std::span<const std::byte> bytes, std::size_t width);
std::uint64_t checksum_of_text(std::string_view text);  // FNV-1a: one wrong byte is always found

inline constexpr std::size_t kChecksumDigits = 16;
std::string checksum_text(std::uint64_t checksum);  // 16 hexadecimal digits

}  // namespace foreshard
