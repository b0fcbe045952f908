// Which algorithm takes a product: of those that the library names first, the one that was quickest when they were timed, once per form, before the
// first step. What was found is kept in a file, so later runs take the same, and give the same bits.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "exec/cuda/product_form.h"
#include "exec/cuda/runtime.h"

namespace foreshard::gpu {

struct ProductFile {
  struct Row {
    std::string gpu = {}, library = {}, product = {};  // text_of(form)
    auto operator<=>(const Row&) const = default;
  };
  std::map<Row, Algorithm> rows = {};
  bool operator==(const ProductFile&) const = default;
};
std::string to_json(const ProductFile& file);
ProductFile parse_product_file(const std::string& text, const std::string& name);  // throws Error
// Adds `found` to what the file holds, where it holds nothing of the kind or what is in `wrong`; gives back all of it. Several processes may do so at once: each waits for
// the others, and no reader ever sees half a file. Throws Error for a file that is none of ours, which is left as it is, and where it cannot be written.
ProductFile add_to_file(const std::string& path, const ProductFile& found, const ProductFile& wrong = {});

class ProductChoice {
 public:
  static constexpr int kCandidates = 4;

  // `path`: of the file; empty: nothing is read, timed or kept, the library chooses.
  ProductChoice(Runtime& runtime, std::string path);

  bool asks() const { return asked_ || !path_.empty(); }
  // Before the first step, on a GPU that does nothing else: of products whose operands hold zeros, and hold them again afterwards.
  void decide(int gpu, const std::vector<Multiply>& products);
  // What this process has decided, and what all have, of whom the first that knows a product is obeyed: then all processes of a run take the same.
  std::string text() const;
  void adopt(const std::vector<std::string>& of_processes);

  const Algorithm* of(const Multiply& product, int gpu) const;  // null: not decided
  const std::vector<std::string>& notes() const { return notes_; }
  int timed() const { return timed_; }  // products

 private:
  class Timer;
  int kind_of(int gpu) const;  // the first GPU of its kind
  ProductFile::Row row_of(const Multiply& product, int gpu) const;
  void read();
  void use(const ProductFile::Row& row, const ProductForm& form, const Algorithm& algorithm);
  void keep();

  Runtime& runtime_;
  std::string path_;
  std::vector<int> kinds_ = {};  // [GPU]
  std::vector<Properties> gpus_ = {};
  bool asked_ = false, dirty_ = false;
  ProductFile known_ = {}, wrong_ = {}, decided_ = {};  // of the file; in it, but refused by the library; of this process
  std::map<ProductForm, Algorithm> used_ = {};
  std::map<ProductFile::Row, ProductForm> form_of_ = {};
  std::vector<std::string> notes_ = {};
  int timed_ = 0;
};

}  // namespace foreshard::gpu
