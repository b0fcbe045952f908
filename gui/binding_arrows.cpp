#include "gui/binding_arrows.h"

namespace foreshard {

std::int32_t span_of(const Document& document, Picked picked) {
  const auto inside = [](std::int32_t at, std::size_t count) { return at >= 0 && static_cast<std::size_t>(at) < count; };
  switch (picked.kind) {
    case PickedKind::Span: return inside(picked.index, document.trace().spans.size()) ? picked.index : -1;
    case PickedKind::Bubble:
      return inside(picked.index, document.bubbles.size()) ? document.bubbles[static_cast<std::size_t>(picked.index)].before
                                                           : -1;
    case PickedKind::Nothing:
    case PickedKind::Class:
    case PickedKind::Link: return -1;
  }
  return -1;
}

static std::vector<ChainHop> critical_hops(const Document& document, int most) {
  std::vector<ChainHop> hops;
  for (std::size_t i = document.critical.size(); i > 1 && static_cast<int>(hops.size()) < most; --i)
    hops.push_back({document.critical[i - 2].span, document.critical[i - 1].span});
  return hops;
}

std::vector<ChainHop> binding_hops(const Document& document, Picked picked, Arrows arrows, int most) {
  if (arrows == Arrows::None) return {};
  if (arrows == Arrows::Critical) return critical_hops(document, most);
  std::vector<ChainHop> hops;
  std::int32_t span = span_of(document, picked);
  if (arrows == Arrows::Direct) most = 1;
  while (span >= 0 && static_cast<int>(hops.size()) < most) {
    const Binding& binding = document.bindings[static_cast<std::size_t>(span)];
    if (binding.before < 0) break;
    hops.push_back({binding.before, span});
    span = binding.before;
  }
  return hops;
}

}  // namespace foreshard
