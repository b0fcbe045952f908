#include "strategy/learning/cholesky.h"

#include <cmath>

namespace foreshard {

SquareMatrix product(const SquareMatrix& a, const SquareMatrix& b) {
  SquareMatrix c(a.n);
  for (std::size_t i = 0; i < a.n; ++i)
    for (std::size_t k = 0; k < a.n; ++k) {
      const double factor = a.at(i, k);
      if (factor == 0) continue;  // half of the factors of triangular matrices are 0
      const double* from = &b.values[k * a.n];
      double* to = &c.values[i * a.n];
      for (std::size_t j = 0; j < a.n; ++j) to[j] += factor * from[j];
    }
  return c;
}

SquareMatrix transposed(const SquareMatrix& a) {
  SquareMatrix t(a.n);
  for (std::size_t i = 0; i < a.n; ++i)
    for (std::size_t j = 0; j < a.n; ++j) t.at(j, i) = a.at(i, j);
  return t;
}

std::vector<double> product(const SquareMatrix& a, const std::vector<double>& x) {
  std::vector<double> y(a.n);
  for (std::size_t i = 0; i < a.n; ++i)
    for (std::size_t j = 0; j < a.n; ++j) y[i] += a.at(i, j) * x[j];
  return y;
}

std::optional<SquareMatrix> cholesky(SquareMatrix a) {
  for (std::size_t j = 0; j < a.n; ++j) {
    for (std::size_t i = j; i < a.n; ++i) {
      const double *left = &a.values[i * a.n], *right = &a.values[j * a.n];
      double sum = left[j];
      for (std::size_t k = 0; k < j; ++k) sum -= left[k] * right[k];
      if (i > j) {
        a.at(i, j) = sum / a.at(j, j);
      } else {
        if (!(sum > 0)) return {};
        a.at(j, j) = std::sqrt(sum);
      }
    }
    for (std::size_t i = 0; i < j; ++i) a.at(i, j) = 0;
  }
  return a;
}

std::vector<double> solve_lower(const SquareMatrix& lower, std::vector<double> b) {
  for (std::size_t i = 0; i < lower.n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= lower.at(i, k) * b[k];
    b[i] /= lower.at(i, i);
  }
  return b;
}

}  // namespace foreshard
