// Matrix products on the CPU: OpenBLAS if it is installed, else plain loops.
#pragma once

#include <cstdint>

namespace foreshard::host {

// A product as GEMM of BLAS: c [m, n] = alpha op(a) op(b) + beta c, row-major, where op(a) is [m, k] and op(b) is [k, n]. lda, ldb, ldc are
// the distances between rows as stored, in elements. With beta = 0, c is not read.
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

// Runs on the calling thread only. Several threads may call it at once.
void multiply(const Product<float>& product);
void multiply(const Product<double>& product);

// The same with plain loops: the reference in tests, and what `multiply` uses without OpenBLAS.
void multiply_plainly(const Product<float>& product);
void multiply_plainly(const Product<double>& product);

// What `multiply` uses: for example "OpenBLAS 0.3.21 SkylakeX", or "plain loops" if no libopenblas.so.0 is found.
const char* blas_name();

}  // namespace foreshard::host
