// Readers and writers of the forms a model file can have; parse_model picks one by "model_type".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/json/json.h"
#include "core/model/model.h"

namespace foreshard {

constexpr std::int64_t largest_size = 1'000'000'000;  // of any one dimension
constexpr std::int64_t most_layers = 100'000;
constexpr double most_parameters = 1e16;  // times 16 bytes of state this still fits 63 bits

// Hugging Face families; `family` is one of hugging_face_families().
const std::vector<std::string>& hugging_face_families();
Transformer parse_hugging_face(const JsonReader& json, const std::string& family);
std::vector<std::string> hugging_face_keys();                            // those that some family reads
std::vector<std::string> hugging_face_synonyms(const std::string& key);  // "n_layer": num_hidden_layers, ...

// "foreshard-transformer": every field of Transformer under its own name, strict.
Transformer parse_transformer(const JsonReader& json);
void write_transformer(JsonWriter& json, const Transformer& t);

// "foreshard-layers", strict.
constexpr double most_elements = 1e12;  // of one activation of one sample
LayerList parse_layers(const JsonReader& json);
void write_layers(JsonWriter& json, const LayerList& list);

// Parameters as a double: exact or not, it never overflows. For the bound on files.
double parameter_estimate(const Transformer& t);
double parameter_estimate(const LayerSpec& layer, const std::vector<std::int64_t>& input);

}  // namespace foreshard
