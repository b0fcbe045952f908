#include "strategy/learning/cholesky.h"

#include <cmath>

namespace foreshard {

// Four sums at a time: one would wait for itself at every addition.
double dot(const double* a, const double* b, std::size_t n) {
  double sums[4] = {};
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (std::size_t s = 0; s < 4; ++s) sums[s] += a[i + s] * b[i + s];
  for (; i < n; ++i) sums[0] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

__attribute__((optimize("O3"))) SquareMatrix product(const SquareMatrix& a, const SquareMatrix& b) {
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
  for (std::size_t i = 0; i < a.n; ++i) y[i] = dot(&a.values[i * a.n], x.data(), a.n);
  return y;
}

std::optional<SquareMatrix> cholesky(SquareMatrix a) {
  for (std::size_t j = 0; j < a.n; ++j) {
    for (std::size_t i = j; i < a.n; ++i) {
      const double *left = &a.values[i * a.n], *right = &a.values[j * a.n];
      const double sum = left[j] - dot(left, right, j);
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
    b[i] = (b[i] - dot(&lower.values[i * lower.n], b.data(), i)) / lower.at(i, i);
  }
  return b;
}

}  // namespace foreshard
