#include "core/model/model.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "core/base/data_path.h"
#include "core/base/error.h"
#include "core/model/family.h"
#include "core/model/model_files.h"

namespace foreshard {

namespace fs = std::filesystem;

// "models/gpt2-124m.json" is gpt2-124m; a downloaded checkpoint's "Llama-3.1-8B/config.json" is Llama-3.1-8B.
static std::string name_of(const std::string& file_name) {
  const fs::path path(file_name);
  const std::string stem = path.stem().string(), folder = path.parent_path().filename().string();
  return stem == "config" && !folder.empty() && folder != "." && folder != ".." ? folder : stem;
}

static std::string text_or(const JsonReader& json, const std::string& key, const std::string& otherwise) {
  const auto value = json.find(key);
  return value ? value->as_string() : otherwise;
}

static void check(const Transformer& t, const JsonReader& json) {
  if (const auto fault = fault_of(t)) throw Error(json.file(), key_of(json, fault->field), fault->found, fault->expected);
  if (t.positions == PositionKind::Rope && t.head_dim % 2 != 0)
    throw Error(json.file(), "head_dim", std::to_string(t.head_dim), "an even number: rotary embeddings turn pairs");
  const double parameters = parameter_estimate(t);
  if (parameters <= most_parameters) return;
  char number[32];
  std::snprintf(number, sizeof number, "%.3g", parameters);
  throw Error(json.file(), "", "a model of about " + std::string(number) + " parameters", "at most 1e16");
}

Model parse_model(const std::string& text, const std::string& file_name) {
  const JsonReader json = JsonReader::parse(text, file_name);
  if (!json.is_object()) json.fail("an object: a Hugging Face config.json or a layer list");
  std::vector<std::string> types = hugging_face_families();
  types.insert(types.end(), {"foreshard-layers", "foreshard-transformer"});
  const JsonReader said = json.at("model_type");
  if (const std::string missing = said.is_string() ? missing_for(said.as_string()) : ""; !missing.empty())
    said.fail("a supported family: this one has " + missing + ", which nothing here computes");
  const std::string type = said.as_choice(types);
  Model model;
  if (type == "foreshard-layers") {
    model.shape = parse_layers(json);
  } else {
    const Transformer t = type == "foreshard-transformer" ? parse_transformer(json) : parse_hugging_face(json, type);
    check(t, json);
    model.shape = t;
  }
  const bool ours = type.starts_with("foreshard-");
  model.name = ours ? text_or(json, "name", name_of(file_name)) : name_of(file_name);
  model.source = text_or(json, ours ? "source" : "_source", "");
  return model;
}

std::string model_file(const std::string& name_or_path) {
  const std::vector<std::string> names = shipped("models");
  if (std::find(names.begin(), names.end(), name_or_path) != names.end())
    return (fs::path(data_directory()) / "models" / (name_or_path + ".json")).string();
  std::error_code ignored;
  const fs::path path(name_or_path);
  if (fs::is_directory(path, ignored)) return (path / "config.json").string();
  const bool meant_as_path = path.has_parent_path() || path.extension() == ".json" || fs::exists(path, ignored);
  if (meant_as_path) return name_or_path;
  const std::string near = nearest_name(name_or_path, names);
  throw Error("model", "", "\"" + name_or_path + "\"",
              near.empty() ? "a file or the name of a shipped model" : "a file or a shipped model (nearest: \"" + near + "\")");
}

Model load_model(const std::string& name_or_path) {
  const std::string path = model_file(name_or_path);
  return parse_model(read_file(path), path);
}

std::string to_json(const Model& model) {
  JsonWriter json;
  const auto* transformer = std::get_if<Transformer>(&model.shape);
  json.begin_object().field("model_type", std::string(transformer ? "foreshard-transformer" : "foreshard-layers"));
  json.field("name", model.name).field("source", model.source);
  if (transformer)
    write_transformer(json, *transformer);
  else
    write_layers(json, std::get<LayerList>(model.shape));
  return json.end_object().text();
}

}  // namespace foreshard
