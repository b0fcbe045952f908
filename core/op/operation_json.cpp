#include "core/op/operation_json.h"

#include <algorithm>

#include "core/base/words.h"

namespace foreshard {

namespace {

constexpr std::int64_t kMostSetting = std::int64_t{1} << 50U;

struct Writer {
  JsonWriter& json;
  bool open = false;

  template <class T>
  void operator()(const char* name, const T& value, const T& usual) {
    if (value == usual) return;
    if (!open) json.key("settings").begin_object(), open = true;
    if constexpr (std::is_enum_v<T>)
      json.field(name, word(value));
    else
      json.field(name, value);
  }
};

template <class T>
void read(const JsonReader& json, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    value = json.as_bool();
  } else if constexpr (std::is_enum_v<T>) {
    const std::vector<std::string>& known = words<T>();
    value = static_cast<T>(std::find(known.begin(), known.end(), json.as_choice(known)) - known.begin());
  } else if constexpr (std::is_integral_v<T>) {
    value = static_cast<T>(json.as_int(0, std::is_same_v<T, int> ? INT32_MAX : kMostSetting));
  } else {
    value = json.as_double();
  }
}

}  // namespace

void write_operation(JsonWriter& json, const Operation& operation) {
  json.field("op", word(operation));
  Writer writer{json};
  visit_settings(operation, writer);
  if (writer.open) json.end_object();
}

Operation read_operation(const JsonReader& json) {
  const std::vector<std::string>& known = operation_words();
  const JsonReader name = json.at("op");
  const auto hit = std::find(known.begin(), known.end(), name.as_choice(known));
  Operation operation = operation_of(static_cast<std::size_t>(hit - known.begin()));
  if (!json.has("settings")) return operation;
  const JsonReader settings = json.at("settings");
  std::vector<std::string> names;
  std::visit(
      [&](auto& op) {
        op.fields(op, [&](const char* setting, auto& value) {
          names.emplace_back(setting);
          if (settings.has(setting)) read(settings.at(setting), value);
        });
      },
      operation);
  settings.only(names);
  return operation;
}

}  // namespace foreshard
