// The table of exec/cuda/runtime.h by CUDA and cuBLASLt. The only file that calls either, with its .cpp and products.cpp.
#pragma once

#include <memory>

#include "exec/cuda/runtime.h"

namespace foreshard::gpu {

// Products by cuBLASLt: one handle per GPU, one choice of algorithm per form.
class Products {
 public:
  Products();
  ~Products();
  void run(const Multiply& multiply, std::byte* workspace, Bytes bytes, void* stream);
  std::string version() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foreshard::gpu
