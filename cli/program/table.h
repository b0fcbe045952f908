// Small tables for `list` and `show`: as text of at most 100 columns, or as JSON.
#pragma once

#include <string>
#include <vector>

namespace foreshard {

class JsonWriter;  // core/json/json.h

struct Table {
  std::vector<std::string> head = {};
  std::vector<std::vector<std::string>> rows = {};
  bool operator==(const Table&) const = default;
};

// Columns as wide as their widest cell; numbers are right-aligned; the last column is wrapped at 100 characters.
std::string table_text(const Table& table);
// An array of objects with the heads as keys ("GPUs per node" -> "gpus_per_node"). A column with integers only is written as
// numbers, others as strings.
std::string table_json(const Table& table);
void table_json(JsonWriter& json, const Table& table);

}  // namespace foreshard
