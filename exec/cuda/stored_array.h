// Arrays of any stored type, read and written as doubles: operands of the comparisons of a GPU with the host.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/host/host_ops.h"

namespace foreshard::gpu {

class StoredArray {
 public:
  StoredArray() = default;
  StoredArray(std::int64_t elements, DType dtype);
  StoredArray(const std::vector<double>& values, DType dtype);  // rounded to the type; NaN is -77 or 77 in integers
  std::int64_t size() const { return elements_; }
  double at(std::int64_t i) const;
  void set(std::int64_t i, double value);
  Operand operand();

 private:
  std::int64_t elements_ = 0;
  DType dtype_ = DType::F32;
  std::vector<std::byte> bytes_ = {};
};

// Standard normal numbers, the same for the same seed.
StoredArray random_array(std::int64_t elements, std::uint64_t seed, DType dtype);
void run_on_host(const Compute& what, std::vector<StoredArray>& reads, std::vector<StoredArray>& writes,
                 const OpArguments& arguments);
// Largest |a - b| over the largest |b|; infinity when sizes differ or a number is not finite.
double relative_error(const StoredArray& a, const StoredArray& b);

}  // namespace foreshard::gpu
