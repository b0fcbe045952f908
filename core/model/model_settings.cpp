#include "core/model/model_settings.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/json/json.h"
#include "core/json/json_edit.h"
#include "core/model/family.h"
#include "core/model/model_files.h"

namespace foreshard {

// Finds out whether a key is read: it sets the key to an object, which no reader of models accepts, and sees whether that is refused. So
// no second list of the keys of each family is needed.
static bool reads(const std::string& text, const std::string& path, const std::string& file) {
  const std::string strange = with_json_value(text, path, R"({"": {"": 0}})", file);
  try {
    parse_model(strange, file);
  } catch (const Error&) {
    return true;
  }
  return false;
}

// The paths of a setting: an object stands for all its members.
static std::vector<std::string> leaves(const std::string& path, const JsonReader& value) {
  if (!value.is_object() || value.members().empty()) return {path};
  std::vector<std::string> all;
  for (const auto& [key, member] : value.members())
    for (const std::string& leaf : leaves(path + "." + key, member)) all.push_back(leaf);
  return all;
}

// The key of this family with the same meaning, else the key with the nearest spelling, else all keys.
static std::string expected(const std::string& text, const std::string& path, const std::string& file) {
  std::vector<std::string> known;
  for (const std::string& key : hugging_face_keys())
    if (reads(text, key, file)) known.push_back(key);
  for (const std::string& same : hugging_face_synonyms(path))
    if (std::find(known.begin(), known.end(), same) != known.end()) return "model." + same;
  if (const std::string nearest = nearest_name(path, known); !nearest.empty()) return "model." + nearest + " (nearest)";
  std::sort(known.begin(), known.end());
  std::string all;
  for (const std::string& key : known) all += (all.empty() ? "one of " : ", ") + key;
  return all;
}

Model model_with(const std::string& name_or_path, const Settings& settings, const std::string& where) {
  Model as_it_is = load_model(name_or_path);  // an error of the file itself is reported without the settings
  if (settings.empty()) return as_it_is;
  const std::string file = model_file(name_or_path);
  std::string text = read_file(file);
  for (const auto& [path, value] : settings) text = with_json_value(text, path, value, where);
  Model model = parse_model(text, file);
  for (const auto& [path, value] : settings)
    for (const std::string& leaf : leaves(path, JsonReader::parse(json_value(text, path, where), where)))
      if (!reads(text, leaf, file))
        throw Error(where, "model." + leaf,
                    "a key that " + JsonReader::parse(text, file).at("model_type").as_string() + " models do not read",
                    expected(text, leaf, file));
  return model;
}

}  // namespace foreshard
