// Operators and settings that GPUs have no kernel for: refused by name, whatever their operands.
#include <gtest/gtest.h>

#include <string>

#include "core/base/error.h"
#include "exec/cuda_ops/gpu_kernel.h"

namespace foreshard::gpu {
namespace {

std::string refusal(const Operation& op, const std::vector<Shape>& shapes) {
  const Compute what = {.op = op, .shapes = shapes};
  try {
    make_kernel(what, {}, {}, {});
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(HostOnlyOperators, AreRefusedByName) {
  using enum ops::Activation::Function;
  const std::vector<Shape> rows = {{.dims = {2, 4, 16}}}, table = {{.dims = {8, 16}}};
  const std::vector<Shape> heads = {{.dims = {2, 4, 2, 8}}, {.dims = {2, 4, 2, 8}}};
  const struct {
    Operation op;
    std::vector<Shape> shapes;
    std::string found;
  } cases[] = {
      {ops::HeadNorm{.heads = 2, .dim = 8}, rows, "\"head_norm\""},
      {ops::LatentHeads{}, rows, "\"latent_heads\""},
      {ops::Scale{.factor = 2}, rows, "\"scale\""},
      {ops::SendOnce{}, rows, "\"send_once\""},
      {ops::Attention{.heads = 2, .kv_heads = 2, .dim = 8, .window = 3}, heads, "window=3"},
      {ops::Attention{.heads = 2, .kv_heads = 2, .dim = 8, .chunk = 3}, heads, "chunk=3"},
      {ops::Attention{.heads = 2, .kv_heads = 2, .dim = 8, .sinks = true}, heads, "sinks"},
      {ops::Attention{.heads = 2, .kv_heads = 2, .dim = 8, .score_cap = 50}, heads, "score_cap=50"},
      {ops::Attention{.heads = 2, .kv_heads = 2, .dim = 8, .scale = 0.5}, heads, "scale=0.5"},
      {ops::Attention{.heads = 2, .kv_heads = 2, .dim = 8, .value_dim = 4}, heads, "value_dim=4"},
      {ops::Rope{.heads = 2, .dim = 8, .rotated = 4}, rows, "rotated=4"},
      {ops::Norm{.around_one = true}, table, "weights around one"},
      {ops::Activation{.function = GeGlu}, table, "geglu"},
      {ops::Activation{.function = ClampedSwiGlu}, table, "clamped_swiglu"},
      {ops::Activation{.function = Cap, .cap = 30}, table, "cap=30"},
  };
  for (const auto& tried : cases) {
    const std::string message = refusal(tried.op, tried.shapes);
    EXPECT_NE(message.find(tried.found), std::string::npos) << message;
    EXPECT_NE(message.find("the host has"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace foreshard::gpu
