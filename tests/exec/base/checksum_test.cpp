// Checksums of tensors: whoever computes which part, in whatever order, the sum is the same; and damage changes it.
#include "exec/base/checksum.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "exec/base/philox.h"

namespace foreshard::checksum_test {
namespace {

std::vector<std::byte> drawn(std::size_t count) {
  std::mt19937 random(1);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

TEST(Checksum, PartsAddUpInAnyOrder) {
  const std::vector<std::byte> bytes = drawn(240);
  for (const std::size_t width : {2U, 4U, 8U}) {
    const std::span<const std::byte> all(bytes);
    const std::uint64_t whole = checksum_of_elements(0, all, width);
    std::uint64_t parts = 0;
    for (const auto& [from, to] : {std::pair{17U, 30U}, std::pair{0U, 3U}, std::pair{3U, 17U}})
      parts += checksum_of_elements(from, all.subspan(from * width, (to - from) * width), width);
    EXPECT_EQ(parts, checksum_of_elements(0, all.first(30 * width), width));
    EXPECT_EQ(whole - parts, checksum_of_elements(30, all.subspan(30 * width), width));
  }
}

// By hand: two elements of two bytes, 0x0201 and 0x0403.
TEST(Checksum, IsTheSumOverTheElements) {
  const std::vector<std::byte> bytes = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  EXPECT_EQ(checksum_of_elements(5, bytes, 2), mix_keys(5, 0x0201) + mix_keys(6, 0x0403));
  EXPECT_EQ(checksum_of_elements(0, {}, 4), 0U);
  EXPECT_EQ(checksum_text(0xAB), "00000000000000ab");
}

// Every single bit, zeroed blocks, two elements exchanged, and zeros, whose number counts.
TEST(Checksum, DamageChangesIt) {
  const std::vector<std::byte> good = drawn(64);
  const std::uint64_t sum = checksum_of_elements(0, good, 4);
  for (std::size_t bit = 0; bit < 64 * 8; ++bit) {
    std::vector<std::byte> bad = good;
    bad[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_NE(checksum_of_elements(0, bad, 4), sum) << bit;
  }
  for (std::size_t from = 0; from < 64; from += 4)
    for (std::size_t to = from + 4; to <= 64; to += 4) {
      std::vector<std::byte> bad = good;
      std::fill(bad.begin() + static_cast<std::ptrdiff_t>(from), bad.begin() + static_cast<std::ptrdiff_t>(to), std::byte{0});
      EXPECT_NE(checksum_of_elements(0, bad, 4), sum) << from << " " << to;
    }
  std::vector<std::byte> bad = good;
  std::swap_ranges(bad.begin(), bad.begin() + 4, bad.begin() + 40);
  EXPECT_NE(checksum_of_elements(0, bad, 4), sum);
  EXPECT_NE(checksum_of_elements(0, std::vector<std::byte>(8), 4), checksum_of_elements(0, std::vector<std::byte>(12), 4));
}

}  // namespace
}  // namespace foreshard::checksum_test
