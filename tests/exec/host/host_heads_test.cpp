// Where heads lie in the rows of attention operands, against a walk over the rows.
#include "exec/host/host_heads.h"

#include <gtest/gtest.h>

#include <map>

#include "core/base/error.h"

namespace foreshard::host::host_heads_test {
namespace {

Form form_of(const Compute& what) { return {.what = what, .reads = {}, .writes = {}}; }

std::string message(const Compute& what) {
  try {
    head_layout(form_of(what), 1, 1, 1, false);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

// Two samples, four query heads of 3 elements that share two key heads; value heads of 2 elements. Rows are [position, sample] of
// 4 * 3 + 2 * 3 + 2 * 2 = 22 elements, [q0 q1 q2 q3 | k0 k1 | v0 v1]:
//
//   element   0   3   6   9   12  15  18  20    of sample 1: 22 further
TEST(HeadLayout, OneOperandByHand) {
  const HeadLayout at{.samples = 2, .queries = 5, .keys = 5, .heads = 4, .kv_heads = 2, .dim = 3, .value_dim = 2};
  EXPECT_EQ(at.query_width(), 22);
  EXPECT_EQ(at.query_at(0, 2), 6);
  EXPECT_EQ(at.query_at(1, 0), 22);
  EXPECT_EQ(at.key_at(0, 1), 12);  // query heads 0 and 1 use key head 0
  EXPECT_EQ(at.key_at(0, 2), 15);
  EXPECT_EQ(at.value_at(0, 3), 20);
  EXPECT_EQ(at.query_stride(), 44);
  EXPECT_EQ(at.context_stride(), 2 * 4 * 2);
  EXPECT_EQ(at.context_at(1, 3), (4 + 3) * 2);
  EXPECT_EQ(at.query_size(), 2 * 5 * 22);
}

// The heads of all samples and positions cover the operands: every element of the queries' and of the keys' operand belongs to one vector.
TEST(HeadLayout, VectorsCoverTheOperands) {
  for (const bool apart : {false, true})
    for (const std::int64_t value_dim : {0, 2, 5})
      for (const std::int64_t kv_heads : {1, 2, 4}) {
        const HeadLayout at{.samples = 3,
                            .queries = 4,
                            .keys = apart ? 6 : 4,
                            .heads = 4,
                            .kv_heads = kv_heads,
                            .dim = 3,
                            .apart = apart,
                            .value_dim = value_dim};
        std::map<std::int64_t, int> in_queries, in_keys;
        std::map<std::int64_t, int>& keys = apart ? in_keys : in_queries;
        for (std::int64_t sample = 0; sample < at.samples; ++sample)
          for (std::int64_t head = 0; head < at.heads; ++head) {
            for (std::int64_t q = 0; q < at.queries; ++q)
              for (std::int64_t d = 0; d < at.dim; ++d) ++in_queries[at.query_at(sample, head) + q * at.query_stride() + d];
            if (head % (at.heads / kv_heads) != 0) {  // shares the key head of the query head before it
              EXPECT_EQ(at.key_at(sample, head), at.key_at(sample, head - 1));
              EXPECT_EQ(at.value_at(sample, head), at.value_at(sample, head - 1));
              continue;
            }
            for (std::int64_t k = 0; k < at.keys; ++k) {
              for (std::int64_t d = 0; d < at.dim; ++d) ++keys[at.key_at(sample, head) + k * at.key_stride() + d];
              for (std::int64_t d = 0; d < at.values(); ++d) ++keys[at.value_at(sample, head) + k * at.key_stride() + d];
            }
          }
        EXPECT_EQ(static_cast<std::int64_t>(in_queries.size()), at.query_size());
        EXPECT_EQ(in_queries.rbegin()->first, at.query_size() - 1);
        if (apart) {
          EXPECT_EQ(static_cast<std::int64_t>(in_keys.size()), at.key_size());
        }
        for (const auto& [element, times] : in_queries) EXPECT_EQ(times, 1) << element;
        for (const auto& [element, times] : in_keys) EXPECT_EQ(times, 1) << element;
      }
}

TEST(HeadLayout, OfAnOperator) {
  const Compute grouped{.op = ops::Attention{.heads = 8, .kv_heads = 2, .dim = 16}};
  const HeadLayout at = head_layout(form_of(grouped), 3, 5, 7, true);
  EXPECT_EQ(at.heads, 8);
  EXPECT_EQ(at.kv_heads, 2);
  EXPECT_EQ(at.keys, 7);
  EXPECT_TRUE(at.apart);
  EXPECT_EQ(at.kv_of(7), 1);
  EXPECT_NE(
      message({.op = ops::Attention{.heads = 8, .kv_heads = 3, .dim = 16}}).find("kv_heads a divisor of heads, and a dim"),
      std::string::npos);
  EXPECT_NE(message({.op = ops::Attention{.heads = 8, .kv_heads = 2}}).find("a dim"), std::string::npos);
}

// 12 maps of 4 heads are 3 samples.
TEST(HeadLayout, SamplesOfMaps) {
  Compute product{.op = ops::Scores{.heads = 4, .kv_heads = 4, .dim = 8}, .shapes = {{{12, 5, 5, 8}}}};
  EXPECT_EQ(samples_of(form_of(product)), 3);
  product.shapes[0].dims[0] = 13;
  EXPECT_THROW(samples_of(form_of(product)), Error);
}

}  // namespace foreshard::host::host_heads_test
