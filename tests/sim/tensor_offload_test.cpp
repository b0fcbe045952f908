// Activations of convolutional networks in host memory, simulated: vDNN's rule and the choice by free time.
#include <algorithm>
#include <cstdio>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "core/result/memory_timeline.h"
#include "sim/simulate.h"
#include "strategy/tune/tune.h"
#include "tests/how_many.h"
#include "tests/strategy/residency/support_page.h"

#include <gtest/gtest.h>

namespace foreshard::tensor_offload_test {
namespace {

struct Outcome {
  double seconds = 0;
  Bytes arena = {};
};

Outcome outcome(const char* model, OffloadedActivations what, Bytes budget = {}) {
  const Cluster cluster = load_cluster("workstation-rtx4090");
  Strategy s{.dp = 1, .batch = {.micro = 64, .global = 64}};
  s.offload.activations = what, s.offload.budget = budget;
  const auto answer = tuned_plan(load_model(model), cluster, s, {.check = false});
  if (const auto* refused = std::get_if<Infeasible>(&answer)) {
    ADD_FAILURE() << model << " " << name_of(what) << ": " << refused->reason;
    return {};
  }
  const Plan& plan = std::get<Lowered>(answer).plan;
  const auto defects = check_plan(plan);
  EXPECT_TRUE(defects.empty()) << defects[0].rule << " " << defects[0].where << " " << defects[0].what;
  const Result result = simulate(plan, cluster);
  Nanoseconds end = {};
  for (const Span& span : result.trace.spans) end = std::max(end, span.end);
  return {static_cast<double>(end.value) * 1e-9, arena_bytes(plan.roles.front(), Space::Device)};
}

std::string row(const Outcome& of) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2f | %.0f |", in_gib(of.arena), of.seconds * 1000);
  return text;
}

}  // namespace

TEST(TensorOffload, NeverSlowerThanSendingEverythingAtEqualPeak) {
  using enum OffloadedActivations;
  for (const char* model : some_of<const char*>({"vgg-16", "resnet-50"}, 1)) {
    const Outcome kept = outcome(model, None);
    for (const OffloadedActivations everything : {All, Vdnn}) {
      const Outcome away = outcome(model, everything), chosen = outcome(model, FreeTime, away.arena);
      EXPECT_LE(chosen.arena, away.arena) << model;
      EXPECT_LE(chosen.seconds, away.seconds) << model << " " << name_of(everything);
      if (everything == Vdnn) {  // the places of `all` take more than what two layers keep here
        EXPECT_LT(away.arena, kept.arena) << model;
        const std::string name = model;
        EXPECT_EQ(row(kept), offload_page_row(name + ", everything kept"));
        EXPECT_EQ(row(away), offload_page_row(name + ", vdnn"));
        EXPECT_EQ(row(chosen), offload_page_row(name + ", free-time with the arena of vdnn"));
      }
    }
  }
}

}  // namespace foreshard::tensor_offload_test
