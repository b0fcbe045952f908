#include "strategy/cost/style_json.h"

#include <vector>

#include "strategy/kernels/fitted_constants.h"

namespace foreshard {

void read_number(const JsonReader& json, const std::string& key, double least, double most, double& number) {
  const auto value = json.find(key);
  if (!value) return;
  if (!value->is_string()) {
    number = value->as_double(least, most);
    return;
  }
  const auto fit = find_fitted(value->as_string());
  if (!fit || *fit < least || *fit > most) value->fail("a number or the name of a fitted constant in accuracy/constants.json");
  number = *fit;
}

static KernelTraffic read_traffic(const JsonReader& json) {
  KernelTraffic traffic;
  if (const auto all = json.find("traffic")) traffic.all = all->as_double(0.1, 1000);
  if (const auto copies = json.find("copies")) traffic.copies = copies->as_double(0, traffic.all);
  if (const auto joined = json.find("joined")) traffic.joined = joined->as_double(0, traffic.all - traffic.copies);
  if (const auto unvectorized = json.find("unvectorized"))
    traffic.unvectorized = unvectorized->as_double(0, traffic.all - traffic.copies - traffic.joined);
  if (const auto bytes = json.find("result_bytes")) traffic.result_bytes = bytes->as_double(1, 64);
  return traffic;
}

// `more`: a key that the object may have besides those of a style.
static OpStyle style_from(const JsonReader& json, const std::string& more = {}) {
  std::vector<std::string> keys = {"kernels",      "traffic",      "copies",      "joined",
                                   "unvectorized", "result_bytes", "elementwise", "backward"};
  if (!more.empty()) keys.push_back(more);
  json.only(keys);
  OpStyle style = {.forward = read_traffic(json)};
  if (const auto kernels = json.find("kernels")) style.kernels = kernels->as_double(0.1, 1000);
  read_number(json, "elementwise", 0.05, 1, style.elementwise);
  if (const auto backward = json.find("backward")) {
    backward->only({"kernels", "traffic", "copies", "joined", "unvectorized", "result_bytes"});
    if (const auto kernels = backward->find("kernels")) style.backward_kernels = kernels->as_double(0.1, 1000);
    if (backward->has("traffic")) style.backward = read_traffic(*backward);
  }
  return style;
}

void read_style(const JsonReader& json, const std::string& key, OpStyle& style) {
  if (const auto value = json.find(key)) style = style_from(*value);
}

void read_softmax(const JsonReader& json, OpStyles& styles) {
  const auto value = json.find("softmax");
  if (!value) return;
  styles.softmax = style_from(*value, "causal");
  styles.causal_softmax.reset();  // a preset like another states the whole softmax
  if (value->has("causal")) read_style(*value, "causal", styles.causal_softmax.emplace());
}

}  // namespace foreshard
