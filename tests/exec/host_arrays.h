// Arrays of any stored type for the kernel tests, and one call of a kernel on them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "exec/host/host_ops.h"

namespace foreshard {

// A value type: elements are read and written as doubles (exact for what the tests store).
class Array {
 public:
  Array() = default;
  Array(std::int64_t elements, DType dtype);
  Array(std::vector<double> values, DType dtype);  // rounded to the type
  std::int64_t size() const { return elements_; }
  double at(std::int64_t i) const;
  void set(std::int64_t i, double value);
  std::vector<double> values() const;
  Operand operand();

 private:
  std::int64_t elements_ = 0;
  DType dtype_ = DType::F64;
  std::vector<std::byte> bytes_ = {};
};

// Standard normal numbers, the same for the same seed.
Array random_array(std::int64_t elements, std::uint64_t seed, DType dtype = DType::F64);

// Runs the kernel on the arrays; what it writes is in `writes` afterwards.
void run_on(const Compute& what, std::vector<Array>& reads, std::vector<Array>& writes, const OpArguments& arguments = {});
// The same with fresh outputs that start as NaN, so that nobody can read or skip them.
std::vector<Array> outputs_of(const Compute& what, std::vector<Array> reads, const std::vector<std::int64_t>& sizes,
                              const OpArguments& arguments = {}, DType dtype = DType::F64);

// Largest |a - b| over the largest |b|; infinity when sizes differ or a number is not finite.
double relative_error(const std::vector<double>& a, const std::vector<double>& b);
double relative_error(const Array& a, const Array& b);

}  // namespace foreshard
