#include "strategy/residency/tensor_offload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <random>

#include "tests/strategy/residency/support_page.h"

namespace foreshard::tensor_offload_test {

namespace {

// Forwards 0 .. layers-1 of `forward` seconds and their backwards of twice as many; the result of layer i is the input of layer i+1, whose
// backward reads it.
TensorJob chain(const std::vector<double>& forward, const std::vector<std::int64_t>& bytes, PcieLink link) {
  const int layers = static_cast<int>(forward.size());
  TensorJob job = {.link = link};
  for (int i = 0; i < layers; ++i) job.operations.push_back({{forward[static_cast<std::size_t>(i)]}, {}});
  for (int i = layers - 1; i >= 0; --i) job.operations.push_back({{2 * forward[static_cast<std::size_t>(i)]}, {}});
  for (int i = 0; i + 1 < layers; ++i)
    job.tensors.push_back({{bytes[static_cast<std::size_t>(i)]}, i, i + 1, 2 * layers - 2 - i, true});
  return job;
}

// t0 of 10 B and t1 of 20 B, three layers of 1 s, backwards of 2 s, copies at 10 B/s.
TensorJob three_layers() { return chain({1, 1, 1}, {10, 20}, {{0}, {10}}); }

struct Best {
  std::optional<double> end = {};
  std::int64_t least_peak = std::numeric_limits<std::int64_t>::max();
};
void try_all(const TensorJob& job, Bytes budget, std::vector<TensorChoice>& choices, std::size_t t, Best& best) {
  if (t == choices.size()) {
    for (const bool waits : {false, true}) {
      const TensorTiming timing = tensor_timing(job, choices, waits);
      best.least_peak = std::min(best.least_peak, timing.peak.value);
      if (timing.peak <= budget) best.end = std::min(best.end.value_or(timing.end.value), timing.end.value);
    }
    return;
  }
  choices[t] = {};
  try_all(job, budget, choices, t + 1, best);
  for (int op = job.tensors[t].last_forward_use + 1; op <= job.tensors[t].used_again_by; ++op) {
    choices[t] = {op};
    try_all(job, budget, choices, t + 1, best);
  }
  choices[t] = {};
}
Best best_of_all(const TensorJob& job, Bytes budget) {
  Best best;
  std::vector<TensorChoice> choices(job.tensors.size());
  try_all(job, budget, choices, 0, best);
  return best;
}

class Instances {
 public:
  TensorJob next(int most_layers) {
    std::vector<double> forward;
    std::vector<std::int64_t> bytes;
    const int layers = number(2, most_layers);
    for (int i = 0; i < layers; ++i) {
      forward.push_back(number(1, 6));
      bytes.push_back(number(1, 12));
    }
    TensorJob job = chain(forward, bytes, {{number(0, 2) * 0.25}, {static_cast<double>(number(1, 8))}});
    for (TimedOperation& operation : job.operations) operation.others = {number(0, 4)};
    for (HeldTensor& tensor : job.tensors) tensor.convolution_input = number(0, 1) == 1;
    return job;
  }
  int number(int least, int most) { return least + static_cast<int>(random_() % static_cast<unsigned>(most - least + 1)); }

