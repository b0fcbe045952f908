// Low-rank adapters, trained on the host: the adapters of every way of splitting the work are those of one device, the model under them does
// not change, and their gradients are those of the weights that they stand for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "core/check/check_plan.h"
#include "exec/base/philox.h"
#include "exec/data/safetensors.h"
#include "tests/exec/checkpoint_folder.h"
#include "tests/exec/modern_models.h"
#include "tests/exec/training.h"
#include "tests/how_many.h"

namespace foreshard::adapters_test {
namespace {

constexpr double kTolerance = 1e-12;

Strategy tuned(Strategy s, AdapterTargets targets = AdapterTargets::All) {
  s.optimizer.lora = {.rank = 4, .alpha = 8, .targets = targets};
  return in_double(s);
}

void expect_no_defects(const Plan& plan) {
  const auto defects = check_plan(plan);
  ASSERT_TRUE(defects.empty()) << defects[0].rule << " " << defects[0].where << " " << defects[0].what;
}

std::map<std::string, WholeTensor> by_name(const Plan& plan, const std::vector<WholeTensor>& tensors) {
  std::map<std::string, WholeTensor> all;
  for (std::size_t t = 0; t < tensors.size(); ++t) all[plan.tensors[t].name] = tensors[t];
  return all;
}

void compare(const Model& model, const Strategy& strategy, AdapterTargets targets = AdapterTargets::All) {
  SCOPED_TRACE(model.name + " " + name_of(strategy));
  Strategy one = tuned({.batch = {.micro = 2}}, targets);
  one.optimizer.clip_norm = strategy.optimizer.clip_norm;
  const Plan plan = lowered(model, tuned(strategy, targets));
  expect_no_defects(plan);
  ExecuteOptions options = training();
  options.checks.poison = true;
  const Difference apart = difference(run(plan, options), run(lowered(model, one), training()));
  EXPECT_LE(apart.loss, kTolerance);
  EXPECT_LE(apart.gradients, kTolerance) << apart.worst;
  EXPECT_LE(apart.values, kTolerance) << apart.worst;
}

std::vector<Strategy> ways() {
  const Overlap all{true, true, true, true};
  return {{.batch = {.micro = 8}},
          {.dp = 4, .batch = {.micro = 1}},
          {.tp = 2, .batch = {.micro = 1}},
          {.tp = 4, .sequence_parallel = true, .batch = {.micro = 1}, .optimizer = {.clip_norm = 0.01}},
          {.dp = 2, .tp = 2, .batch = {.micro = 1}, .optimizer = {.clip_norm = 0.01}},
          {.cp = 2, .batch = {.micro = 2}},
          {.pp = 2, .batch = {.micro = 1}},
          {.pp = 4, .pipeline = {.schedule = Schedule::ZeroBubbleH1}, .batch = {.micro = 1}},
          {.pp = 2, .virtual_stages = 2, .pipeline = {.schedule = Schedule::ZeroBubbleV}, .batch = {.micro = 1}},
          {.pp = 2, .virtual_stages = 2, .batch = {.micro = 1}},
          {.pp = 4, .pipeline = {.layer_split = "0,1,2,1"}, .batch = {.micro = 1}},
          {.dp = 4, .batch = {.micro = 1}, .zero = {.stage = 1}, .communication = {.overlap = all}},
          {.dp = 4, .batch = {.micro = 1}, .zero = {.stage = 2}, .communication = {.overlap = all}},
          {.dp = 4, .batch = {.micro = 1}, .zero = {.stage = 3}, .communication = {.overlap = all}},
          {.dp = 4, .batch = {.micro = 1}, .zero = {.stage = 3}, .optimizer = {.clip_norm = 0.01}},
          {.dp = 2,
           .tp = 2,
           .pp = 2,
           .sequence_parallel = true,
           .batch = {.micro = 1},
           .zero = {.stage = 3},
           .recompute = {.kind = RecomputeKind::Full},
           .optimizer = {.clip_norm = 0.01},
           .communication = {.overlap = all}},
          {.tp = 2, .batch = {.micro = 2}, .recompute = {.kind = RecomputeKind::Modules, .modules = {"norm", "qkv", "mlp"}}},
          {.dp = 2, .batch = {.micro = 1}, .offload = {.optimizer = Space::PinnedHost, .parameters = Space::PinnedHost}}};
}

TEST(Adapters, EveryWayTrainsThoseOfOneDevice) {
  for (const Model& model : {tiny_llama(), tiny_gpt()})
    for (const Strategy& way : some_of(ways(), 4)) compare(model, way);
  for (const Strategy& way : {ways()[4], ways()[6], ways()[13]}) {
    compare(tiny_llama(), way, AdapterTargets::Attention);
    compare(tiny_bert(), way);
  }
  compare(tiny_gpt(false), {.dp = 2, .tp = 2, .batch = {.micro = 1}});
}

// Norms of queries and keys, norms of branches, capped scores, factors.
TEST(Adapters, ModernModels) {
  for (const ModernModel& of : modern_models()) {
    Transformer t = tiny_decoder();
    of.with(t);
    if (t.attention.latent.key_value_rank > 0 || t.attention.sinks) continue;  // refused
    const Model model = {.name = of.name, .shape = t};
    compare(model, {.dp = 2, .pp = 2, .batch = {.micro = 1}, .zero = {.stage = 1}});
    if (t.attention.qk_norm != QkNorm::AllHeads) compare(model, {.tp = 2, .sequence_parallel = true, .batch = {.micro = 1}});
  }
}

// The loss falls, every frozen weight has the bits that it began with, and no tensor but the adapters has a gradient or states.
TEST(Adapters, OnlyTheyAreTrained) {
  const Model model = tiny_llama();
  const CountingSamples samples;
  for (const Strategy& way :
       {Strategy{.batch = {.micro = 8}}, Strategy{.dp = 2, .tp = 2, .pp = 2, .batch = {.micro = 1}, .zero = {.stage = 3}}}) {
    const Plan plan = lowered(model, tuned(way));
    for (const Role& role : plan.roles)
      for (const Buffer& buffer : role.buffers)
        for (const Shard& shard : buffer.holds)
          if (plan.tensors[shard.tensor.index()].frozen) {
            EXPECT_EQ(shard.part, TensorPart::Value) << buffer.name;
          }
    ExecuteOptions options = training(30);
    options.samples = &samples;
    options.optimizer.learning_rate = 1e-2;
    const Execution done = run(plan, options);
    ExecuteOptions none = options;
    none.steps = 1, none.optimizer.learning_rate = 0;
    const auto first = by_name(plan, run(plan, none).values), last = by_name(plan, done.values);
    int frozen = 0, moved = 0;
    for (const Tensor& tensor : plan.tensors) {
      if (tensor.frozen) {
        EXPECT_EQ(first.at(tensor.name).elements, last.at(tensor.name).elements) << tensor.name;
        ++frozen;
      } else {
        EXPECT_NE(first.at(tensor.name).elements, last.at(tensor.name).elements) << tensor.name;
        ++moved;
      }
    }
    EXPECT_EQ(moved, 4 * 8);
    EXPECT_EQ(frozen, 4 * 6 + 3);
    EXPECT_LT(done.steps.back().loss, 0.9 * done.steps.front().loss);
  }
}

// B begins at zero, so the model with adapters begins as the model without them, and the gradient of B is scale G A^T, where G is the gradient of
// the weights beside it.
TEST(Adapters, TheFirstGradientIsThatOfTheWeightsTimesA) {
  const Model model = tiny_llama();
  const Plan whole = lowered(model, in_double({.batch = {.micro = 2}})), plan = lowered(model, tuned({.batch = {.micro = 2}}));
  ExecuteOptions options = training(1);
  options.optimizer.learning_rate = 0;
  const Execution all = run(whole, options), some = run(plan, options);
  EXPECT_NEAR(all.steps[0].loss, some.steps[0].loss, 1e-13);
  const auto gradients = by_name(whole, all.gradients), of_adapters = by_name(plan, some.gradients),
             values = by_name(plan, some.values);
  for (const char* layer : {"layers.0.", "layers.3."})
    for (const char* name : {"qkv", "projection", "fc1", "fc2"}) {
      const std::string of = std::string(layer) + name;
      const auto &g = gradients.at(of + ".weight").elements, &a = values.at(of + "_lora_a.weight").elements,
                 &b = of_adapters.at(of + "_lora_b.weight").elements;
      const std::size_t rank = 4, in = a.size() / rank, out = g.size() / in;
      ASSERT_EQ(b.size(), out * rank);
      double largest = 0, apart = 0;
      for (std::size_t i = 0; i < out; ++i)
        for (std::size_t r = 0; r < rank; ++r) {
          double sum = 0;
          for (std::size_t c = 0; c < in; ++c) sum += 2 * g[i * in + c] * a[r * in + c];
          largest = std::max(largest, std::abs(sum)), apart = std::max(apart, std::abs(sum - b[i * rank + r]));
        }
      EXPECT_GT(largest, 0);
      EXPECT_LE(apart, 1e-12 * largest) << of;
    }
}

struct AdapterCheckpoint : CheckpointFolder {
  // A copy of a checkpoint with `step` times a random direction added to a tensor; returns the product of the direction with `gradient`.
  double moved(const std::string& from, const std::string& to, const std::string& tensor, double step,
               const WholeTensor& gradient) const {
    SafetensorsFile read(file(from));
    SafetensorsWriter write(file(to), read.tensors(), read.metadata());
    double along = 0;
    for (std::size_t t = 0; t < read.tensors().size(); ++t) {
      std::vector<double> elements = read.read(read.tensors()[t].name);
      if (read.tensors()[t].name == tensor)
        for (std::size_t i = 0; i < elements.size(); ++i) {
          const double direction = standard_normal(7, name_key("direction"), i);
          elements[i] += step * direction;
          along += direction * gradient.elements[i];
        }
      write.places().write(t, 0, elements);
    }
    write.finish();
    return along;
  }
};

// Two steps here and two under another split are four steps; the file has states of adapters only.
TEST_F(AdapterCheckpoint, ResumedUnderAnotherSplit) {
  const Model model = tiny_llama();
  const Plan one = lowered(model, tuned({.batch = {.micro = 2}}));
  const Plan split = lowered(model, tuned({.dp = 2, .tp = 2, .pp = 2, .batch = {.micro = 1}, .zero = {.stage = 3}}));
  ExecuteOptions save = training(2), resume = training(2);
  save.save = resume.resume = file("two.safetensors");
  run(split, save);
  Execution whole = run(one, training(4));
  whole.steps.erase(whole.steps.begin(), whole.steps.begin() + 2);
  const Difference apart = difference(run(one, resume), whole);
  EXPECT_LE(apart.largest(), kTolerance) << apart.worst;
  SafetensorsFile saved(save.save);
  for (const StoredTensor& tensor : saved.tensors())
    if (tensor.name.starts_with("momentum.")) {
      EXPECT_NE(tensor.name.find("_lora_"), std::string::npos) << tensor.name;
    }
  EXPECT_TRUE(saved.has("momentum.layers.3.fc2_lora_b.weight"));
  EXPECT_TRUE(saved.has("layers.3.fc2.weight"));
}

// After three steps B is no longer zero: the gradients of A and B are those of the loss, by central differences along random directions.
TEST_F(AdapterCheckpoint, GradientsAreThoseOfTheLoss) {
  const Model model = tiny_llama();
  const Plan plan = lowered(model, tuned({.batch = {.micro = 8}}));
  ExecuteOptions save = training(3), resume = training(1);
  save.save = file("three.safetensors"), save.optimizer.learning_rate = 1e-2;
  run(plan, save);
  resume.optimizer.learning_rate = 0;
  const auto loss = [&](const std::string& of) {
    resume.resume = file(of);
    return run(plan, resume);
  };
  const Execution here = loss("three.safetensors");
  const auto gradients = by_name(plan, here.gradients);
  constexpr double h = 1e-4;
  for (const char* tensor : {"layers.0.qkv_lora_a.weight", "layers.0.qkv_lora_b.weight", "layers.1.projection_lora_a.weight",
                             "layers.2.fc1_lora_a.weight", "layers.3.fc2_lora_a.weight", "layers.3.fc2_lora_b.weight"}) {
    const double along = moved("three.safetensors", "up.safetensors", tensor, h, gradients.at(tensor));
    moved("three.safetensors", "down.safetensors", tensor, -h, gradients.at(tensor));
    const double slope = (loss("up.safetensors").steps[0].loss - loss("down.safetensors").steps[0].loss) / (2 * h);
    EXPECT_NEAR(slope, along, 1e-5 * std::abs(along) + 1e-9) << tensor;
    EXPECT_GT(std::abs(along), 1e-6) << tensor;
  }
}

// A stream of sequences of kLength tokens; a row holds so many of them, and the target of a sequence's last token is the first of the next.
class Repeated : public Samples {
 public:
  explicit Repeated(std::int64_t rows) : rows_(rows) {}
  void tokens(std::int64_t sample, std::int64_t position, std::int64_t vocab, std::span<std::int64_t> out) const override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::int64_t at = position + static_cast<std::int64_t>(i);
      out[i] = (7 * (sample * rows_ + at / kLength) + 3 * (at % kLength) * (at % kLength)) % vocab;
    }
  }
  std::int64_t label(std::int64_t, std::int64_t) const override { return 0; }
  void features(std::int64_t, std::int64_t, std::span<double>) const override {}
  static constexpr std::int64_t kLength = 8;

 private:
  std::int64_t rows_;  // sequences of kLength tokens in a row
};

TEST(PackedSequences, DoNotSeeEachOther) {
  const Model model = tiny_llama();
  Strategy packed = in_double({.batch = {.micro = 2, .seq = 32, .packed = 8}}),
           apart = in_double({.batch = {.micro = 8, .seq = 8}});
  packed.batch.global = 8, apart.batch.global = 32;
  ExecuteOptions options = training(1);
  const Repeated four(4), one(1);
  options.samples = &four;
  const Execution rows = run(lowered(model, packed), options);
  options.samples = &one;
  const Execution sequences = run(lowered(model, apart), options);
  packed.batch.packed = 0;
  options.samples = &four;
  const Execution whole = run(lowered(model, packed), options);
  EXPECT_GT(std::abs(rows.steps[0].loss - whole.steps[0].loss), 1e-6);
  const Difference same = difference(rows, sequences);
  EXPECT_LE(same.loss, kTolerance);
  EXPECT_LE(same.gradients, kTolerance) << same.worst;
}

}  // namespace
}  // namespace foreshard::adapters_test
