// Volumes of conversions between layouts, and which elements they move.
#include "core/network/tensor_layout.h"

#include <gtest/gtest.h>

#include <set>

namespace foreshard::tensor_layout_test {
namespace {

// The table of the header, for a tensor of Z bytes.
TEST(TensorLayout, VolumesOfConversions) {
  const Bytes bytes{6'720'000};
  const double z = 6'720'000;
  for (const int n : {2, 4, 8}) {
    const double part = (n - 1.0) / n * z;
    EXPECT_DOUBLE_EQ(conversion_bytes(split(0), broadcast(), bytes, n), part);
    EXPECT_DOUBLE_EQ(conversion_bytes(partial(), broadcast(), bytes, n), 2 * part);
    EXPECT_DOUBLE_EQ(conversion_bytes(partial(), split(1), bytes, n), part);
    EXPECT_DOUBLE_EQ(conversion_bytes(split(0), split(1), bytes, n), part / n);
    EXPECT_EQ(conversion_bytes(split(1), split(1), bytes, n), 0);
    for (const TensorLayout& local : {split(0), broadcast(), partial()}) {
      EXPECT_EQ(conversion_bytes(broadcast(), local, bytes, n), 0);
      EXPECT_EQ(conversion_bytes(local, partial(), bytes, n), 0);
    }
  }
}

// 2 x 4, two members: rows, columns, and what moves from one to the other.
TEST(TensorLayout, ElementsOfASplit) {
  using Elements = std::vector<std::int64_t>;
  EXPECT_EQ(held_elements(split(0), {2, 4}, 2, 1), (Elements{4, 5, 6, 7}));
  EXPECT_EQ(held_elements(split(1), {2, 4}, 2, 1), (Elements{2, 3, 6, 7}));
  EXPECT_EQ(held_elements(partial(), {2, 2}, 2, 1), (Elements{0, 1, 2, 3}));
  const ConversionOrder order = conversion_order(split(0), split(1), {2, 4}, 2, 0);
  EXPECT_EQ(order.put, (Elements{0, 1, 2, 3}));    // the first two for member 0, the others for member 1
  EXPECT_EQ(order.found, (Elements{0, 1, 4, 5}));  // from member 0, from member 1
}

// What is found is what the layout holds, each element once; what all put together is what all hold.
TEST(TensorLayout, EveryElementIsMovedOnce) {
  const std::vector<std::int64_t> shape = {8, 4, 8};
  const std::vector<TensorLayout> layouts = {split(0), split(2), broadcast(), partial()};
  for (const int n : {2, 4})
    for (const TensorLayout& from : layouts)
      for (const TensorLayout& to : layouts)
        for (int member = 0; member < n; ++member) {
          const ConversionOrder order = conversion_order(from, to, shape, n, member);
          const auto held = held_elements(from, shape, n, member);
          if (conversion(from, to)) {
            EXPECT_EQ(std::set(order.put.begin(), order.put.end()), std::set(held.begin(), held.end()));
          }
          const auto wanted = held_elements(to, shape, n, member);
          if (to.kind != TensorLayout::Kind::Partial || from == to) {
            EXPECT_EQ(std::multiset(order.found.begin(), order.found.end()), std::multiset(wanted.begin(), wanted.end()));
          }
        }
}

}  // namespace
}  // namespace foreshard::tensor_layout_test
