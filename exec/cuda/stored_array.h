// StoredArray: an array in any number format, whose elements are read and written as doubles. For tests that compare GPU and CPU.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "exec/host/host_ops.h"

namespace foreshard::gpu {

class StoredArray {
 public:
  StoredArray() = default;
  StoredArray(std::int64_t elements, DType dtype);
  StoredArray(const std::vector<double>& values, DType dtype);  // rounded to the format; NaN becomes -77 (int64) or 77 (uint8)
  // `values` returns them all. It is called when an element is first needed, so that a list of arrays that nobody reads costs nothing.
  using Values = std::function<std::vector<double>()>;
  StoredArray(std::int64_t elements, DType dtype, Values values);
  // Calls `values` now, if it has not been called: copies made afterwards have the elements.
  void compute() const;
  // x[i] becomes f(i, x[i]); like `values`, when an element is first needed.
  void change(const std::function<double(std::int64_t, double)>& f);
  std::int64_t size() const { return elements_; }
  DType dtype() const { return dtype_; }
  std::vector<double> values() const;
  double at(std::int64_t i) const;
  void set(std::int64_t i, double value);
  Operand operand();

 private:
  std::int64_t elements_ = 0;
  DType dtype_ = DType::F32;
  mutable std::vector<std::byte> bytes_ = {};
  mutable Values values_ = {};  // not called yet
};

// Standard normal numbers that depend only on the seed.
StoredArray random_array(std::int64_t elements, std::uint64_t seed, DType dtype);
// Runs an instruction on the CPU.
void run_on_host(const Compute& what, std::vector<StoredArray>& reads, std::vector<StoredArray>& writes,
                 const OpArguments& arguments);
// The largest |a - b| divided by the largest |b|; infinity if the sizes differ or a number is not finite.
double relative_error(const StoredArray& a, const StoredArray& b);

}  // namespace foreshard::gpu
