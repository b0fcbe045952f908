#include "core/plan/equal_roles.h"

#include <algorithm>

namespace foreshard {

static bool run_equally(const Role& a, const Role& b) {
  const auto alike = [](const Buffer& x, const Buffer& y) {
    return x.bytes == y.bytes && x.space == y.space && x.scope == y.scope && x.resident == y.resident && x.offsets == y.offsets;
  };
  return a.actions.size() == b.actions.size() && std::ranges::equal(a.buffers, b.buffers, alike) && a.streams == b.streams &&
         a.events == b.events && a.actions == b.actions;
}

std::vector<std::size_t> first_equal_roles(const Plan& plan) {
  std::vector<std::size_t> first;
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    first.push_back(0);
    while (first[r] < r && !(first[first[r]] == first[r] && run_equally(plan.roles[first[r]], plan.roles[r]))) ++first[r];
  }
  return first;
}

void copy_memory(const Role& from, Role& to) {
  for (std::size_t a = 0; a < to.actions.size(); ++a) to.actions[a].args = from.actions[a].args;
  for (std::size_t b = 0; b < to.buffers.size(); ++b) to.buffers[b].offsets = from.buffers[b].offsets;
}

}  // namespace foreshard
