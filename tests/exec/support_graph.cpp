#include <algorithm>
#include <cmath>

#include "tests/exec/host_graph.h"
#include "tests/exec/modern_models.h"

namespace foreshard {

static const Value& value_of(const LayerGraph& layer, int value) { return layer.values[static_cast<std::size_t>(value)]; }
static bool is_empty(const OpWork& work) { return work == OpWork{}; }

Array array_of(const Value& value) {
  const std::int64_t elements = value.bytes.value / size_of(value.dtype).value;
  return {std::vector<double>(static_cast<std::size_t>(elements), std::nan("")), value.dtype};
}

static std::int64_t elements_of(const std::vector<std::int64_t>& dims) {
  std::int64_t size = 1;
  for (const std::int64_t dim : dims) size *= dim;
  return size;
}

Array parameter_array(const Parameter& parameter, DType dtype, std::uint64_t seed) {
  Array array = random_array(elements_of(parameter.local), seed, dtype);
  for (std::int64_t i = 0; i < array.size(); ++i) array.set(i, 0.3 * array.at(i) + (parameter.init == "ones" ? 1 : 0));
  return array;
}

static Compute compute_of(const Operator& op, Phase phase) { return {.op = op.op, .phase = phase, .shapes = op.shapes}; }

OperatorRun random_run(const LayerGraph& layer, const Operator& op, const OpArguments& arguments, std::uint64_t seed) {
  OperatorRun run{.layer = layer, .op = op, .arguments = arguments};
  for (const int input : op.inputs) {
    const Value& value = value_of(layer, input);
    run.inputs.push_back(random_array(array_of(value).size(), ++seed, value.dtype));
  }
  for (const int weight : op.weights)
    run.weights.push_back(parameter_array(layer.parameters[static_cast<std::size_t>(weight)],
                                          value_of(layer, op.outputs[0]).dtype, seed + 100 + static_cast<unsigned>(weight)));
  return run;
}

void OperatorRun::forward() {
  std::vector<Array> reads = inputs;
  reads.insert(reads.end(), weights.begin(), weights.end());
  outputs.clear();
  for (const int output : op.outputs) outputs.push_back(array_of(value_of(layer, output)));
  run_on(compute_of(op, Phase::Forward), reads, outputs, arguments);
}

namespace {

void fill(Array& array, double value) {
  for (std::int64_t i = 0; i < array.size(); ++i) array.set(i, value);
}

}  // namespace

OperatorRun::Gradients OperatorRun::backward(const std::vector<Array>& output_gradients, bool onto) {
  Gradients gradients;
  gradients.inputs.resize(inputs.size());
  std::vector<Array> from;
  for (const Array& gradient : output_gradients)
    if (gradient.size() > 0) from.push_back(gradient);
  for (const int saved : op.saved) {
    const auto input = std::find(op.inputs.begin(), op.inputs.end(), saved);
    const auto output = std::find(op.outputs.begin(), op.outputs.end(), saved);
    from.push_back(input != op.inputs.end() ? inputs[static_cast<std::size_t>(input - op.inputs.begin())]
                                            : outputs[static_cast<std::size_t>(output - op.outputs.begin())]);
  }
  std::vector<Array> empty_weights = weights;
  for (Array& weight : empty_weights) fill(weight, onto ? 1 : std::nan(""));
  const bool both = !op.weights.empty() && is_empty(op.weight_grad);
  if (!is_empty(op.input_grad)) {
    const bool fused_residual = is<ops::Dropout>(op.op) && op.inputs.size() == 2;
    std::vector<Array> reads = from, writes;
    std::vector<std::size_t> wanted;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!value_of(layer, op.inputs[i]).needs_grad || (fused_residual && i == 1)) continue;
      wanted.push_back(i);
      writes.push_back(inputs[i]);
      fill(writes.back(), onto ? 1 : std::nan(""));
    }
    reads.insert(reads.end(), weights.begin(), weights.end());
    if (both) writes.insert(writes.end(), empty_weights.begin(), empty_weights.end());
    Compute what = compute_of(op, both ? Phase::Backward : Phase::InputGrad);
    what.accumulate = onto;
    if (both && onto) what.accumulate_weights = true;
    run_on(what, reads, writes, arguments);
    for (std::size_t w = 0; w < wanted.size(); ++w) gradients.inputs[wanted[w]] = writes[w];
    if (both) gradients.weights.assign(writes.begin() + static_cast<std::ptrdiff_t>(wanted.size()), writes.end());
    if (fused_residual) gradients.inputs[1] = output_gradients[0];
  } else {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!output_gradients.empty() && output_gradients[0].size() == inputs[i].size() &&
          value_of(layer, op.inputs[i]).needs_grad)
        gradients.inputs[i] = output_gradients[0];  // handed on without a kernel
  }
  if (!is_empty(op.weight_grad)) {
    Compute what = compute_of(op, Phase::WeightGrad);
    what.accumulate = onto;
    gradients.weights = empty_weights;
    run_on(what, from, gradients.weights, arguments);
  }
  if (!onto) return gradients;
  const bool made = !is_empty(op.input_grad);
  for (std::size_t i = 0; i < gradients.inputs.size(); ++i) {
    const bool handed_on = !made || (is<ops::Dropout>(op.op) && i == 1);
    for (std::int64_t e = 0; !handed_on && e < gradients.inputs[i].size(); ++e)
      gradients.inputs[i].set(e, gradients.inputs[i].at(e) - 1);
  }
  for (Array& weight : gradients.weights)
    for (std::int64_t e = 0; e < weight.size(); ++e) weight.set(e, weight.at(e) - 1);
  return gradients;
}

