#include "core/json/json_edit.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/error.h"
#include "core/json/json.h"

namespace foreshard {

using nlohmann::ordered_json;

namespace {

struct Step {  // a key or, where the key is empty, a position
  std::string key = {};
  std::size_t position = 0;
};

}  // namespace

[[noreturn]] static void refuse_path(const std::string& path, const std::string& where) {
  throw Error(where, "--set", "the path \"" + path + "\"", "keys joined by dots, such as fabric.levels or nodes[0].count");
}

static std::vector<Step> steps_of(const std::string& path, const std::string& where) {
  std::vector<Step> steps;
  std::size_t at = 0;
  while (at < path.size()) {
    if (path[at] == '[') {
      Step step;
      const auto [end, problem] = std::from_chars(path.data() + at + 1, path.data() + path.size(), step.position);
      if (problem != std::errc() || end == path.data() + path.size() || *end != ']') refuse_path(path, where);
      at = static_cast<std::size_t>(end - path.data()) + 1;
      steps.push_back(step);
    } else {
      if (path[at] == '.' && !steps.empty()) ++at;
      const std::size_t end = std::min(path.find_first_of(".[", at), path.size());
      if (end == at) refuse_path(path, where);
      steps.push_back({path.substr(at, end - at), 0});
      at = end;
    }
  }
  if (steps.empty()) refuse_path(path, where);
  return steps;
}

std::string with_json_value(const std::string& text, const std::string& path, const std::string& value,
                            const std::string& where) {
  ordered_json root = ordered_json::parse(text, nullptr, false, true);
  if (root.is_discarded()) JsonReader::parse(text, where);  // says where the fault is
  ordered_json* node = &root;
  for (const Step& step : steps_of(path, where)) {
    if (step.key.empty()) {
      if (!node->is_array() || step.position >= node->size())
        throw Error(where, path, "position " + std::to_string(step.position),
                    node->is_array() ? "less than " + std::to_string(node->size()) : "a key: this is no array");
      node = &(*node)[step.position];
    } else {
      if (!node->is_object() && !node->is_null())
        throw Error(where, path, "the key " + step.key,
                    "no key there: it is " + node->dump(-1, ' ', true, ordered_json::error_handler_t::replace).substr(0, 40));
      node = &(*node)[step.key];
    }
  }
  ordered_json parsed = ordered_json::parse(value, nullptr, false);
  *node = parsed.is_discarded() ? ordered_json(value) : std::move(parsed);
  return root.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

std::string json_value(const std::string& text, const std::string& path, const std::string& where) {
  const ordered_json root = ordered_json::parse(text, nullptr, false, true);
  if (root.is_discarded()) JsonReader::parse(text, where);
  const ordered_json* node = &root;
  for (const Step& step : steps_of(path, where)) {
    const bool there = step.key.empty() ? node->is_array() && step.position < node->size() : node->contains(step.key);
    if (!there) return "";
    node = step.key.empty() ? &(*node)[step.position] : &(*node)[step.key];
  }
  return node->dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace foreshard
