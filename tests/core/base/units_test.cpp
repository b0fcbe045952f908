#include "core/base/units.h"

#include <gtest/gtest.h>

namespace foreshard {

TEST(Units, BytesOverBandwidthIsTime) {
  // 3 GB over 1.5 GB/s = 2 s
  EXPECT_EQ(to_nanoseconds(Bytes{3'000'000'000} / BytesPerSecond{1.5e9}), Nanoseconds{2'000'000'000});
}

TEST(Units, RoundUpGoesToTheNextMultiple) {
  EXPECT_EQ(round_up(50257, 128), 50304);
  EXPECT_EQ(round_up(256, 256), 256);
}

}  // namespace foreshard
