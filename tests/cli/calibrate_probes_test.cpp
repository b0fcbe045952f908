// What `calibrate` measures on a GPU: the sizes that GPUs run, each of them under some way of splitting.
#include "cli/parts/calibrate_probes.h"

#include <gtest/gtest.h>

#include <set>

#include "cli/job/profile.h"
#include "core/cluster_file/cluster_file.h"

namespace foreshard::calibrate_probes_test {

namespace {

std::vector<Plan> probes(std::int64_t largest_hidden, std::int64_t longest, DType dtype = DType::BF16) {
  return gpu_probes(parse_cluster(host_cluster_text({}, 16), "gpus"), {dtype}, largest_hidden, longest);
}

struct Sizes {
  std::set<std::int64_t> heads = {}, sequences = {},
                         products = {};  // head sizes and sequences of attention; depths of products
  std::set<std::string> ops = {};
};

Sizes sizes_of(const std::vector<Plan>& plans) {
  Sizes sizes;
  for (const Plan& plan : plans)
    for (const Segment& segment : plan.segments)
      for (const Instruction& instruction : segment.instructions)
        if (const auto* what = std::get_if<Compute>(&instruction.what)) {
          sizes.ops.insert(word(what->op));
          const std::vector<std::int64_t> dims = dims_of(*what);
          if (const auto* attention = std::get_if<ops::Attention>(&what->op))
            sizes.heads.insert(attention->dim), sizes.sequences.insert(dims[5]);
          if (is<ops::MatMul>(what->op)) sizes.products.insert(dims[3]);
        }
  return sizes;
}

}  // namespace

TEST(GpuProbes, HaveTheSizesThatGpusRun) {
  const std::vector<Plan> all = probes(8192, 32'768);
  const Sizes sizes = sizes_of(all);
  for (const std::int64_t head : {64, 128}) EXPECT_TRUE(sizes.heads.contains(head)) << head;
  for (const std::int64_t keys : {2048, 4096, 8192, 16'384, 32'768}) EXPECT_TRUE(sizes.sequences.contains(keys)) << keys;
  for (const std::int64_t depth : {1024, 1536, 2048, 3072, 4096, 5120, 6144, 8192})
    EXPECT_TRUE(sizes.products.contains(depth)) << depth;
  for (const char* op : {"add", "activation", "rope", "norm", "cross_entropy", "token_embedding", "dropout", "adam"})
    EXPECT_TRUE(sizes.ops.contains(op)) << op;
}

TEST(GpuProbes, AreAsFewAsAsked) {
  EXPECT_EQ(*sizes_of(probes(2048, 2048)).sequences.rbegin(), 2048);
  const Sizes small = sizes_of(probes(64, 32'768));
  EXPECT_EQ(small.heads, std::set<std::int64_t>{16});
  // Other formats have no fast attention: the map of a sequence of at most 4096 lies in memory.
  const Sizes wide = sizes_of(probes(8192, 32'768, DType::F32));
  EXPECT_TRUE(wide.sequences.empty());
  EXPECT_TRUE(wide.ops.contains("scores"));
}

}  // namespace foreshard::calibrate_probes_test
