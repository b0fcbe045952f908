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

// Columns as wide as their widest cell, numbers to the right, the last column wrapped at 100 columns.
std::string table_text(const Table& table);
// An array of objects with the heads as keys ("GPUs per node" -> "gpus_per_node"); a column of whole numbers is numbers.
std::string table_json(const Table& table);
void table_json(JsonWriter& json, const Table& table);

}  // namespace foreshard
