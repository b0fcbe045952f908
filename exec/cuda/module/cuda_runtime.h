// The table of exec/cuda/runtime.h by CUDA and cuBLASLt. The only file that calls either, with its .cpp and products.cpp.
#pragma once

#include <memory>

#include "exec/cuda/runtime.h"

namespace foreshard::gpu {

// Products by cuBLASLt: one handle per GPU, one description per form and operands of the epilogue, made once. Of any thread.
class Products {
 public:
  Products();
  ~Products();
  void run(const Multiply& multiply, std::byte* workspace, Bytes bytes, void* stream);
  std::vector<Algorithm> algorithms(const Multiply& multiply, Bytes workspace, int most);
  bool takes(const Multiply& multiply, const Algorithm& algorithm, Bytes workspace);
  std::string version() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foreshard::gpu