 private:
  std::mt19937 random_{31};
};

TensorPlan kept(const TensorJob& job) {
  TensorPlan plan = {.choices = std::vector<TensorChoice>(job.tensors.size())};
  plan.timing = tensor_timing(job, plan.choices, false);
  return plan;
}

// VGG-16 (Simonyan and Zisserman 2014, configuration D) on 224 x 224 pixels: convolutions of 3 x 3, pools of 2 x 2. `samples` in 32 bits,
// 10 TFLOP/s, 12 GB/s. The input of each operation is read again by its backward.
TensorJob vgg16(std::int64_t samples) {
  TensorJob job = {.link = {{10e-6}, {12e9}}};
  struct Layer {
    std::int64_t outputs = 0;  // elements of one sample
    double flops = 0;
    bool convolution = false;
  };
  std::vector<Layer> layers;
  std::int64_t channels = 3, side = 224;
  for (const std::int64_t width : {64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0}) {
    if (width == 0) {
      side /= 2;
      layers.push_back({channels * side * side, 1.0 * static_cast<double>(4 * channels * side * side), false});
    } else {
      layers.push_back({width * side * side, 2.0 * static_cast<double>(9 * channels * width * side * side), true});
      channels = width;
    }
  }
  const int count = static_cast<int>(layers.size());
  const auto seconds = [&](const Layer& layer) { return Seconds{layer.flops * static_cast<double>(samples) / 10e12}; };
  for (const Layer& layer : layers) job.operations.push_back({seconds(layer), {}});
  for (int i = count - 1; i >= 0; --i) job.operations.push_back({2 * seconds(layers[static_cast<std::size_t>(i)]), {}});
  for (int i = 0; i + 1 < count; ++i)
    job.tensors.push_back({{layers[static_cast<std::size_t>(i)].outputs * samples * 4},
                           i,
                           i + 1,
                           2 * count - 2 - i,
                           layers[static_cast<std::size_t>(i + 1)].convolution});
  return job;
}

}  // namespace

// F0 [0 1], F1 [1 2], F2 [2 3], B2 [3 5], B1 [5 7], B0 [7 9]: t0 [0 7], t1 [1 5].
TEST(TensorTiming, KeptTensors) {
  const TensorTiming timing = tensor_timing(three_layers(), {{}, {}}, false);
  EXPECT_EQ(timing.end, Seconds{9});
  EXPECT_EQ(timing.peak, Bytes{30});
  EXPECT_EQ(timing.starts, (std::vector<Seconds>{{0}, {1}, {2}, {3}, {5}, {7}}));
}

// t0 is sent beside F1 [1 2] and fetched at B2 [3 4]: from 2 to 3 only t1 is there, and nothing waits.
TEST(TensorTiming, SentBesideItsReaderAndFetchedEarly) {
  TensorJob job = three_layers();
  EXPECT_EQ(tensor_timing(job, {{3}, {}}, false).end, Seconds{9});
  EXPECT_EQ(tensor_timing(job, {{3}, {}}, false).sent[0], Seconds{2});
  job.operations[2].others = {100};  // at F2
  EXPECT_EQ(tensor_timing(job, {{3}, {}}, false).peak, Bytes{120});
}

// On demand: B1 would start at 5, the copy is done at 6. t1 sent by F2 [2 4], fetched at B2: the copy begins at 4, is done at 6.
TEST(TensorTiming, ComputeWaitsForItsTensor) {
  EXPECT_EQ(tensor_timing(three_layers(), {{4}, {}}, false).end, Seconds{10});
  EXPECT_EQ(tensor_timing(three_layers(), {{}, {3}}, false).end, Seconds{12});
}

// Nobody but F0 reads t0 in the forward: its copy begins when F0 is done, [1 2].
TEST(TensorTiming, WhatIsMadeIsSentWhenItIsThere) {
  TensorJob job = three_layers();
  job.tensors[0].last_forward_use = 0;
  EXPECT_EQ(tensor_timing(job, {{4}, {}}, false).sent[0], Seconds{2});
}

// A copy of 0.1 s beside F1: the tensor is there until F1 is done, at 2, and from 3 on, to 7. t1 [1 5].
TEST(TensorTiming, ATensorStaysForItsReader) {
  TensorJob job = three_layers();
  job.link.bandwidth = {100};
  EXPECT_DOUBLE_EQ(tensor_timing(job, {{3}, {}}, false).byte_seconds, 10 * 2 + 10 * 4 + 20 * 4);
}

// Both are fetched at B3 of a chain of four, which begins at 4: t0 [4 5] and t1 behind it [5 7]; t1's reader B2 would begin at 6.
TEST(TensorTiming, FetchesQueue) {
  const TensorJob job = chain({1, 1, 1, 1}, {10, 20, 1}, {{0}, {10}});
  EXPECT_EQ(tensor_timing(job, {{4}, {4}, {}}, false).starts[5], Seconds{7});
}

// Waiting: F2 ends at 4, when t1 is in host memory; B2 fetches it [4 6] and runs to 8.
TEST(TensorTiming, WaitingForCopies) { EXPECT_EQ(tensor_timing(three_layers(), {{}, {3}}, true).end, Seconds{12}); }

// A slow link, 5 B/s: F1 with t0's copy [1 3], B2 [4 6] with t0's fetch [4 6]; without waiting the step is a second shorter.
TEST(TensorTiming, EachOperationIsAsLongAsItsCopies) {
  TensorJob job = three_layers();
  job.link.bandwidth = {5};
  EXPECT_EQ(tensor_timing(job, {{3}, {}}, true).end, Seconds{10});
  EXPECT_EQ(tensor_timing(job, {{3}, {}}, false).end, Seconds{9});
}

// The last tensor is read by the operations that make it and that follow it: nothing runs in between, so it stays.
TEST(Vdnn, SendsInputsOfConvolutionsAndFetchesOneAhead) {
  TensorJob job = chain({1, 1, 1, 1}, {10, 20, 5}, {{0}, {10}});
  job.tensors[0].convolution_input = false;
  EXPECT_EQ(vdnn_offload(job, VdnnScope::All).choices, (std::vector<TensorChoice>{{5}, {4}, {}}));
  EXPECT_EQ(vdnn_offload(job, VdnnScope::ConvolutionInputs).choices, (std::vector<TensorChoice>{{}, {4}, {}}));
  EXPECT_TRUE(vdnn_offload(job, VdnnScope::All).waits_for_copies);
}

// F3 needs 20 B beside t0, t1 and t2: 41, so t0 or t1 has to be away. t0 is in host memory at 2 and fetched at 7 for B1, 5 s; t1 at 3
// and 5, 2 s. Neither would make the step longer.
TEST(FreeTime, TheLongestFreeTimeGoesFirst) {
  TensorJob job = chain({1, 1, 1, 1}, {10, 10, 1}, {{0}, {10}});
  job.operations[3].others = {20};
  const auto plan = std::get<TensorPlan>(free_time_offload(job, {31}));
  EXPECT_EQ(plan.choices, (std::vector<TensorChoice>{{5}, {}, {}}));  // B2 begins at 6 and B1 at 8
  EXPECT_EQ(plan.timing.end, Seconds{12});
  EXPECT_EQ(std::get<TensorPlan>(free_time_offload(job, {100})), kept(job));
}

// Two tensors made by F0 and read by F1; F2 needs room. B2, with the later reader's, has 2 s more.
TEST(FreeTime, ItIsTheTimeThatCounts) {
  TensorJob job = {.operations = {{{1}, {}}, {{3}, {}}, {{1}, {50}}, {{2}, {}}, {{2}, {}}}, .link = {{0}, {10}}};
  job.tensors = {{{10}, 0, 1, 3}, {{10}, 0, 1, 4}};
  const auto plan = std::get<TensorPlan>(free_time_offload(job, {60}));
  EXPECT_EQ(plan.choices, (std::vector<TensorChoice>{{}, {3}}));
}

// Before its reader B1, at 5, are two operations that take no time: a fetch of 1 s has to begin with B4 [3 5].
TEST(FreeTime, AFetchBeginsInTime) {
  TensorJob job = chain({1, 1, 0, 0, 1}, {20, 1, 1, 1}, {{0}, {20}});
  job.operations[4].others = {50};
  const auto plan = std::get<TensorPlan>(free_time_offload(job, {55}));
  EXPECT_EQ(plan.choices[0], TensorChoice{5});
  EXPECT_EQ(plan.timing.end, Seconds{9});
}

TEST(FreeTime, NeverSlowerThanSendingEverythingAtEqualPeak) {
  Instances instances;
  int faster = 0;
  for (int i = 0; i < 300; ++i) {
    const TensorJob job = instances.next(9);
    const TensorPlan everything = vdnn_offload(job, VdnnScope::All);
    const auto plan = std::get<TensorPlan>(free_time_offload(job, everything.timing.peak));
    EXPECT_LE(plan.timing.peak, everything.timing.peak) << i;
    EXPECT_LE(plan.timing.end, everything.timing.end) << i;
    EXPECT_EQ(plan.timing, tensor_timing(job, plan.choices, plan.waits_for_copies));
    faster += plan.timing.end < everything.timing.end ? 1 : 0;
  }
  EXPECT_GT(faster, 50);
}

TEST(FreeTime, IsNearTheBestOfAllChoices) {
  Instances instances;
  PlanQuality quality;
  for (int i = 0; i < 150; ++i) {
    const TensorJob job = instances.next(5);
    const std::int64_t least = best_of_all(job, {}).least_peak, most = kept(job).timing.peak.value;
    for (const std::int64_t part : {0, 1, 2, 3}) {
      const Bytes budget = {least + (most - least) * part / 4};
      const auto result = free_time_offload(job, budget);
      const auto* plan = std::get_if<TensorPlan>(&result);
      if (plan == nullptr) {
        ADD_FAILURE() << "instance " << i << " part " << part << ": " << std::get<Infeasible>(result).reason;
        continue;
      }
      EXPECT_LE(plan->timing.peak, budget);
      const double ratio = plan->timing.end.value / *best_of_all(job, budget).end;
      EXPECT_GE(ratio, 1 - 1e-12);
      quality.add(ratio);
    }
  }
  EXPECT_LE(quality.mean(), 1.01);
  EXPECT_LE(quality.worst, 1.25);
  EXPECT_EQ(quality.row(), offload_page_row("tensors by free time"));
}

TEST(FreeTime, InfeasibleSaysTheSmallestPeak) {
  const TensorJob job = chain({1, 1}, {3 << 20, 0}, {{0}, {10}});  // nothing between its two uses
  const auto result = free_time_offload(job, {1 << 20});
  EXPECT_EQ(std::get<Infeasible>(result).reason, "sending tensors to host memory reaches 3.00 MiB, the budget is 1.00 MiB");
}

TEST(FreeTime, Vgg16) {
  const TensorJob job = vgg16(64);
  const TensorPlan everything = vdnn_offload(job, VdnnScope::All);
  const auto plan = std::get<TensorPlan>(free_time_offload(job, everything.timing.peak));
  EXPECT_LE(plan.timing.peak, everything.timing.peak);
  EXPECT_LT(plan.timing.end, everything.timing.end);
  const auto row = [](const TensorPlan& of) {
    char text[64];
    std::snprintf(text, sizeof text, "%.2f | %.0f |", in_gib(of.timing.peak), of.timing.end.value * 1000);
    return std::string(text);
  };
  EXPECT_EQ(row(kept(job)), offload_page_row("keep everything"));
  EXPECT_EQ(row(everything), offload_page_row("vDNN, all tensors"));
  EXPECT_EQ(row(vdnn_offload(job, VdnnScope::ConvolutionInputs)), offload_page_row("vDNN, inputs of convolutions"));
  EXPECT_EQ(row(plan), offload_page_row("free time, within the peak of vDNN"));
}

}  // namespace foreshard::tensor_offload_test
