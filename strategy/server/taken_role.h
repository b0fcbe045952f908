// A role that takes over buffers, events and layers of roles of another plan, with new numbers. Internal to strategy/.
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

// Calls `visit` with every buffer index of an instruction.
template <class Run, class Visit>
void each_buffer(Run& run, Visit visit) {
  for (auto* uses : {&run.reads, &run.writes})
    for (auto& use : *uses) visit(use.buffer);
  for (auto* blocks : {&run.acquires, &run.releases})
    for (auto& block : *blocks) visit(block.buffer);
}

class TakenRole {
 public:
  // `plan`: from which is taken; it must outlive this. `roles`: of which events and layers are taken, one role's behind the other's.
  TakenRole(const Plan& plan, const std::vector<int>& roles);

  // Takes the buffers of `role` for which `wanted` is true, in their order.
  void take_buffers(int role, const std::function<bool(std::size_t)>& wanted);
  // The new number; invalid if the buffer was not taken.
  BufferId buffer(int role, BufferId id) const;
  Instruction moved(int role, Instruction run) const;  // with the new numbers; it uses only what was taken

  Role role = {};  // without a name and actions

 private:
  const Plan& plan_;
  std::map<std::pair<int, BufferId>, BufferId> buffers_ = {};
  std::map<int, std::int32_t> first_event_ = {}, first_layer_ = {};  // [role]
  bool several_ = false;
};

}  // namespace foreshard
