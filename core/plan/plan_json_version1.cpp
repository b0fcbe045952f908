#include "core/plan/plan_json_version1.h"

#include <algorithm>

namespace foreshard::version1 {

static DenseKind kind_of(const JsonReader& name) {
  const std::string& text = name.as_string();
  if (text.starts_with("tp")) return DenseKind::Tensor;
  if (text.starts_with("cp")) return DenseKind::Context;
  if (text.starts_with("dp_outer")) return DenseKind::OuterData;
  if (text.starts_with("dp")) return DenseKind::Data;
  name.fail("a name that begins with tp, cp or dp: in version 1 it says what the axis is");
}

Axis read_axis(const JsonReader& json) {
  json.only({"name", "size"});
  const JsonReader name = json.at("name");
  return {
      .name = name.as_string(), .dense = kind_of(name), .size = static_cast<int>(json.at("size").as_int(INT32_MIN, INT32_MAX))};
}

std::vector<AxisId> read_order(const JsonReader& json, const std::vector<Axis>& axes) {
  std::vector<AxisId> order;
  for (const JsonReader& entry : json.elements()) {
    const std::string& name = entry.as_string();
    const auto axis = std::ranges::find(axes, name, &Axis::name);
    if (axis == axes.end() && name != "role") entry.fail("the name of an axis, or \"role\"");
    order.push_back(axis == axes.end() ? Placement::kRole : AxisId{static_cast<std::int32_t>(axis - axes.begin())});
  }
  return order;
}

}  // namespace foreshard::version1
