#include "strategy/server/taken_role.h"

#include "core/base/error.h"

namespace foreshard {

TakenRole::TakenRole(const Plan& plan, const std::vector<int>& roles) : plan_(plan), several_(roles.size() > 1) {
  const Role& like = plan.roles[static_cast<std::size_t>(roles.front())];
  role.device_kind = like.device_kind, role.axes = like.axes, role.streams = like.streams;
  for (const int taken : roles) {
    const Role& from = plan.roles[static_cast<std::size_t>(taken)];
    first_event_[taken] = static_cast<std::int32_t>(role.events.size());
    first_layer_[taken] = static_cast<std::int32_t>(role.layers.size());
    role.events.insert(role.events.end(), from.events.begin(), from.events.end());
    role.layers.insert(role.layers.end(), from.layers.begin(), from.layers.end());
  }
}

void TakenRole::take_buffers(int of, const std::function<bool(std::size_t)>& wanted) {
  const Role& from = plan_.roles[static_cast<std::size_t>(of)];
  for (std::size_t b = 0; b < from.buffers.size(); ++b) {
    if (!wanted(b)) continue;
    buffers_[{of, {static_cast<std::int32_t>(b)}}] = {static_cast<std::int32_t>(role.buffers.size())};
    role.buffers.push_back(from.buffers[b]);
    if (several_) role.buffers.back().name = from.name + " " + from.buffers[b].name;
  }
}

BufferId TakenRole::buffer(int of, BufferId id) const {
  const auto known = buffers_.find({of, id});
  return known == buffers_.end() ? BufferId{} : known->second;
}

Instruction TakenRole::moved(int of, Instruction run) const {
  each_buffer(run, [&](BufferId& id) {
    id = buffer(of, id);
    FS_ASSERT(id.valid());
  });
  for (auto* events : {&run.waits, &run.records})
    for (EventUse& event : *events) event.event.value += first_event_.at(of);
  if (run.layer.valid()) run.layer.value += first_layer_.at(of);
  return run;
}

}  // namespace foreshard
