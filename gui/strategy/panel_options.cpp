#include "gui/strategy/panel_options.h"

#include "core/json/json.h"

namespace foreshard {

static OptionType type_of(const std::string& word) {
  if (word == "integer") return OptionType::Integer;
  if (word == "number") return OptionType::Number;
  if (word == "choice") return OptionType::Choice;
  if (word == "flag") return OptionType::Flag;
  if (word == "bytes") return OptionType::Bytes;
  if (word == "list") return OptionType::List;
  return OptionType::Text;
}

static std::string text_at(const JsonReader& json, const char* key) {
  const auto found = json.find(key);
  return found && found->is_string() ? found->as_string() : std::string();
}

std::vector<PanelOption> parse_panel_options(const std::string& text, const std::string& where) {
  std::vector<PanelOption> options;
  for (const JsonReader& json : JsonReader::parse(text, where).elements()) {
    PanelOption option{.path = json.at("path").as_string(), .flag = text_at(json, "flag")};
    option.type = type_of(json.at("type").as_string());
    if (const auto values = json.find("values"))
      for (const JsonReader& value : values->elements()) option.values.push_back(value.as_string());
    option.otherwise = text_at(json, "default");
    option.unit = text_at(json, "unit"), option.help = text_at(json, "help");
    option.constraint = text_at(json, "constraint"), option.group = text_at(json, "group");
    if (option.group.empty()) option.group = "options";
    options.push_back(std::move(option));
  }
  return options;
}

std::vector<std::string> parse_names(const std::string& text, const std::string& where) {
  std::vector<std::string> names;
  for (const JsonReader& json : JsonReader::parse(text, where).elements()) names.push_back(json.at("name").as_string());
  return names;
}

}  // namespace foreshard
