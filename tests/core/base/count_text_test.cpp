#include "core/base/count_text.h"

#include <gtest/gtest.h>

namespace foreshard {

TEST(CountText, ThousandsAreApartAndOneThingIsNoPlural) {
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(-1234567), "-1,234,567");
  EXPECT_EQ(counted(1, "layer"), "1 layer");
  EXPECT_EQ(counted(0, "layer"), "0 layers");
  EXPECT_EQ(counted(1, "micro-batch", "micro-batches"), "1 micro-batch");
  EXPECT_EQ(counted(2048, "micro-batch", "micro-batches"), "2,048 micro-batches");
}

TEST(CountText, SizesHaveTheUnitThatSaysSomething) {
  EXPECT_EQ(in_size({10 * 1024}), "10.0 KiB");
  EXPECT_EQ(in_size({3 << 19}), "1.50 MiB");
  EXPECT_EQ(in_size({std::int64_t{5} << 29}), "2.50 GiB");
}

}  // namespace foreshard
