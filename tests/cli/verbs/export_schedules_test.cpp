// Schedules and transfers between stages in the words of frameworks.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "cli/parts/framework_words.h"
#include "core/cluster_file/cluster_file.h"
#include "strategy/resolve/resolve.h"
#include "strategy/schedule/schedule.h"

namespace foreshard {

// PyTorch's own classes by their names; of the others it is said that no option has them.
TEST(FrameworkExport, SchedulesThatPyTorchHas) {
  const std::map<Schedule, std::string> classes = {{Schedule::GPipe, "GPipe"},
                                                   {Schedule::OneFOneB, "1F1B"},
                                                   {Schedule::Interleaved, "Interleaved1F1B"},
                                                   {Schedule::LoopedBfs, "LoopedBFS"},
                                                   {Schedule::InterleavedZeroBubble, "InterleavedZeroBubble"},
                                                   {Schedule::ZeroBubbleV, "ZBVZeroBubble"},
                                                   {Schedule::DualPipeV, "DualPipeV"}};
  for (const ScheduleEntry& entry : schedules())
    for (const char* framework : {"torchtitan", "megatron"}) {
      if (entry.id == Schedule::Listed) continue;
      Strategy s{
          .dp = 2, .pp = 4, .pipeline = {.schedule = entry.id}, .batch = {.micro = 1, .global = 32}, .framework = framework};
      s.virtual_stages = entry.chunks == Chunks::One ? 1 : 2, s.optimizer.clip_norm = 0, s.zero.stage = 0;
      const Model model = load_model("llama-3-8b");
      auto answer = resolve(model, load_cluster("dgx-h100"), s);
      if (!std::holds_alternative<Strategy>(answer)) continue;
      const auto out = framework_export(model, std::get<Strategy>(answer));
      ASSERT_TRUE(out.has_value());
      const bool has = framework == std::string("torchtitan")
                           ? classes.contains(entry.id)
                           : entry.id == Schedule::OneFOneB || entry.id == Schedule::Interleaved;
      EXPECT_EQ(std::ranges::count(out->notes, "no option says the schedule " + entry.name), has ? 0 : 1)
          << framework << entry.name;
      if (framework == std::string("torchtitan") && has) {
        EXPECT_EQ(std::ranges::count(out->lines, "pipeline_parallel_schedule = \"" + classes.at(entry.id) + "\""), 1)
            << entry.name;
      }
    }
}

// Megatron overlaps micro-batches where all-to-alls of experts are to be hidden, of stages only if they are interleaved.
TEST(FrameworkExport, CellsAreMegatronsOverlapOfExperts) {
  struct Case {
    int pp, virtual_stages, ep;
    bool said;
  };
  for (const Case& of : {Case{1, 1, 8, true}, Case{2, 2, 4, true}, Case{2, 1, 4, false}, Case{1, 1, 1, false}}) {
    Strategy s{.dp = 8 / of.pp, .pp = of.pp, .virtual_stages = of.virtual_stages, .experts = {.ep = of.ep}};
    s.batch = {.micro = 1, .global = 64}, s.framework = "megatron";
    s.communication.overlap = Overlap{.tp = true};
    s.pipeline.schedule = of.virtual_stages > 1 ? Schedule::InterleavedCells : Schedule::OneFOneBCells;
    s.pipeline.delay_wgrad = true;
    const Model model = load_model("qwen3-30b-a3b");
    const auto answer = resolve(model, load_cluster("dgx-h100"), s);
    ASSERT_TRUE(std::holds_alternative<Strategy>(answer)) << std::get<Infeasible>(answer).reason;
    const auto out = framework_export(model, std::get<Strategy>(answer));
    ASSERT_TRUE(out.has_value());
    EXPECT_EQ(std::ranges::count(out->lines, "--overlap-moe-expert-parallel-comm"), of.said ? 1 : 0) << of.pp << of.ep;
    EXPECT_EQ(std::ranges::count(out->lines, "--delay-wgrad-compute"), of.said ? 1 : 0) << of.pp << of.ep;
    EXPECT_EQ(std::ranges::count(out->notes, "delayed weight gradients were simulated"), of.said ? 0 : 1);
    EXPECT_EQ(std::ranges::count(out->notes, std::string("no option says the schedule ") + name_of(*s.pipeline.schedule)),
              of.said ? 0 : 1);
  }
}

// Megatron core has no option that splits transfers; DeepSpeed splits them unless it is told not to.
TEST(FrameworkExport, TransfersThatTheFrameworkSendsOtherwiseAreNoted) {
  const auto noted = [](const char* framework, Transfers transfers) {
    Strategy s{.tp = 2, .pp = 2, .batch = {.global = 8}, .framework = framework};
    s.communication.transfers = transfers;
    const Model model = load_model("gpt2-355m");
    const auto out = framework_export(model, std::get<Strategy>(resolve(model, load_cluster("dgx-a100"), s)));
    return std::ranges::any_of(out->notes, [](const std::string& note) {
      return note.find("split transfers") != std::string::npos || note.find("whole transfers") != std::string::npos;
    });
  };
  EXPECT_FALSE(noted("megatron", Transfers::Whole));
  EXPECT_TRUE(noted("megatron", Transfers::Split));
  EXPECT_TRUE(noted("deepspeed", Transfers::Whole));
  EXPECT_FALSE(noted("deepspeed", Transfers::Split));
}

}  // namespace foreshard
