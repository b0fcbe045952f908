// Readers and writers of the forms a model file can have; parse_model picks one by "model_type".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/json/json.h"
#include "core/model/model.h"

namespace foreshard {

constexpr std::int64_t largest_size = 1'000'000'000;  // of a single size
constexpr std::int64_t most_layers = 100'000;
constexpr double most_parameters = 1e16;  // 16 bytes of state for each still fit 63 bits

// "foreshard-transformer": every field of Transformer under its own name. An unknown key throws Error.
Transformer parse_transformer(const JsonReader& json);
void write_transformer(JsonWriter& json, const Transformer& t);
// The part of it that most models do not need: AttentionSettings and BlockSettings. Fields at their default are not written.
std::vector<std::string> transformer_settings_keys();
void parse_transformer_settings(const JsonReader& json, Transformer& t);
void write_transformer_settings(JsonWriter& json, const Transformer& t);

// A setting that contradicts others. `field` is its path in foreshard-transformer, "experts.chosen".
struct ModelFault {
  std::string field = {}, found = {}, expected = {};
};
std::optional<ModelFault> fault_of(const Transformer& t);

// "foreshard-layers". An unknown key throws Error.
constexpr double most_elements = 1e12;  // in one activation of one sample
LayerList parse_layers(const JsonReader& json);
void write_layers(JsonWriter& json, const LayerList& list);

// Number of parameters as a double, perhaps rounded, so that it cannot overflow. Used to check most_parameters.
double parameter_estimate(const Transformer& t);
double parameter_estimate(const LayerSpec& layer, const std::vector<std::int64_t>& input);

}  // namespace foreshard
