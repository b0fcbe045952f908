// Chooses the algorithm of each matrix product: the fastest of the first few that cuBLASLt's heuristic proposes. They are timed once per
// form of a product (product_form.h), before the first step. The choices are stored in a file, so that later runs use the same algorithms
// and get the same bits.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "exec/cuda/product_form.h"
#include "exec/cuda/runtime.h"

namespace foreshard::gpu {

// The choices in the file: one algorithm per kind of GPU, version of the library and form of a product.
struct ProductFile {
  struct Row {
    std::string gpu = {}, library = {}, product = {};  // product: text_of(form)
    auto operator<=>(const Row&) const = default;
  };
  std::map<Row, Algorithm> rows = {};
  bool operator==(const ProductFile&) const = default;
};
std::string to_json(const ProductFile& file);
ProductFile parse_product_file(const std::string& text, const std::string& name);  // throws Error naming the file `name`
// Adds `found` to the file, and returns its new contents. A row that the file already has is kept, unless it is in `wrong`; then
// that of `found` replaces it. Several processes may call it at once: they take turns, and a reader never sees an incomplete file. Throws
// Error if the file has another format (it is not changed then) or cannot be written.
ProductFile add_to_file(const std::string& path, const ProductFile& found, const ProductFile& wrong = {});

class ProductChoice {
 public:
  static constexpr int kCandidates = 4;  // algorithms that are timed per form

  // `path`: the file; empty: nothing is read, timed or stored, and the library chooses.
  ProductChoice(Runtime& runtime, std::string path);

  bool asks() const { return asked_ || !path_.empty(); }  // whether it chooses at all
  // Chooses the algorithms of these products, from the file or by timing. Called before the first step, while the GPU does nothing else.
  // The operands must hold zeros; timing overwrites them, and they hold zeros again afterwards.
  void decide(int gpu, const std::vector<Multiply>& products);
  // Make all processes of a run use the same algorithms: `text` is what this process has chosen, `adopt` takes the texts of all processes.
  // For each product, the choice of the first process that has one is used.
  std::string text() const;
  void adopt(const std::vector<std::string>& of_processes);

  const Algorithm* of(const Multiply& product, int gpu) const;      // the chosen algorithm; null: none was chosen
  const std::vector<std::string>& notes() const { return notes_; }  // problems with the file, for the user
  int timed() const { return timed_; }                              // number of products that this process has timed

 private:
  class Timer;
  int kind_of(int gpu) const;  // the first GPU with the same name
  ProductFile::Row row_of(const Multiply& product, int gpu) const;
  void read();
  void use(const ProductFile::Row& row, const ProductForm& form, const Algorithm& algorithm);
  void keep();

  Runtime& runtime_;
  std::string path_;
  std::vector<int> kinds_ = {};  // [GPU]
  std::vector<Properties> gpus_ = {};
  bool asked_ = false, dirty_ = false;
  // The contents of the file; its rows that the library refuses; the choices of this process.
  ProductFile known_ = {}, wrong_ = {}, decided_ = {};
  std::map<ProductForm, Algorithm> used_ = {};
  std::map<ProductFile::Row, ProductForm> form_of_ = {};
  std::vector<std::string> notes_ = {};
  int timed_ = 0;
};

}  // namespace foreshard::gpu
