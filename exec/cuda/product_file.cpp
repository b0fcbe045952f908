// The file of ProductChoice: JSON with one row per kind of GPU, version of the library and form of a product.
#include <cstdlib>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/file_lock.h"
#include "core/json/json.h"
#include "exec/cuda/gpu_ranks.h"
#include "exec/cuda/product_choice.h"

namespace foreshard::gpu {

namespace {

constexpr const char* kFormat = "foreshard products";
constexpr std::int64_t kVersion = 1;

// Our JSON has signed integers of 64 bits, so an unsigned word of 64 bits is written as two halves.
std::vector<std::int64_t> halves(const Algorithm& algorithm) {
  std::vector<std::int64_t> all;
  for (const std::uint64_t word : algorithm.words)
    all.push_back(static_cast<std::int64_t>(word >> 32U)), all.push_back(static_cast<std::int64_t>(word & 0xFFFFFFFFU));
  return all;
}

Algorithm algorithm_in(const JsonReader& row) {
  Algorithm algorithm{.relaxed = row.at("relaxed").as_bool()};
  const std::vector<std::int64_t> parts = row.at("algorithm").as_ints(0, 0xFFFFFFFF);
  if (parts.size() != 2 * algorithm.words.size()) row.at("algorithm").fail("16 numbers");
  for (std::size_t i = 0; i < algorithm.words.size(); ++i)
    algorithm.words[i] = static_cast<std::uint64_t>(parts[2 * i]) << 32U | static_cast<std::uint64_t>(parts[2 * i + 1]);
  return algorithm;
}

}  // namespace

std::string to_json(const ProductFile& file) {
  JsonWriter json;
  json.begin_object().field("format", kFormat).field("version", kVersion).key("products").begin_array();
  for (const auto& [row, algorithm] : file.rows) {
    json.begin_object().field("gpu", row.gpu).field("library", row.library).field("product", row.product);
    json.field("relaxed", algorithm.relaxed).key("algorithm").begin_line_array();
    for (const std::int64_t half : halves(algorithm)) json.value(half);
    json.end_array().end_object();
  }
  return json.end_array().end_object().text();
}

ProductFile parse_product_file(const std::string& text, const std::string& name) {
  const JsonReader json = JsonReader::parse(text, name);
  json.only({"format", "version", "products"});
  static_cast<void>(json.at("format").as_choice({kFormat}));
  static_cast<void>(json.at("version").as_int(kVersion, kVersion));
  ProductFile file;
  for (const JsonReader& row : json.at("products").elements()) {
    row.only({"gpu", "library", "product", "relaxed", "algorithm"});
    file.rows[{row.at("gpu").as_string(), row.at("library").as_string(), row.at("product").as_string()}] = algorithm_in(row);
  }
  return file;
}

ProductFile add_to_file(const std::string& path, const ProductFile& found, const ProductFile& wrong) {
  namespace fs = std::filesystem;
  std::error_code problem;
  if (const fs::path folder = fs::path(path).parent_path(); !folder.empty()) fs::create_directories(folder, problem);
  const FileLock lock(path, FileLock::IfHeld::Wait);
  ProductFile all;
  if (fs::exists(path, problem)) all = parse_product_file(read_file(path), path);
  const ProductFile before = all;
  std::erase_if(all.rows, [&](const auto& row) {
    const auto found_wrong = wrong.rows.find(row.first);
    return found_wrong != wrong.rows.end() && found_wrong->second == row.second;
  });
  all.rows.insert(found.rows.begin(), found.rows.end());  // insert keeps existing rows
  if (all != before) write_file(path, to_json(all));
  return all;
}

std::string product_file_path() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (const std::string named = variable("FORESHARD_PRODUCTS"); !named.empty()) return named == "off" ? "" : named;
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty()) return cache + "/foreshard/products.json";
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/foreshard/products.json";
}

}  // namespace foreshard::gpu
