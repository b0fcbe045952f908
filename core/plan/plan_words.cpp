#include "core/plan/plan_words.h"

namespace foreshard {

using Words = std::vector<std::string>;

template <>
const Words& words<DType>() {
  static const Words list = [] {
    Words names;
    for (int t = 0; t <= static_cast<int>(DType::U8); ++t) names.emplace_back(name_of(static_cast<DType>(t)));
    return names;
  }();
  return list;
}
template <>
const Words& words<TensorPart>() {
  static const Words list = {"value", "gradient", "master", "momentum", "variance"};
  return list;
}
template <>
const Words& words<Space>() {
  static const Words list = {"device", "pinned_host", "pageable_host", "nvme"};
  return list;
}
template <>
const Words& words<Category>() {
  static const Words list = {"parameters", "gradients", "optimizer", "activations", "transient", "communication", "framework"};
  return list;
}
template <>
const Words& words<Grid>() {
  static const Words list = {"dense", "expert"};
  return list;
}
template <>
const Words& words<DenseKind>() {
  static const Words list = {"tensor", "context", "data", "outer_data"};
  return list;
}
template <>
const Words& words<ExpertKind>() {
  static const Words list = {"expert_tensor", "expert", "expert_data", "outer_expert"};
  return list;
}
template <>
const Words& words<Scope>() {
  static const Words list = {"rank", "device"};
  return list;
}
template <>
const Words& words<CollectiveKind>() {
  static const Words list = {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "all_to_all"};
  return list;
}
template <>
const Words& words<Combine>() {
  static const Words list = {"sum", "mean", "max"};
  return list;
}
template <>
const Words& words<Algorithm>() {
  static const Words list = {"ring",         "tree", "double_tree",    "hierarchical", "parameter_server",
                             "nvlink_sharp", "2d",   "gather_to_root", "two_level"};
  return list;
}
template <>
const Words& words<ParamKind>() {
  static const Words list = {"microbatch", "slot"};
  return list;
}
template <>
const Words& words<Work>() {
  static const Words list = {"F", "B", "I", "W", "Update"};
  return list;
}
template <>
const Words& words<StreamKind>() {
  static const Words list = {"compute", "communication", "copy_in", "copy_out", "host", "storage"};
  return list;
}

}  // namespace foreshard
