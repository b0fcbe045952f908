// Every instruction of the training of every shipped model has a kernel. Layers are left out, sequences are short; nothing is run.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "core/base/error.h"
#include "core/cluster_file/cluster_file.h"
#include "exec/cuda_ops/gpu_kernel.h"
#include "strategy/tune/tune.h"

namespace foreshard::gpu::shipped_models_test {
namespace {

// The first layers, so many that every kind of layer of the shipped models is among them.
Model shortened(Model model) {
  if (auto* t = std::get_if<Transformer>(&model.shape)) t->layers = std::min(t->layers, 6);
  return model;
}

Plan plan_of(const Model& model, const Strategy& strategy) {
  Cluster cluster = load_cluster("dgx-a100");
  for (Gpu& gpu : cluster.gpus) gpu.memory = Bytes{std::int64_t{1} << 50};
  auto answer = tuned_plan(model, cluster, strategy);
  if (const auto* refused = std::get_if<Infeasible>(&answer)) throw Error(refused->reason);
  return std::get<Lowered>(std::move(answer)).plan;
}

std::vector<Operand> operands(const Role& role, const std::vector<Use>& uses) {
  std::vector<Operand> all;
  for (const Use& use : uses) {
    const Buffer& buffer = role.buffers[use.buffer.index()];
    const Bytes length = use.length.value_or(buffer.bytes - use.from);
    all.push_back({nullptr, length.value / size_of(buffer.dtype).value, buffer.dtype});
  }
  return all;
}

// The messages of the instructions that are refused.
std::set<std::string> refusals(const Plan& plan) {
  std::set<std::string> all;
  for (const Role& role : plan.roles)
    for (const Action& action : role.actions)
      for (const Instruction& one : plan.segments[action.segment.index()].instructions)
        if (const auto* what = std::get_if<Compute>(&one.what)) {
          try {
            make_kernel(*what, operands(role, one.reads), operands(role, one.writes), {});
          } catch (const Error& error) {
            all.insert(one.name + ": " + error.what());
          }
        }
  return all;
}

TEST(CudaShippedModels, HaveKernelsForEveryInstruction) {
  int models = 0;
  for (const auto& file : std::filesystem::directory_iterator(FORESHARD_SOURCE "/models")) {
    if (file.path().extension() != ".json") continue;
    const Model model = shortened(load_model(file.path().string()));
    Strategy strategy{.dp = 1, .batch = {.micro = 1, .global = 2}};
    if (std::holds_alternative<Transformer>(model.shape)) strategy.batch.seq = 64;
    for (const std::string& message : refusals(plan_of(model, strategy))) ADD_FAILURE() << model.name << ": " << message;
    ++models;
  }
  EXPECT_GE(models, 59);
}

}  // namespace
}  // namespace foreshard::gpu::shipped_models_test