static Transformer small_transformer() {
  return {
      .layers = 1, .hidden = 12, .ffn_hidden = 20, .heads = 4, .kv_heads = 4, .head_dim = 6, .vocab = 11, .max_positions = 8};
}

static Sharding sharding(std::int64_t batch, std::int64_t seq, DType compute) {
  return {.micro_batch = batch, .seq = seq, .flash_attention = false, .compute = compute, .param = compute};
}

std::vector<GraphCase> graph_cases(DType compute) {
  std::vector<GraphCase> cases;
  Transformer gpt = small_transformer();
  Sharding plain = sharding(3, 7, compute), dropping = plain, flash = plain;
  dropping.dropout = 0.3;
  flash.dropout = 0.3, flash.flash_attention = true;
  cases.push_back({"gpt", {.shape = gpt}, plain});
  cases.push_back({"gpt with dropout", {.shape = gpt}, dropping});
  cases.push_back({"gpt with flash attention and dropout", {.shape = gpt}, flash});
  Transformer llama = small_transformer();
  llama.kv_heads = 2, llama.norm = NormKind::RmsNorm, llama.activation = ActivationKind::SwiGlu;
  llama.positions = PositionKind::Rope, llama.tied_embeddings = false;
  llama.qkv_bias = llama.projection_bias = llama.mlp_bias = false;
  cases.push_back({"llama", {.shape = llama}, plain});
  flash.dropout = 0, flash.seq = 8;
  cases.push_back({"llama with flash attention", {.shape = llama}, flash});
  Transformer bert = small_transformer();
  bert.causal = false, bert.token_types = 2, bert.post_norm = bert.embedding_norm = bert.pooler = bert.mlm_head = true;
  bert.final_norm = false, bert.lm_head_bias = true;
  cases.push_back({"bert", {.shape = bert}, dropping});
  bert.activation = ActivationKind::Relu;
  cases.push_back({"bert with flash attention and relu", {.shape = bert}, flash});
  for (const ModernModel& which : modern_models()) {  // six of seven positions are more than a window
    Model model = modern_model(which);
    auto& t = std::get<Transformer>(model.shape);
    t.layers = 3, t.hidden = 12, t.ffn_hidden = 10, t.vocab = 11;
    if (t.attention.window > 0) t.attention.window = 3;
    if (t.attention.chunk > 0) t.attention.chunk = 3;
    if (t.block.scales.logit_cap > 0) t.block.scales.logit_cap = 3;  // room for what is learned
    Sharding modern = flash;
    modern.seq = 7;
    cases.push_back({which.name, model, modern});
  }
  LayerList cnn{.input = {3, 7, 6}, .classes = 5};
  cnn.layers = {{.name = "conv1", .op = LayerOp::Conv2d, .features = 4, .kernel = 3, .stride = 2, .padding = 1},
                {.name = "norm1", .op = LayerOp::BatchNorm},
                {.name = "relu1", .op = LayerOp::Relu},
                {.name = "conv2", .op = LayerOp::Conv2d, .features = 4, .kernel = 1, .bias = true},
                {.name = "sum", .op = LayerOp::Add, .inputs = {"conv2", "relu1"}},
                {.name = "pool1", .op = LayerOp::MaxPool, .kernel = 2, .stride = 1},
                {.name = "pool2", .op = LayerOp::AvgPool, .kernel = 2, .padding = 1},
                {.name = "flat", .op = LayerOp::Flatten},
                {.name = "fc", .op = LayerOp::Linear, .features = 5, .bias = true}};
  cases.push_back({"cnn", {.shape = cnn}, sharding(3, 1, compute)});
  cnn.classes = 0;
  cases.push_back({"cnn with the sum of squares", {.shape = cnn}, sharding(2, 1, compute)});
  return cases;
}

OpArguments arguments_of(const GraphCase& test) {
  static const RandomSamples source(7);
  return {.seed = 3,
          .layer = 5,
          .first_sample = 40,
          .samples = test.sharding.micro_batch,
          .samples_of_step = 2 * test.sharding.micro_batch,
          .source = &source};
}

}  // namespace foreshard
