// The roles of an asynchronous parameter server and its workers, made of the roles of one worker's plan. Internal to strategy/.
//
//   worker, stage p   F B ... | sums | push to server 0 | push to server 1 | ...
//                                                       | pull from server 0 | ...      beside it, on streams of the servers
//   server j          push: receives its units of worker 0's stages | update | pull: sends them | push: of worker 1 | ...
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/plan/plan.h"
#include "strategy/resolve/tables.h"
#include "strategy/server/coded_push.h"
#include "strategy/server/server_units.h"
#include "strategy/server/taken_role.h"

namespace foreshard {

class ServedPlan {
 public:
  // `one`: the plan of one worker; it must outlive this. The result's first roles are the servers, behind them the roles of worker 0, of
  // worker 1, and so on.
  // `coding`: of the gradients that workers send; empty: they are sent as they are.
  ServedPlan(const Plan& one, int workers, ServerUnits units, const std::optional<Coding>& coding);

  // Whether each event is recorded on the rank that waits for it: updates by servers, everything else by workers.
  bool complete() const;
  Plan take();  // without offsets and costs

 private:
  // What all workers' roles of a stage have in common.
  struct Stage {
    TakenRole taken;
    std::map<std::size_t, CodedPush> codes = {};  // [buffer of the worker's plan]: of a gradient that is sent as codes
    std::vector<Action> actions = {};             // that train; micro-batches of worker 0
    std::vector<int> servers = {};                // that hold its parameters
    std::set<EventId> waits = {}, records = {};   // of what the worker does
  };
  // Instructions of the worker's plan outside the actions that train that are no updates: sums over stages, and marks around them.
  struct Sums {
    std::vector<Instruction> runs = {};
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> at = {};  // [segment, instruction]: index in `runs`
  };
  int stages() const { return static_cast<int>(one_.roles.size()); }
  std::int32_t role_of(int worker, int stage) const { return units_.servers + worker * stages() + stage; }
  const ServedBuffer& served(int stage, std::size_t buffer) const { return units_.of[static_cast<std::size_t>(stage)][buffer]; }
  const Buffer& buffer(int stage, std::size_t index) const {
    return one_.roles[static_cast<std::size_t>(stage)].buffers[index];
  }
  std::vector<std::size_t> exchanged(int stage, int server, Category category) const;
  Sums sums_of(int stage) const;
  Stage stage_of(int index);
  SegmentId taken_segment(const TakenRole& taken, int stage, SegmentId id);
  SegmentId add(Segment segment);
  GroupId group_of(int worker, GroupId group);
  // The push of a gradient, on `stream`, which its codes if there are any precede.
  void push_gradient(std::vector<Instruction>& runs, int stage, std::size_t gradient, const Peer& peer, StreamId stream,
                     const Sums& sums) const;
  void wait_as_update(Instruction& run, int stage, BufferId gradient, const Sums& sums) const;
  Segment push_of(int worker, int stage);
  Segment pull_of(int worker, int stage) const;
  Role worker(int worker, int stage);
  Role server(int index);
  std::vector<Action> updates_of(int server, const std::vector<int>& holds, const TakenRole& taken);

  const Plan& one_;
  Plan out_;
  ServerUnits units_;
  std::optional<Coding> coding_ = {};
  int workers_ = 1;
  std::vector<Stage> of_ = {};  // [role of the worker's plan]
  std::map<std::pair<int, GroupId>, GroupId> groups_ = {};
  std::map<std::pair<int, SegmentId>, SegmentId> segments_ = {};  // [stage, segment]: of what trains
};

}  // namespace foreshard
