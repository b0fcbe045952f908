#include "strategy/kernels/fitted_constants.h"

#include <algorithm>

#include "core/base/data_path.h"
#include "core/base/error.h"
#include "core/json/json.h"

namespace foreshard {

namespace {

double quantity(const JsonReader& json) { return json.is_string() ? json.as_seconds().value : json.as_double(0, 1e9); }

FittedConstant parse_constant(const std::string& name, const JsonReader& json) {
  json.only({"value", "range", "without", "mechanism", "fitted_on"});
  FittedConstant constant{.name = name, .mechanism = json.at("mechanism").as_string(), .value = quantity(json.at("value"))};
  const JsonReader range = json.at("range");
  if (!range.is_array() || range.size() != 2) range.fail("two values, the least and the most");
  constant.low = quantity(range.at(std::size_t{0})), constant.high = quantity(range.at(std::size_t{1}));
  constant.without = quantity(json.at("without"));
  if (constant.value < constant.low || constant.value > constant.high) json.at("value").fail("a value inside its range");
  for (const JsonReader& source : json.at("fitted_on").elements()) constant.fitted_on.push_back(source.as_string());
  if (constant.fitted_on.empty()) json.at("fitted_on").fail("the sources of its rows");
  return constant;
}

}  // namespace

std::vector<FittedConstant> parse_fitted_constants(const std::string& text, const std::string& file_name) {
  const JsonReader json = JsonReader::parse(text, file_name);
  json.only({"source", "constants"});
  std::vector<FittedConstant> constants;
  for (const auto& [name, entry] : json.at("constants").members()) constants.push_back(parse_constant(name, entry));
  return constants;
}

const std::vector<FittedConstant>& fitted_constants() {
  static const std::string path = data_directory() + "/accuracy/constants.json";
  static const std::vector<FittedConstant> constants = parse_fitted_constants(read_file(path), path);
  return constants;
}

std::optional<double> find_fitted(const std::string& name) {
  for (const FittedConstant& constant : fitted_constants())
    if (constant.name == name) return constant.value;
  return {};
}

double fitted(const std::string& name) {
  if (const auto value = find_fitted(name)) return *value;
  throw Error(data_directory() + "/accuracy/constants.json", name, "nothing", "a constant of that name");
}

const ProductConstants& product_constants() {
  static const ProductConstants constants{.sustained = fitted("products.sustained"), .exposed = fitted("kernels.exposed")};
  return constants;
}

}  // namespace foreshard
