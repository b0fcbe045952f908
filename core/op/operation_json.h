// Operations in plan files, as two members of an object: "op", the operator's word, and "settings", an object with the settings that are
// not at their default.
#pragma once

#include <string>

#include "core/json/json.h"
#include "core/op/operation.h"

namespace foreshard {

void write_operation(JsonWriter& json, const Operation& operation);  // writes both members into the open object
// `json` is the object that has these members. Throws Error.
Operation read_operation(const JsonReader& json);

// An operation as files of version 1 write it: the operator's word, and settings as words, "causal heads=96 kv=96 dim=128". Settings that
// are not named stay at their default (machine profiles leave numbers out). `rest` receives the words that are no setting of the operator.
// Throws std::invalid_argument, whose text says what was expected.
Operation read_old_operation(const std::string& word, const std::string& words, std::string& rest);

}  // namespace foreshard
