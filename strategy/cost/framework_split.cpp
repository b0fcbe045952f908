#include "strategy/cost/framework_split.h"

#include <vector>

namespace foreshard {

namespace {

std::string text_of(const std::vector<int>& counts) {
  std::string text;
  for (const int count : counts) text += (text.empty() ? "" : ",") + std::to_string(count);
  return text;
}

// nanotron models/base.py: the blocks in order, each with a cost: 4 h^2 + 3 h f of a layer, V h of the head, 0 of embedding and norm. A
// block goes to the current stage; then the stage is full if the cost so far exceeds its share of the total.
std::vector<int> by_cost(const Transformer& model, int stages) {
  const double h = static_cast<double>(model.hidden), layer = 4 * h * h + 3 * h * static_cast<double>(model.ffn_hidden);
  const double total = layer * model.layers + h * static_cast<double>(model.vocab);
  std::vector<int> counts(static_cast<std::size_t>(stages), 0);
  std::size_t stage = 0;
  for (int l = 0; l < model.layers; ++l) {
    ++counts[stage];
    const double share = total * static_cast<double>(stage + 1) / stages;
    if (stage + 1 < counts.size() && layer * (l + 1) > share) ++stage;
  }
  return counts;
}

// Aleph-Alpha/scaling pipeline_partitioning.py, pipe_partition_uniform, over embedding, layers and head: the first stages have one more.
std::vector<int> with_ends(int layers, int stages) {
  const int parts = layers + 2, each = parts / stages, rest = parts % stages;
  std::vector<int> counts;
  for (int i = 0; i < stages; ++i) counts.push_back(each + (i < rest ? 1 : 0));
  --counts.front(), --counts.back();
  return counts;
}

}  // namespace

std::string framework_split(const FrameworkPreset& preset, const Transformer& model, int stages) {
  if (stages == 1) return "";
  const int each = model.layers / stages, rest = model.layers % stages;
  std::vector<int> counts(static_cast<std::size_t>(stages), each);
  switch (preset.defaults.split) {
    case StageSplit::Even: return "";
    case StageSplit::Cost: return text_of(by_cost(model, stages));
    case StageSplit::Ends: return model.layers + 2 < stages ? "" : text_of(with_ends(model.layers, stages));
    case StageSplit::RemainderLast:
      for (int i = 0; i < rest; ++i) ++counts[static_cast<std::size_t>(stages - rest + i)];
      break;
    case StageSplit::RemainderSecond:
      for (int i = 0; i < rest; ++i) ++counts[static_cast<std::size_t>(1 + i)];
      break;
  }
  return rest == 0 ? "" : text_of(counts);
}

}  // namespace foreshard
