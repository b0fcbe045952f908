// Readers and writers of the forms a model file can have; parse_model picks one by "model_type".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/json/json.h"
#include "core/model/model.h"

namespace foreshard {

constexpr std::int64_t largest_size = 1'000'000'000;  // of any one dimension
constexpr std::int64_t most_layers = 100'000;
constexpr double most_parameters = 1e16;  // times 16 bytes of state this still fits 63 bits

// "foreshard-transformer": every field of Transformer under its own name, strict.
Transformer parse_transformer(const JsonReader& json);
void write_transformer(JsonWriter& json, const Transformer& t);
// Its part that most models do not have: AttentionSettings and BlockSettings. What is as by default is not written.
std::vector<std::string> transformer_settings_keys();
void parse_transformer_settings(const JsonReader& json, Transformer& t);
void write_transformer_settings(JsonWriter& json, const Transformer& t);

// Settings that contradict each other. `field` is the name of foreshard-transformer, "experts.chosen".
struct ModelFault {
  std::string field = {}, found = {}, expected = {};
};
std::optional<ModelFault> fault_of(const Transformer& t);

// "foreshard-layers", strict.
constexpr double most_elements = 1e12;  // of one activation of one sample
LayerList parse_layers(const JsonReader& json);
void write_layers(JsonWriter& json, const LayerList& list);

// Parameters as a double: exact or not, it never overflows. For the bound on files.
double parameter_estimate(const Transformer& t);
double parameter_estimate(const LayerSpec& layer, const std::vector<std::int64_t>& input);

}  // namespace foreshard
