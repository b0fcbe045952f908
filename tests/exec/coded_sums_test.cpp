// Sums of gradients in codes where they are cut (ZeRO), where some ranks add theirs before, where a stage is on two ranks, and where stages are
// updated between backwards: nothing is lost, replicas stay equal, and a training that is saved and resumed goes on with the same bits.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/plan/ranks.h"
#include "core/strategy/compression.h"
#include "exec/data/checkpoint.h"
#include "exec/data/safetensors.h"
#include "tests/exec/checkpoint_folder.h"
#include "tests/exec/training.h"
#include "tests/how_many.h"

namespace foreshard::coded_sums_test {
namespace {

const Compression kEightBits{.codec = Codec::EightBit}, kSegments{.codec = Codec::Segmented, .bits = 8},
    kSigns{.codec = Codec::OneBit, .warm_up = 1}, kLargest{.codec = Codec::Dgc, .kept = 0.1};

Model two_layers() {
  Model model = tiny_gpt(false);
  std::get<Transformer>(model.shape).layers = 2;
  return model;
}

struct Case {
  const char* name = "";
  Strategy strategy = {};
  bool whole_steps = true;  // one sum of all micro-batches: dgc chooses among their gradients
  bool synchronous = true;
};
std::vector<Case> cases() {
  const auto zero = [](int stage, int tp = 1, int pp = 1) {
    return Strategy{.dp = 2, .tp = tp, .pp = pp, .batch = {.micro = 1}, .zero = {.stage = stage}};
  };
  const auto scheduled = [](Schedule schedule, int dp, int pp) {
    Strategy s{.dp = dp, .pp = pp, .batch = {.micro = 1, .global = 8}};
    s.pipeline.schedule = schedule;
    return s;
  };
  const auto nodes_of_two = [](Strategy s, bool at_end = false) {
    s.communication.compress_group = 2;
    if (at_end) s.communication.overlap = Overlap{.gradients = false};
    return s;
  };
  Strategy each = zero(2);
  each.communication.overlap = Overlap{.gradients = false};
  return {{"whole", zero(0)},
          {"zero 1", zero(1)},
          {"zero 1 over four", {.dp = 4, .batch = {.micro = 1}, .zero = {.stage = 1}}},
          {"zero 1 tp pp", zero(1, 2, 2)},
          {"zero 2", zero(2), false},
          {"zero 2 in turn", each, false},
          {"zero 3 tp", zero(3, 2), false},
          {"nodes of two", nodes_of_two({.dp = 4, .batch = {.micro = 1}})},
          {"nodes of two, at the end", nodes_of_two({.dp = 4, .batch = {.micro = 1, .global = 8}}, true)},
          {"nodes of two, four", nodes_of_two({.dp = 8, .batch = {.micro = 1}})},
          {"nodes of three, padded",
           [] {
             Strategy s{.dp = 6, .batch = {.micro = 1, .global = 12}};
             s.communication.compress_group = 3;
             return s;
           }()},
          {"nodes of two cp", nodes_of_two({.dp = 2, .cp = 2, .batch = {.micro = 1}})},
          {"nodes of two tp", nodes_of_two({.dp = 4, .tp = 2, .batch = {.micro = 1}})},
          {"nodes of two pp", nodes_of_two({.dp = 4, .pp = 2, .batch = {.micro = 1, .global = 8}})},
          {"nodes of two pipedream", nodes_of_two(scheduled(Schedule::PipeDream, 4, 2)), true, false},
          {"chimera", scheduled(Schedule::Chimera, 1, 2)},
          {"chimera dp 2", scheduled(Schedule::Chimera, 2, 2)},
          {"dualpipe", scheduled(Schedule::DualPipe, 1, 2)},
          {"pipedream", scheduled(Schedule::PipeDream, 2, 2), true, false},
          {"pipedream-2bw", scheduled(Schedule::PipeDream2BW, 2, 2), true, false},
          {"pipemare", scheduled(Schedule::PipeMare, 2, 2), true, false}};
}

Plan plan_of(const Case& one, const Compression& codec, OptimizerKind optimizer = OptimizerKind::Sgd, double momentum = 0) {
  Strategy s = in_double(one.strategy);
  s.optimizer.kind = optimizer, s.optimizer.momentum = momentum, s.optimizer.clip_norm = 0;
  s.communication.gradients = codec, s.communication.bucket = {100'000};
  return lowered(two_layers(), s);
}

std::vector<Compression> codecs_of(const Case& one) {
  std::vector<Compression> all = {kEightBits, kSegments, kSigns};
  if (one.whole_steps) all.push_back(kLargest);
  return all;
}

struct CodedSumsIn : CheckpointFolder {
  // Of every tensor, what all ranks have left out of its gradient: by the places that the gradient's buffer says.
  std::map<std::string, std::vector<double>> left_out(const Plan& plan, const std::string& checkpoint) const {
    const Ranks ranks(plan);
    SafetensorsFile file(checkpoint);
    std::map<std::string, std::vector<double>> all;
    for (std::int32_t rank = 0; rank < ranks.count(); ++rank) {
      const Role& role = plan.roles[ranks.role({rank}).index()];
      for (const Buffer& buffer : role.buffers) {
        const std::string kind = "gradients", of = "rank " + std::to_string(rank) + ": left out";
        if (!buffer.name.starts_with(kind + ".") || !buffer.resident) continue;
        const std::string unit = buffer.name.substr(kind.size());
        if (!file.has(of + unit)) continue;
        const std::vector<double> left = file.read(of + unit);
        const std::vector<double> sum =
            file.has(of + " of sum" + unit) ? file.read(of + " of sum" + unit) : std::vector<double>();
        // The rank's place among those of a group: the last one has the last part.
        const auto place_in = [&](const std::string& name) -> std::int64_t {
          const auto group = std::ranges::find_if(plan.groups, [&](const Group& g) {
            return g.name == name && (g.roles.empty() || std::ranges::count(g.roles, ranks.role({rank})) > 0);
          });
          if (group == plan.groups.end()) return -1;
          const std::vector<RankId> members =
              ranks.members({static_cast<std::int32_t>(group - plan.groups.begin())}, RankId{rank});
          return std::ranges::find(members, RankId{rank}) - members.begin();
        };
        const bool adds_first = place_in("sums before codes") >= 0;
        const std::int64_t place = place_in(adds_first ? "codes" : "data");
        const std::int64_t part = adds_first ? place_in("sums before codes") * static_cast<std::int64_t>(left.size()) : 0;
        for (const Shard& shard : buffer.holds) {
          if (!shard.split_by.empty()) continue;  // of one tensor-parallel rank
          const Tensor& tensor = plan.tensors[shard.tensor.index()];
          std::size_t size = 1;
          for (const std::int64_t dim : tensor.shape) size *= static_cast<std::size_t>(dim);
          std::vector<double>& here = all[tensor.name];
          here.resize(size);
          const std::int64_t first = shard.at.value / size_of(buffer.dtype).value;
          for (std::size_t i = 0; i < size; ++i) {
            const std::int64_t at = first + static_cast<std::int64_t>(i) - part;
            if (at < 0 || (adds_first && at >= static_cast<std::int64_t>(left.size()))) continue;  // of another rank's part
            here[i] += left.at(static_cast<std::size_t>(at));
            const std::int64_t own = at - place * static_cast<std::int64_t>(sum.size());
            if (own >= 0 && own < static_cast<std::int64_t>(sum.size())) here[i] += sum[static_cast<std::size_t>(own)];
          }
        }
      }
    }
    return all;
  }
};

// What was summed and what was left out are the true sum. The gradients of the first step are those of the same weights with every codec.
TEST_F(CodedSumsIn, SentAndLeftOutAreTheTrueSum) {
  int tensors = 0;
  for (const Case& one : cases()) {
    if (one.strategy.tp > 1 || !one.synchronous) continue;
    const Execution plain = run(plan_of(one, {}), training(1));
    for (const Compression& codec : codecs_of(one)) {
      if (codec.codec == Codec::EightBit) continue;  // keeps nothing
      ExecuteOptions options = training(1);
      options.save = file("one");
      const Plan plan = plan_of(one, codec);
      const Execution coded = run(plan, options);
      const auto left = left_out(plan, options.save);
      EXPECT_FALSE(left.empty()) << one.name;
      for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
        const auto found = left.find(plan.tensors[t].name);
        if (found == left.end()) continue;
        double wrong = 0, largest = 0, apart = 0;
        for (std::size_t i = 0; i < found->second.size(); ++i) {
          const double sent = coded.gradients[t].elements[i], whole = plain.gradients[t].elements[i];
          wrong = std::max(wrong, std::abs(sent + found->second[i] - whole));
          largest = std::max(largest, std::abs(whole)), apart = std::max(apart, std::abs(sent - whole));
        }
        EXPECT_LE(wrong, 1e-12 * largest) << one.name << " " << to_text(codec) << " " << plan.tensors[t].name;
        EXPECT_GT(apart, 1e-5 * largest) << one.name << " " << to_text(codec) << " " << plan.tensors[t].name;
        ++tensors;
      }
    }
  }
  EXPECT_GE(tensors, 100);
}

// The reference of one device, step after step: it goes on from the weights that the coded training saved, and its gradient is what the ranks
// sent, and left out, less what they had left out before.
TEST_F(CodedSumsIn, EveryStepIsThatOfOneDeviceWithWhatWasLeftOut) {
  int compared = 0;
  for (const Case& one : cases()) {
    if (one.strategy.tp > 1 || !one.synchronous) continue;
    for (const Compression& codec : codecs_of(one)) {
      if (codec.codec == Codec::EightBit) continue;  // keeps nothing
      const Plan plan = plan_of(one, codec);
      Case whole{"one device", {.dp = 1, .batch = {.micro = 1, .global = plan.samples}}};
      const Plan alone = plan_of(whole, {});
      std::map<std::string, std::vector<double>> before;
      std::string last;
      for (int step = 0; step < how_many(2, 5); ++step) {
        SCOPED_TRACE(std::string(one.name) + " " + to_text(codec) + ", step " + std::to_string(step));
        ExecuteOptions options = training(1), reference = training(1);
        options.resume = reference.resume = last;
        options.save = last = file("step " + std::to_string(step));
        const Execution coded = run(plan, options), expected = run(alone, reference);
        EXPECT_NEAR(coded.steps.back().loss, expected.steps.back().loss, 1e-12 * expected.steps.back().loss);
        auto left = left_out(plan, options.save);
        ASSERT_FALSE(left.empty());
        for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
          const std::string& name = plan.tensors[t].name;
          const auto now = left.find(name);
          if (now == left.end()) continue;
          const auto same = std::ranges::find(alone.tensors, name, &Tensor::name);
          ASSERT_NE(same, alone.tensors.end()) << name;
          const std::vector<double>&sent = coded.gradients[t].elements,
                &whole_sum = expected.gradients[static_cast<std::size_t>(same - alone.tensors.begin())].elements;
          const std::vector<double>& then = before[name];
          double wrong = 0, largest = 0;
          for (std::size_t i = 0; i < now->second.size(); ++i) {
            const double sum = sent[i] + now->second[i] - (then.empty() ? 0 : then[i]);
            wrong = std::max(wrong, std::abs(sum - whole_sum[i])), largest = std::max(largest, std::abs(whole_sum[i]));
          }
          EXPECT_LE(wrong, 1e-11 * largest) << name;
          ++compared;
        }
        before = std::move(left);
      }
    }
  }
  EXPECT_GE(compared, 200);
}

// With eight bits each number is within 1/127 of the largest of its 256, twice where it is encoded twice.
TEST_F(CodedSumsIn, TrainsWithinTheErrorOfTheCode) {
  for (const Case& one : some_of(cases(), 5)) {
    const Execution plain = run(plan_of(one, {}), training(3));
    for (const Compression& codec : codecs_of(one)) {
      const Execution coded = run(plan_of(one, codec), training(3));
      const Difference apart = difference(coded, plain);
      const bool fine = codec.codec == Codec::EightBit || codec.codec == Codec::Segmented;
      EXPECT_GT(apart.gradients, 1e-6) << one.name << " " << to_text(codec);
      if (fine) {
        EXPECT_LT(apart.gradients, 0.06) << one.name << " " << to_text(codec) << " " << apart.worst;
      }
      EXPECT_LT(apart.loss, 0.01) << one.name << " " << to_text(codec);
      for (std::size_t t = 0; t < coded.values.size(); ++t)
        EXPECT_EQ(coded.values[t].largest_difference, 0)
            << one.name << " " << to_text(codec) << " " << coded.result.plan.tensors[t].name;
    }
  }
}

// What codes make of the padding of a part would grow with every step, and the range of the numbers with it.
TEST_F(CodedSumsIn, PaddingStaysNothing) {
  const std::vector<Case> all = cases();
  const auto padded =
      std::ranges::find_if(all, [](const Case& one) { return one.name == std::string("nodes of three, padded"); });
  ASSERT_NE(padded, all.end());
  const Execution plain = run(plan_of(*padded, {}), training(25)), coded = run(plan_of(*padded, kSegments), training(25));
  EXPECT_NEAR(coded.steps.back().loss, plain.steps.back().loss, 0.01 * plain.steps.back().loss);
  EXPECT_LT(difference(coded, plain).gradients, 0.1) << difference(coded, plain).worst;
}

// Everything is sent: the sum as it is. Two members add in the same order.
TEST_F(CodedSumsIn, EverythingKeptIsTheSumAsItIs) {
  for (const Case& one : cases()) {
    if (!one.whole_steps || one.strategy.dp / std::max(1, one.strategy.communication.compress_group) > 2) continue;
    const Execution plain = run(plan_of(one, {}), training(2)),
                    all = run(plan_of(one, {.codec = Codec::Dgc, .kept = 1}), training(2));
    EXPECT_LE(difference(all, plain).largest(), 1e-6) << one.name << " " << difference(all, plain).worst;  // pairs are fp32
  }
}

// Two steps and two more are four steps, to the bit: what was left out and the velocity go through the file.
TEST_F(CodedSumsIn, ResumedRunsHaveTheSameBits) {
  for (const Case& one : some_of(cases(), 4)) {
    for (const Compression& codec : {kSegments, one.whole_steps ? kLargest : kSigns}) {
      const Plan plan = plan_of(one, codec, OptimizerKind::Sgd, 0.9);
      const Execution four = run(plan, training(4));
      ExecuteOptions first = training(2), rest = training(2);
      first.save = rest.resume = file("two");
      run(plan, first);
      Execution end = four;
      end.steps.erase(end.steps.begin(), end.steps.begin() + 2);
      EXPECT_EQ(difference(run(plan, rest), end).largest(), 0) << one.name << " " << to_text(codec);
    }
  }
}

// Another number of ranks, or other buckets, has other places for them: nothing left out is where it begins.
TEST_F(CodedSumsIn, AnotherLayoutBeginsWithNothingLeftOut) {
  const Case two = cases()[0];
  Case four = two;
  four.strategy.dp = 4;
  ExecuteOptions first = training(2), rest = training(1);
  first.save = rest.resume = file("two"), rest.save = file("three");
  run(plan_of(two, kSegments), first);
  EXPECT_TRUE(SafetensorsFile(first.save).has("rank 1: left out.0.0"));
  const Execution other = run(plan_of(four, kSegments), rest);
  EXPECT_TRUE(SafetensorsFile(rest.save).has("rank 3: left out.0.0"));
  EXPECT_EQ(other.first_step, 2);
  run(plan_of(two, {}), {.steps = 1, .resume = first.save});  // as it does without codes
}

}  // namespace
}  // namespace foreshard::coded_sums_test
