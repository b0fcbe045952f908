#include "core/strategy.h"

namespace foreshard {

const char* name_of(Schedule schedule) {
  switch (schedule) {
    case Schedule::GPipe: return "gpipe";
    case Schedule::OneFOneB: return "1f1b";
    case Schedule::Interleaved: return "interleaved-1f1b";
  }
  return "?";
}

const char* name_of(RecomputeKind kind) {
  switch (kind) {
    case RecomputeKind::None: return "none";
    case RecomputeKind::Selective: return "selective";
    case RecomputeKind::Full: return "full";
    case RecomputeKind::Modules: return "modules";
  }
  return "?";
}

const char* name_of(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::Auto: return "auto";
    case AttentionKernel::Flash: return "flash";
    case AttentionKernel::Unfused: return "unfused";
  }
  return "?";
}

const char* name_of(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::Adam: return "adam";
    case OptimizerKind::Sgd: return "sgd";
  }
  return "?";
}

const char* name_of(ContextKind kind) {
  switch (kind) {
    case ContextKind::AllGather: return "all-gather";
    case ContextKind::Ring: return "ring";
  }
  return "?";
}

template <class Enum>
static std::vector<std::string> names_up_to(Enum last) {
  std::vector<std::string> names;
  for (int k = 0; k <= static_cast<int>(last); ++k) names.push_back(name_of(static_cast<Enum>(k)));
  return names;
}

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> names = names_up_to(Schedule::Interleaved);
  return names;
}
const std::vector<std::string>& attention_names() {
  static const std::vector<std::string> names = names_up_to(AttentionKernel::Unfused);
  return names;
}
const std::vector<std::string>& optimizer_names() {
  static const std::vector<std::string> names = names_up_to(OptimizerKind::Sgd);
  return names;
}
const std::vector<std::string>& context_names() {
  static const std::vector<std::string> names = names_up_to(ContextKind::Ring);
  return names;
}

}  // namespace foreshard
