// Matrix products behind one function: OpenBLAS when it is installed, else a plain loop nest.
#pragma once

#include <cstdint>

namespace foreshard::host {

// c [m, n] = alpha op(a) op(b) + beta c, row-major; op(a) is [m, k], op(b) is [k, n]. beta = 0 does not read c.
template <class T>
struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;
  std::int64_t lda = 0;
  bool transpose_a = false;  // a is stored [k, m]
  const T* b = nullptr;
  std::int64_t ldb = 0;
  bool transpose_b = false;  // b is stored [n, k]
  T* c = nullptr;
  std::int64_t ldc = 0;
  T alpha = 1, beta = 0;
};

// One thread; safe to call from several threads at once.
void multiply(const Product<float>& product);
void multiply(const Product<double>& product);

// The oracle of the above, and what runs without OpenBLAS.
void multiply_plainly(const Product<float>& product);
void multiply_plainly(const Product<double>& product);

// "OpenBLAS 0.3.21 SkylakeX", or "plain loops" when no libopenblas.so.0 is found.
const char* blas_name();

}  // namespace foreshard::host
