// Products of dense square matrices, and the Cholesky factorization of symmetric positive definite ones, for a few hundred rows. Internal
// to strategy/.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace foreshard {

struct SquareMatrix {
  explicit SquareMatrix(std::size_t rows = 0) : n(rows), values(rows * rows) {}
  double& at(std::size_t row, std::size_t column) { return values[row * n + column]; }
  double at(std::size_t row, std::size_t column) const { return values[row * n + column]; }
  std::size_t n = 0;
  std::vector<double> values = {};  // row-major
  bool operator==(const SquareMatrix&) const = default;
};

double dot(const double* a, const double* b, std::size_t n);
SquareMatrix product(const SquareMatrix& a, const SquareMatrix& b);
SquareMatrix transposed(const SquareMatrix& a);
std::vector<double> product(const SquareMatrix& a, const std::vector<double>& x);

// The lower triangular L with a = L L^T; empty if a is not positive definite.
std::optional<SquareMatrix> cholesky(SquareMatrix a);
// Solves L x = b for a lower triangular L.
std::vector<double> solve_lower(const SquareMatrix& lower, std::vector<double> b);

}  // namespace foreshard
