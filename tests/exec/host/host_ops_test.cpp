// What every kernel promises: clear refusals, no allocation while it runs, no dependence on what its workspace held.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>

#include "core/base/error.h"
#include "tests/exec/allocations.h"
#include "tests/exec/host_graph.h"

namespace foreshard::host_ops_test {
namespace {

struct alignas(64) Line {
  std::byte bytes[64];
};

// Runs twice with workspaces full of ones (NaN as floating numbers) and of zeros.
void expect_clean_run(const Compute& what, std::vector<Array> reads, std::vector<Array> writes, const OpArguments& arguments,
                      const std::string& name) {
  std::vector<Operand> from, to;
  for (Array& array : reads) from.push_back(array.operand());
  for (Array& array : writes) to.push_back(array.operand());
  const HostOp op(what, from, to);
  std::vector<Line> workspace(static_cast<std::size_t>(ceil_div(op.workspace().value, 64)) + 1);
  const std::span<std::byte> bytes =
      std::as_writable_bytes(std::span(workspace)).first(static_cast<std::size_t>(op.workspace().value));
  std::memset(workspace.data(), 0xFF, workspace.size() * sizeof(Line));
  const std::int64_t before = allocations_of_thread();
  op.run(from, to, bytes, arguments);
  EXPECT_EQ(allocations_of_thread(), before) << name;
  for (const std::byte byte : workspace.back().bytes) EXPECT_EQ(byte, std::byte{0xFF}) << name << ": past the workspace";
  std::vector<std::vector<double>> first;
  for (const Array& array : writes) first.push_back(array.values());
  std::memset(workspace.data(), 0, workspace.size() * sizeof(Line));
  op.run(from, to, bytes, arguments);
  for (std::size_t i = 0; i < writes.size(); ++i) EXPECT_EQ(writes[i].values(), first[i]) << name;
}

TEST(HostOps, RunsAllocateNothingAndIgnoreTheWorkspace) {
  for (const DType compute : {DType::F64, DType::F32, DType::BF16})
    for (const GraphCase& test : graph_cases(compute)) {
      const OpGraph graph = build_op_graph(test.model, test.sharding);
      for (const LayerGraph& layer : graph.kinds)
        for (const Operator& op : layer.operators) {
          OperatorRun run = random_run(layer, op, arguments_of(test), 5);
          run.forward();
          std::vector<Array> reads = run.inputs;
          reads.insert(reads.end(), run.weights.begin(), run.weights.end());
          const Compute what{.op = op.op, .shapes = op.shapes};
          expect_clean_run(what, reads, run.outputs, run.arguments, test.name + ", " + op.name);
        }
    }
}

TEST(HostOps, FlashBackwardIgnoresTheWorkspace) {
  const std::int64_t s = 70, width = 12;
  const Compute what{.op = ops::Attention{.causal = true, .heads = 2, .kv_heads = 2, .dim = 2, .p = 0.1, .site = 0},
                     .phase = Phase::InputGrad,
                     .shapes = {{{1, s, 2, 2}, DType::F32}, {{1, s, 2, 2}, DType::F32}}};
  expect_clean_run(what,
                   {random_array(s * 4, 1, DType::F32), random_array(s * width, 2, DType::F32),
                    random_array(s * 4, 3, DType::F32), random_array(s * 2, 4, DType::F32)},
                   {Array(s * width, DType::F32)}, {}, "flash backward");
}

TEST(HostOps, UpdatesAllocateNothing) {
  Array gradient = random_array(3000, 1, DType::BF16), master(3000, DType::F32), m = master, v = master, p(3000, DType::BF16);
  const std::vector<Operand> from = {gradient.operand(), master.operand(), m.operand(), v.operand()};
  const std::vector<Operand> to = {master.operand(), m.operand(), v.operand(), p.operand()};
  const HostOp op({.op = ops::Adam{}, .phase = Phase::Update, .shapes = {{{3000}, DType::F32}}}, from, to);
  EXPECT_EQ(op.workspace(), Bytes{0});
  const std::int64_t before = allocations_of_thread();
  op.run(from, to, {}, {});
  EXPECT_EQ(allocations_of_thread(), before);
}

// ---- refusals ----

std::string message_of(const Compute& what, std::vector<Array> reads, std::vector<Array> writes) {
  try {
    run_on(what, reads, writes);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(HostOps, RefusalsNameWhatIsWrong) {
  const Array small = random_array(4, 1), map = random_array(16, 1);
  const auto shapes = [](std::vector<std::int64_t> dims) { return std::vector<Shape>{{std::move(dims), DType::F64}}; };
  EXPECT_EQ(message_of({.op = ops::MatMul{}}, {small, small}, {small}),
            "plan: compute matmul, forward: found 0 shapes, expected at least 1");
  EXPECT_EQ(message_of({.op = ops::MatMul{}, .shapes = shapes({1, 2, 2})}, {small, small}, {small}),
            "plan: compute matmul, forward: found shape 0 of 3 dimensions, expected 4");
  EXPECT_EQ(message_of({.op = ops::MatMul{}, .shapes = shapes({1, 2, 2, 3})}, {small, small}, {small}),
            "plan: compute matmul, forward: found reads[0] of 4 elements, expected at least 6");
  EXPECT_EQ(message_of({.op = ops::MatMul{}, .shapes = shapes({1, 2, 2, 2})}, {small}, {small}),
            "plan: compute matmul, forward: found 1 reads, expected 2");
  EXPECT_EQ(message_of({.op = ops::MatMul{}, .phase = Phase::Update, .shapes = shapes({1, 2, 2, 2})}, {small}, {small}),
            "plan: compute matmul, update: found this phase, expected forward, recompute, input gradient or weight gradient");
  EXPECT_EQ(message_of({.op = ops::Norm{.kind = NormKind::LayerNorm}, .shapes = shapes({2, 0})}, {small}, {small}),
            "plan: compute norm, forward: found dimension 0, expected at least 1");
  EXPECT_EQ(message_of({.op = ops::Softmax{.causal = true, .scale = 1, .split = {.ranks = 2}}, .shapes = shapes({5, 4})}, {map},
                       {map}),
            "plan: compute softmax, forward: found a causal map that is not square, expected as many queries as keys");
  EXPECT_EQ(
      message_of({.op = ops::Dropout{.p = 1, .site = 0}, .shapes = shapes({1, 2, 2})}, {small}, {small, Array(4, DType::U8)}),
      "plan: compute dropout, forward: found dropout rate 1.000000, expected at least 0 and below 1");
  EXPECT_EQ(message_of({.op = ops::Rope{.heads = 1, .dim = 3}, .shapes = shapes({1, 1, 4})}, {small}, {small}),
            "plan: compute rope, forward: found \"heads=1 dim=3\", expected heads of even size that fit the row");
  EXPECT_EQ(message_of({.op = ops::Adam{}, .phase = Phase::Update, .shapes = shapes({4})}, {small, small}, {small}),
            "plan: compute adam, update: found 2 reads and 1 writes, expected gradient, [master], momentum, variance, [value]");
  EXPECT_EQ(message_of({.op = ops::Activation{.function = ops::Activation::Function::Relu}, .shapes = shapes({2, 2})},
                       {Array(4, DType::F8)}, {small}),
            "plan: compute activation, forward: found an operand in fp8, expected fp64, fp32, bf16 or fp16 on the host");
}

}  // namespace
}  // namespace foreshard::host_ops_test
