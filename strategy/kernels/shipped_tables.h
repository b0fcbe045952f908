// Shipped tables of measurements: a file per GPU, FOLDER/GPU.json, whose `gpu` is the name of the file.
#pragma once

#include <string>
#include <vector>

#include "core/base/data_path.h"
#include "core/base/error.h"
#include "core/json/json.h"

namespace foreshard {

template <class Table>
using TableParser = Table (*)(const std::string& text, const std::string& file_name);

// The table of one GPU. Throws Error.
template <class Table>
Table shipped_table(const std::string& folder, const std::string& gpu, TableParser<Table> parse) {
  const std::string path = data_directory() + "/" + folder + "/" + gpu + ".json";
  Table table = parse(read_file(path), path);
  if (table.gpu != gpu) throw Error(path, "gpu", "\"" + table.gpu + "\"", "\"" + gpu + "\", the name of the file");
  return table;
}

// Those of all GPUs that have one, by name. Throws Error.
template <class Table>
std::vector<Table> shipped_tables(const std::string& folder, TableParser<Table> parse) {
  std::vector<Table> all;
  for (const std::string& gpu : shipped(folder)) all.push_back(shipped_table(folder, gpu, parse));
  return all;
}

}  // namespace foreshard
