// Families of models: they turn a Hugging Face config.json into a Transformer, by its "model_type". A new family is a file with a
// `ModelFamily` (core/family/family_config.h) and a line in the table of core/family/family.cpp, which defines these functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/json/json.h"
#include "core/model/model.h"

namespace foreshard {

// Every model_type that some family reads.
const std::vector<std::string>& hugging_face_families();
// `type` is one of hugging_face_families(). Throws Error.
Transformer parse_hugging_face(const JsonReader& json, const std::string& type);
// For a model_type that no family reads: what its network has that no operator here computes. Empty if that is not known.
std::string missing_for(const std::string& type);
// The key of this config.json from which `field` was read; `field` itself if there is none. `field` is a path of the form
// foreshard-transformer, "experts.chosen".
std::string key_of(const JsonReader& json, const std::string& field);
std::vector<std::string> hugging_face_keys();  // all keys that some family reads
// Other keys for the same size; of "n_layer": num_hidden_layers, ...
std::vector<std::string> hugging_face_synonyms(const std::string& key);

}  // namespace foreshard
