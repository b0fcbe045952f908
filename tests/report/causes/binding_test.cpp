#include "report/causes/binding.h"

#include <gtest/gtest.h>

#include <random>

#include "core/base/error.h"
#include "tests/report/played.h"

namespace foreshard::binding_test {
namespace {

using namespace played;

const Instruction& instruction_of(const Result& result, std::int32_t span) {
  const Span& s = result.trace.spans[static_cast<std::size_t>(span)];
  const Role& role = result.plan.roles[result.trace.classes[s.who.index()].role.index()];
  const SegmentId segment = role.actions[static_cast<std::size_t>(s.action)].segment;
  return result.plan.segments[segment.index()].instructions[static_cast<std::size_t>(s.instruction)];
}

// Two stages, one micro-batch, transfers of one unit: everything lies on one line.
//
//   stage 0  [F]                  [I][W]        receives are posted at 0 and wait for the sender
//   wire        [~]            [~]
//   stage 1        [F][I][W]
TEST(Binding, TheChainOfOneMicrobatchGoesThroughBothStages) {
  const Result result = result_of({.p = 2, .m = 1, .latency = 1, .unit = 10});
  const auto chain = critical_chain(result.trace, bind_spans(result.plan, result.trace));
  std::vector<std::string> names;
  std::vector<int> stages, begins;
  for (const ChainStep& link : chain) {
    names.push_back(instruction_of(result, link.span).name);
    stages.push_back(result.trace.spans[static_cast<std::size_t>(link.span)].who.value);
    begins.push_back(static_cast<int>(link.begin.value));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"forward", "receive", "forward", "input gradient", "weight gradient", "receive",
                                             "input gradient", "weight gradient"}));
  EXPECT_EQ(stages, (std::vector<int>{0, 1, 1, 1, 1, 0, 0, 0}));
  EXPECT_EQ(begins, (std::vector<int>{0, 10, 20, 30, 40, 50, 60, 70}));
  EXPECT_EQ(result.trace.makespan.value, 80);
}

TEST(Binding, AReceiveIsHeldUpByItsSender) {
  const Result result = result_of({.p = 2, .m = 1, .latency = 1});
  const auto bindings = bind_spans(result.plan, result.trace);
  int seen = 0;
  for (std::int32_t s = 0; s < static_cast<std::int32_t>(bindings.size()); ++s) {
    const Binding& binding = bindings[static_cast<std::size_t>(s)];
    if (instruction_of(result, s).name == "send") {
      EXPECT_EQ(binding.peer, -1);
    }
    if (instruction_of(result, s).name != "receive") continue;
    ++seen;
    ASSERT_GE(binding.peer, 0);
    EXPECT_EQ(instruction_of(result, binding.peer).name, "send");
    EXPECT_NE(result.trace.spans[static_cast<std::size_t>(binding.peer)].who,
              result.trace.spans[static_cast<std::size_t>(s)].who);
    EXPECT_EQ(result.trace.spans[static_cast<std::size_t>(binding.before)].end,
              result.trace.spans[static_cast<std::size_t>(s)].begin);
  }
  EXPECT_EQ(seen, 2);
}

// The update waits through an event of an earlier action and through `after`: last backward -> reduction -> update.
TEST(Binding, EventsAndAfterAreFollowed) {
  const Result result = result_of({.p = 1, .m = 2, .reduce = 3, .update = 1});
  const auto chain = critical_chain(result.trace, bind_spans(result.plan, result.trace));
  ASSERT_GE(chain.size(), 3u);
  EXPECT_EQ(instruction_of(result, chain[chain.size() - 1].span).name, "update");
  EXPECT_EQ(instruction_of(result, chain[chain.size() - 2].span).name, "reduce gradients");
  EXPECT_EQ(instruction_of(result, chain[chain.size() - 3].span).name, "weight gradient");
}

// A mark may leave no span; what it joins still binds: without the spans of the reduction the update hangs on the
// backward.
TEST(Binding, AnInstructionWithoutSpanPassesOnWhatItWaitedFor) {
  Result result = result_of({.p = 1, .m = 1, .reduce = 3, .update = 1});
  std::erase_if(result.trace.spans, [&](const Span& span) { return span.stream == StreamId{5}; });
  const auto bindings = bind_spans(result.plan, result.trace);
  const std::int32_t update = bindings.back().before;
  EXPECT_EQ(instruction_of(result, static_cast<std::int32_t>(bindings.size()) - 1).name, "update");
  EXPECT_EQ(instruction_of(result, update).name, "weight gradient");
}

// Every step of the chain meets the one before: no hole, no overlap, from 0 to the makespan.
TEST(Binding, TheCriticalChainIsContiguousAndAsLongAsTheRun) {
  std::mt19937 random(7);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int round = 0; round < 150; ++round) {
    Pipeline pipeline = drawn_pipeline(random);
    pipeline.norm = pick(0, 1) != 0 && pipeline.reduce > 0;
    const Slow slow{pick(-1, pipeline.p * pipeline.replicas - 1), 3};
    const Result result = result_of(pipeline, slow.rank >= 0 ? Fold::None : Fold::Roles, slow);
    for (const Trace& trace : {result.trace, merged(result.trace)}) {
      const auto chain = critical_chain(trace, bind_spans(result.plan, trace));
      ASSERT_FALSE(chain.empty());
      EXPECT_EQ(chain.front().begin.value, 0);
      EXPECT_EQ(chain.back().end, trace.makespan);
      for (std::size_t i = 0; i < chain.size(); ++i) {
        const Span& span = trace.spans[static_cast<std::size_t>(chain[i].span)];
        EXPECT_EQ(chain[i].begin, span.begin) << "round " << round;
        EXPECT_EQ(chain[i].end, span.end);
        if (i > 0) {
          EXPECT_EQ(chain[i].begin, chain[i - 1].end);
        }
      }
    }
  }
}

TEST(Binding, ATraceOfAnotherPlanIsRefused) {
  Result result = result_of({.p = 2, .m = 1});
  result.trace.spans[0].action = 99;
  EXPECT_THROW(bind_spans(result.plan, result.trace), Error);
  result = result_of({.p = 2, .m = 1});
  result.trace.spans.back().who = {7};
  EXPECT_THROW(bind_spans(result.plan, result.trace), Error);
  EXPECT_TRUE(critical_chain({}, {}).empty());
}

}  // namespace
}  // namespace foreshard::binding_test
