// Host kernels on one thread: matrix products, and every operator of a GPT layer.
#include <benchmark/benchmark.h>

#include <numeric>
#include <vector>

#include "core/graph/op_graph.h"
#include "exec/arithmetic/host_blas.h"
#include "exec/arithmetic/host_init.h"
#include "exec/host/host_ops.h"

namespace foreshard {
namespace {

struct alignas(64) Line {
  std::byte bytes[64];
};

class Storage {
 public:
  Storage(std::int64_t elements, DType dtype)
      : lines_(static_cast<std::size_t>(ceil_div(elements * size_of(dtype).value, 64))), elements_(elements), dtype_(dtype) {
    if (dtype == DType::U8 || dtype == DType::I64) return;
    fill_initial({.name = "x", .shape = {elements}, .init = "normal(0.02)"}, {}, 0, 1, operand());
  }
  Operand operand() { return {lines_.data()->bytes, elements_, dtype_}; }

 private:
  std::vector<Line> lines_;
  std::int64_t elements_;
  DType dtype_;
};

void run_op(benchmark::State& state, const Compute& what, const std::vector<Operand>& reads,
            const std::vector<Operand>& writes) {
  const HostOp op(what, reads, writes);
  std::vector<Line> workspace(static_cast<std::size_t>(ceil_div(op.workspace().value, 64)));
  const OpArguments arguments{.samples = 2, .optimizer = {.weight_decay = 0.1}};
  for (auto _ : state) op.run(reads, writes, std::as_writable_bytes(std::span(workspace)), arguments);
}

template <class T>
void matrix_product(benchmark::State& state) {
  const std::int64_t n = 1024;
  const std::vector<T> a(n * n, T(1)), b = a;
  std::vector<T> c = a;
  for (auto _ : state)
    host::multiply({.m = n,
                    .n = n,
                    .k = n,
                    .a = a.data(),
                    .lda = n,
                    .b = b.data(),
                    .ldb = n,
                    .transpose_b = true,
                    .c = c.data(),
                    .ldc = n});
  state.SetLabel(host::blas_name());
  state.counters["FLOP/s"] = benchmark::Counter(2.0 * n * n * n, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(matrix_product<float>)->Unit(benchmark::kMillisecond);
BENCHMARK(matrix_product<double>)->Unit(benchmark::kMillisecond);

// One operator of a GPT layer (batch 2, sequence 512, hidden 1024, 16 heads) in one phase.
void operator_phase(benchmark::State& state, const LayerGraph& layer, const Operator& op, Phase phase) {
  std::vector<Storage> kept;
  kept.reserve(32);
  const auto fresh = [&](std::int64_t elements, DType dtype) {
    kept.emplace_back(elements, dtype);
    return kept.back().operand();
  };
  const auto value = [&](int v) {
    const Value& it = layer.values[static_cast<std::size_t>(v)];
    return fresh(it.bytes.value / size_of(it.dtype).value, it.dtype);
  };
  const auto weight = [&](int w) {
    const auto& dims = layer.parameters[static_cast<std::size_t>(w)].local;
    return fresh(std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>()), DType::F32);
  };
  std::vector<Operand> reads, writes;
  const bool forward = phase == Phase::Forward;
  for (const int v : forward ? op.inputs : op.outputs)
    if (forward || layer.values[static_cast<std::size_t>(v)].needs_grad) reads.push_back(value(v));
  if (!forward)
    for (const int v : op.saved) reads.push_back(value(v));
  if (phase != Phase::WeightGrad)
    for (const int w : op.weights) reads.push_back(weight(w));
  if (phase != Phase::WeightGrad)
    for (const int v : forward ? op.outputs : op.inputs) writes.push_back(value(v));
  if (phase == Phase::WeightGrad || phase == Phase::Backward)
    for (const int w : op.weights) writes.push_back(weight(w));
  run_op(state, {.op = op.op, .phase = phase, .shapes = op.shapes}, reads, writes);
  const double flops = forward                      ? op.forward.flops.value
                       : phase == Phase::WeightGrad ? op.weight_grad.flops.value
                                                    : op.input_grad.flops.value;
  if (flops > 0) state.counters["FLOP/s"] = benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

const LayerGraph& gpt_layer() {
  static const OpGraph graph =
      build_op_graph({.shape = Transformer{.layers = 1,
                                           .hidden = 1024,
                                           .ffn_hidden = 4096,
                                           .heads = 16,
                                           .kv_heads = 16,
                                           .head_dim = 64,
                                           .vocab = 512,
                                           .max_positions = 512}},
                     {.micro_batch = 2, .seq = 512, .flash_attention = false, .compute = DType::F32, .param = DType::F32});
  return graph.kinds[1];
}

const int kRegistered = [] {
  for (const Operator& op : gpt_layer().operators) {
    const auto add = [&op](Phase phase, const char* name) {
      benchmark::RegisterBenchmark(("gpt_layer/" + op.name + name).c_str(), [&op, phase](benchmark::State& state) {
        operator_phase(state, gpt_layer(), op, phase);
      })->Unit(benchmark::kMillisecond);
    };
    const bool both = !op.weights.empty() && op.weight_grad == OpWork{};
    add(Phase::Forward, "/forward");
    if (!(op.input_grad == OpWork{})) add(both ? Phase::Backward : Phase::InputGrad, both ? "/backward" : "/input_grad");
    if (!(op.weight_grad == OpWork{})) add(Phase::WeightGrad, "/weight_grad");
  }
  return 0;
}();

}  // namespace
}  // namespace foreshard
