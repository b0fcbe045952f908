#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "core/check/check_plan.h"
#include "core/cluster/cluster.h"
#include "core/cluster_file/cluster_file.h"
#include "strategy/tune/tune.h"
#include "tests/core/support_models.h"
#include "tests/exec/training.h"

namespace foreshard {

Model tiny_gpt(bool tied) {
  Model model = gpt(4, 32, 4, 128, 16);
  model.name = "tiny-gpt";
  std::get<Transformer>(model.shape).tied_embeddings = tied;
  return model;
}

Model tiny_llama() {
  Model model = llama(4, 32, 48, 8, 4, 128);
  model.name = "tiny-llama";
  std::get<Transformer>(model.shape).max_positions = 16;
  return model;
}

Model tiny_bert() {
  Model model = gpt(4, 32, 4, 128, 16);
  model.name = "tiny-bert";
  Transformer& shape = std::get<Transformer>(model.shape);
  shape.causal = shape.final_norm = false;
  shape.post_norm = shape.embedding_norm = true;
  shape.pooler = shape.mlm_head = shape.lm_head_bias = true;
  shape.token_types = 2;
  return model;
}

Model twice_as_large(Model transformer) {
  Transformer& shape = std::get<Transformer>(transformer.shape);
  for (auto* size : {&shape.hidden, &shape.ffn_hidden, &shape.head_dim, &shape.vocab, &shape.max_positions}) *size *= 2;
  return transformer;
}

static LayerSpec conv(const std::string& name, std::int64_t features, int kernel, int stride,
                      std::vector<std::string> inputs = {}) {
  return {.name = name,
          .op = LayerOp::Conv2d,
          .inputs = std::move(inputs),
          .features = features,
          .kernel = kernel,
          .stride = stride,
          .padding = kernel / 2};
}

Model tiny_cnn() {
  using enum LayerOp;
  LayerList list{.input = {3, 8, 8}, .classes = 5};
  list.layers = {conv("conv1", 4, 3, 1),
                 {.name = "bn1", .op = BatchNorm},
                 {.name = "relu1", .op = Relu},
                 {.name = "pool1", .op = MaxPool, .kernel = 3, .stride = 2, .padding = 1},
                 conv("a.conv1", 2, 1, 1),
                 {.name = "a.bn1", .op = BatchNorm},
                 {.name = "a.relu1", .op = Relu},
                 conv("a.conv2", 2, 3, 2),
                 {.name = "a.bn2", .op = BatchNorm},
                 {.name = "a.relu2", .op = Relu},
                 conv("a.conv3", 8, 1, 1),
                 {.name = "a.bn3", .op = BatchNorm},
                 conv("a.down", 8, 1, 2, {"pool1"}),
                 {.name = "a.down.bn", .op = BatchNorm},
                 {.name = "a.add", .op = Add, .inputs = {"a.bn3", "a.down.bn"}},
                 {.name = "a.relu3", .op = Relu},
                 conv("b.conv1", 8, 3, 1),
                 {.name = "b.bn1", .op = BatchNorm},
                 {.name = "b.add", .op = Add, .inputs = {"b.bn1", "a.relu3"}},
                 {.name = "b.relu", .op = Relu},
                 {.name = "pool2", .op = AvgPool, .kernel = 2, .stride = 2},
                 {.name = "flat", .op = Flatten},
                 {.name = "fc", .op = Linear, .features = 5, .bias = true}};
  return {.name = "tiny-cnn", .shape = std::move(list)};
}

Model tiny_mlp() {
  LayerList list{.input = {12}, .classes = 7};
  for (const char* name : {"1", "2", "3"}) {
    list.layers.push_back({.name = std::string("fc") + name, .op = LayerOp::Linear, .features = 16, .bias = true});
    list.layers.push_back({.name = std::string("relu") + name, .op = LayerOp::Relu});
  }
  list.layers.push_back({.name = "out", .op = LayerOp::Linear, .features = 7, .bias = true});
  return {.name = "tiny-mlp", .shape = std::move(list)};
}

Strategy in_double(Strategy strategy) {
  strategy.precision = DType::F64;
  if (strategy.dp == 0) strategy.dp = 1;
  if (strategy.batch.global == 0) strategy.batch.global = 8;
  return strategy;
}

Plan lowered(const Model& model, const Strategy& strategy) {
  static const Cluster cluster = load_cluster("dgx-a100"), eight_bits = load_cluster("dgx-h100");
  auto answer = tuned_plan(model, strategy.precision == DType::F8 ? eight_bits : cluster, strategy);
  if (const auto* refused = std::get_if<Infeasible>(&answer)) {
    ADD_FAILURE() << refused->reason;
    throw Error(refused->reason);
  }
  return std::get<Lowered>(std::move(answer)).plan;
}

ExecuteOptions training(int steps) { return {.steps = steps, .seed = 7, .optimizer = {.eps = 1e-5}, .tensors = true}; }

Execution run(const Plan& plan, const ExecuteOptions& options) {
  auto answer = execute(plan, options);
  if (const auto* refused = std::get_if<Infeasible>(&answer)) {
    ADD_FAILURE() << refused->reason;
    throw Error(refused->reason);
  }
  return std::get<Execution>(std::move(answer));
}

Execution trained(const Model& model, const Strategy& strategy, int steps) {
  const Plan plan = lowered(model, in_double(strategy));
  const auto defects = check_plan(plan);
  EXPECT_TRUE(defects.empty()) << defects[0].rule << " " << defects[0].where << " " << defects[0].what;
  ExecuteOptions options = training(steps);
  options.checks.poison = true;
  return run(plan, options);
}

double Difference::largest() const { return std::max({loss, gradients, values}); }

// Relative to the largest element, or to `least` if that is more.
static double apart(const WholeTensor& a, const WholeTensor& b, double least = 0) {
  if (a.elements.size() != b.elements.size()) return INFINITY;
  double most = 0, scale = least;
  for (std::size_t i = 0; i < a.elements.size(); ++i) {
    const double difference = a.held[i] && b.held[i] ? std::abs(a.elements[i] - b.elements[i]) : INFINITY;
    if (!(difference <= most)) most = std::isnan(difference) ? INFINITY : difference;
    scale = std::max(scale, std::abs(b.elements[i]));
  }
  most = std::max({most, a.largest_difference, b.largest_difference});
  return most == 0 ? 0 : most / scale;
}

static double largest_of(const std::vector<WholeTensor>& tensors) {
  double largest = 0;
  for (const WholeTensor& tensor : tensors)
    for (const double element : tensor.elements) largest = std::max(largest, std::abs(element));
  return largest;
}

// Frozen tensors have no gradients. Some gradients are 0 but for rounding, such as that of a bias before a normalization.
static double gradients_apart(const Tensor& tensor, const WholeTensor& a, const WholeTensor& b, double largest) {
  if (!tensor.frozen) return apart(a, b, 1e-4 * largest);
  const auto held = [](const WholeTensor& of) { return std::ranges::any_of(of.held, [](char one) { return one != 0; }); };
  return held(a) || held(b) ? INFINITY : 0;
}

Difference difference(const Execution& a, const Execution& b) {
  Difference all;
  for (std::size_t s = 0; s < b.steps.size(); ++s)
    all.loss = std::max(all.loss, std::abs(a.steps.at(s).loss - b.steps[s].loss) / std::abs(b.steps[s].loss));
  std::map<std::string, std::size_t> index;
  for (std::size_t t = 0; t < a.result.plan.tensors.size(); ++t) index[a.result.plan.tensors[t].name] = t;
  double worst = -1;
  const double largest = largest_of(b.gradients);
  for (std::size_t t = 0; t < b.result.plan.tensors.size(); ++t) {
    const std::string& name = b.result.plan.tensors[t].name;
    const double gradient =
        index.contains(name) ? gradients_apart(b.result.plan.tensors[t], a.gradients.at(index[name]), b.gradients[t], largest)
                             : INFINITY;
    const double value = index.contains(name) ? apart(a.values.at(index[name]), b.values[t]) : INFINITY;
    all.gradients = std::max(all.gradients, gradient);
    all.values = std::max(all.values, value);
    if (std::max(gradient, value) > worst) worst = std::max(gradient, value), all.worst = name;
  }
  if (index.size() != b.result.plan.tensors.size()) all.gradients = INFINITY, all.worst = "another number of tensors";
  return all;
}

Plan with_dynamic_scale(const Model& model, Strategy strategy, int exponent, int growth) {
  strategy.optimizer.loss_scale = 0;
  Plan plan = lowered(model, strategy);
  const double start = std::ldexp(1, exponent);
  for (Segment& segment : plan.segments)
    for (Instruction& instruction : segment.instructions)
      if (auto* what = std::get_if<Compute>(&instruction.what)) {
        if (what->dynamic_scale) what->loss_scale = start;
        if (auto* judge = std::get_if<ops::JudgeOverflow>(&what->op)) judge->growth = growth, judge->start = start;
      }
  return plan;
}

void divide_gradients(Execution& execution, double loss_scale) {
  for (WholeTensor& tensor : execution.gradients) {
    for (double& element : tensor.elements) element /= loss_scale;
    tensor.largest_difference /= loss_scale;
  }
}

std::string name_of(const Strategy& s) {
  std::ostringstream out;
  out << "dp" << s.dp << " tp" << s.tp << (s.sequence_parallel ? " sp" : "") << " pp" << s.pp << " v" << s.virtual_stages << " "
      << (s.pipeline.schedule ? name_of(*s.pipeline.schedule) : "auto") << " split \"" << s.pipeline.layer_split
      << "\" micro-batch " << s.batch.micro << " zero" << s.zero.stage << " group " << s.zero.group << " recompute "
      << to_text(s.recompute) << " overlap " << to_text(s.communication.overlap.value_or(Overlap{})) << " bucket "
      << s.communication.bucket.value << " dropout " << s.dropout.value_or(0) << " " << name_of(s.optimizer.kind)
      << " momentum " << s.optimizer.momentum << " clip " << s.optimizer.clip_norm.value_or(0);
  return out.str();
}

void expect_the_loss_falls(const Model& model, const Strategy& strategy) {
  static const CountingSamples counting;
  ExecuteOptions options = training(6);
  options.optimizer.learning_rate = 1e-2;
  options.samples = &counting;
  const Execution done = run(lowered(model, in_double(strategy)), options);
  EXPECT_LT(done.steps.back().loss, 0.95 * done.steps.front().loss) << model.name;
}

}  // namespace foreshard
