#include "validation/measured_limits.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/base/count_text.h"
#include "core/base/error.h"

namespace foreshard {

void expect_heads(const MeasuredRow& row, const Transformer& t) {
  const auto fail = [&](const char* column, const std::string& expected) {
    throw Error(row.where(), column, "\"" + row.text(column) + "\"", expected);
  };
  if (t.head_dim < 1) fail("heads", "at most the hidden size " + row.text("hidden"));
  if (t.heads % t.kv_heads != 0) fail("kv_heads", "a divisor of the " + counted(t.heads, "head"));
  constexpr std::int64_t kMostWidth = 1 << 21;
  if (t.heads * t.head_dim > kMostWidth) fail("head_dim", "heads of at most " + count_text(kMostWidth) + " elements together");
}

void expect_short_pipeline(const MeasuredRow& row, const Strategy& s) {
  constexpr std::int64_t kMostActions = 1 << 20;
  const std::int64_t microbatches = std::max<std::int64_t>(1, s.batch.global / (s.batch.micro * s.dp));
  constexpr std::int64_t kMostMicrobatches = 1 << 16;  // the memory of each is followed
  if (microbatches > kMostMicrobatches)
    throw Error(row.where(), "global_batch",
                "\"" + row.text("global_batch") + "\", " + count_text(microbatches) + " micro-batches",
                "at most " + count_text(kMostMicrobatches) + " in a row that is predicted");
  const std::int64_t actions =
      std::int64_t{s.pp} * s.virtual_stages * std::min<std::int64_t>(microbatches, 4 * std::max(1, s.pp));
  if (actions > kMostActions)
    throw Error(row.where(), s.virtual_stages > 1 ? "vpp" : "pp", count_text(actions) + " forwards of a chunk and micro-batch",
                "at most " + count_text(kMostActions) + " in a row that is predicted");
}

}  // namespace foreshard
