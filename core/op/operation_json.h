// An operation in plan files: "op": its word, and "settings": an object with those that are not at their default.
#pragma once

#include <string>

#include "core/json/json.h"
#include "core/op/operation.h"

namespace foreshard {

void write_operation(JsonWriter& json, const Operation& operation);  // both members
// `json` is the object that has these members. Throws Error.
Operation read_operation(const JsonReader& json);

// An operation of a file of version 1: its word and others beside it, "causal heads=96 kv=96 dim=128". Those not named stay at
// their default (machine profiles leave numbers out). `rest` gets the words that are no setting of the operator. Throws
// std::invalid_argument with what was expected.
Operation read_old_operation(const std::string& word, const std::string& words, std::string& rest);

}  // namespace foreshard
