// The implementation of Runtime (exec/cuda/runtime.h) with CUDA and cuBLASLt. Only cuda_runtime.cpp and products.cpp call these libraries.
#pragma once

#include <memory>

#include "exec/cuda/runtime.h"

namespace foreshard::gpu {

// Matrix products with cuBLASLt. It creates one handle per GPU, and one descriptor per form of a product and arrays of its epilogue, and
// reuses them. May be called from any thread, for the GPU that it has selected; functions as those of Runtime.
class Products {
 public:
  Products();
  ~Products();
  // `stream`: a cudaStream_t.
  void run(const Multiply& multiply, std::byte* workspace, Bytes bytes, void* stream);
  std::vector<Algorithm> algorithms(const Multiply& multiply, Bytes workspace, int most);
  bool takes(const Multiply& multiply, const Algorithm& algorithm, Bytes workspace);
  std::string version() const;  // "cuBLASLt 130101"

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foreshard::gpu
