// Families of models: what a Hugging Face config.json of a model_type says about a network. A new family is a file with a
// `ModelFamily` and a line in the table of core/family/family.cpp, which defines these functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/json/json.h"
#include "core/model/model.h"

namespace foreshard {

// Every model_type that is read.
const std::vector<std::string>& hugging_face_families();
// `type` is one of hugging_face_families(). Throws Error.
Transformer parse_hugging_face(const JsonReader& json, const std::string& type);
// What a network of that model_type has that no operator here does, where that is known; empty otherwise.
std::string missing_for(const std::string& type);
// The key of this file that says `field` of foreshard-transformer, "experts.chosen"; the field itself where none does.
std::string key_of(const JsonReader& json, const std::string& field);
std::vector<std::string> hugging_face_keys();                            // those that some family reads
std::vector<std::string> hugging_face_synonyms(const std::string& key);  // "n_layer": num_hidden_layers, ...

}  // namespace foreshard
