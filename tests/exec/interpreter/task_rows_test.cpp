// Which computes a device is told to be a row: those that nobody outside can tell apart.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "exec/communicator/thread_communicator.h"
#include "exec/host/host_device.h"
#include "exec/interpreter/rank_steps.h"
#include "tests/exec/training.h"

namespace foreshard::task_rows_test {

namespace {

struct Heard {
  std::vector<const StreamTask*> computes = {};  // in the order in which they were made
  std::vector<TaskRow> rows = {};
};

class Listening : public HostDevice {
 public:
  Listening(const Stop& stop, Heard& heard) : HostDevice(stop, nullptr), heard_(heard) {}
  std::unique_ptr<StreamTask> compute(StreamId stream, const Compute& what, std::span<const Operand> reads,
                                      std::span<const Operand> writes, const OpArguments& arguments) override {
    auto task = HostDevice::compute(stream, what, reads, writes, arguments);
    heard_.computes.push_back(task.get());
    return task;
  }
  std::vector<JoinedTasks> prepare(std::span<const TaskRow> rows) override {
    heard_.rows.assign(rows.begin(), rows.end());
    return {};
  }

 private:
  Heard& heard_;
};

class ListeningRanks : public RankDevices {
 public:
  ListeningRanks(const Stop& stop, std::map<RankId, Heard>& heard) : stop_(stop), heard_(heard), meetings_(stop) {}
  std::unique_ptr<DeviceBackend> device(RankId rank, std::mutex*) override {
    return std::make_unique<Listening>(stop_, heard_[rank]);
  }
  std::unique_ptr<Communicator> communicator(RankId rank, DeviceBackend&) override {
    return std::make_unique<ThreadCommunicator>(meetings_, rank);
  }
  void check() const override { meetings_.check(); }

 private:
  const Stop& stop_;
  std::map<RankId, Heard>& heard_;
  ThreadMeetings meetings_;
};

std::map<RankId, Heard> rows_of(const Plan& plan) {
  std::map<RankId, Heard> heard;
  ExecuteOptions options = training(1);
  options.devices = [&](const Stop& stop) { return std::make_unique<ListeningRanks>(stop, heard); };
  static_cast<void>(run(plan, options));
  return heard;
}

}  // namespace

// But for the first none waits, but for the last none is waited for; one action, one stream, nothing left out between them; and each compute is in one row.
TEST(TaskRows, AreSeenFromOutsideByTheirEndsOnly) {
  std::size_t longest = 0, ended_by_a_record = 0;
  for (const Strategy& strategy :
       std::vector<Strategy>{{.dp = 2, .batch = {.micro = 2}, .zero = {.stage = 3}},
                             {.dp = 2, .tp = 2, .sequence_parallel = true, .batch = {.micro = 2}},
                             {.pp = 2, .pipeline = {.schedule = Schedule::ZeroBubbleH1}, .batch = {.micro = 2}}}) {
    const Plan plan = lowered(tiny_gpt(), in_double(strategy));
    const Ranks ranks(plan);
    for (const auto& [rank, heard] : rows_of(plan)) {
      const std::vector<RankStep> steps = steps_of(plan, ranks, rank);
      const Role& role = plan.roles[ranks.role(rank).index()];
      std::map<const StreamTask*, std::size_t> step_of;
      std::set<int> waited_for;
      std::map<StreamId, std::vector<std::size_t>> of_stream;
      for (std::size_t s = 0, computes = 0; s < steps.size(); ++s) {
        of_stream[steps[s].stream].push_back(s);
        waited_for.insert(steps[s].after.begin(), steps[s].after.end());
        waited_for.insert(steps[s].after_previous.begin(), steps[s].after_previous.end());
        if (std::holds_alternative<Compute>(instruction_of(plan, role, steps[s]).what)) step_of[heard.computes[computes++]] = s;
      }
      std::size_t members = 0;
      for (const TaskRow& row : heard.rows) {
        longest = std::max(longest, row.members.size());
        members += row.members.size();
        for (std::size_t i = 0; i < row.members.size(); ++i) {
          const std::size_t s = step_of.at(row.members[i].task);
          const bool last = i + 1 == row.members.size();
          EXPECT_EQ(steps[s].stream, row.stream);
          EXPECT_TRUE(last || !waited_for.contains(static_cast<int>(s))) << name_of(strategy);
          if (last && waited_for.contains(static_cast<int>(s))) ++ended_by_a_record;
          if (i == 0) continue;
          const std::size_t before = step_of.at(row.members[i - 1].task);
          EXPECT_EQ(steps[s].action, steps[before].action);
          EXPECT_TRUE(steps[s].after.empty() && steps[s].after_previous.empty());
          const std::vector<std::size_t>& all = of_stream[row.stream];
          EXPECT_EQ(std::find(all.begin(), all.end(), s) - std::find(all.begin(), all.end(), before), 1);
        }
      }
      EXPECT_EQ(members, step_of.size());
    }
  }
  EXPECT_GE(longest, 5U);
  EXPECT_GE(ended_by_a_record, 5U);
}

}  // namespace foreshard::task_rows_test
