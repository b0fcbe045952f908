#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "exec/arithmetic/host_float16.h"
#include "exec/base/philox.h"
#include "tests/exec/host_arrays.h"

namespace foreshard {

Array::Array(std::int64_t elements, DType dtype)
    : elements_(elements), dtype_(dtype), bytes_(static_cast<std::size_t>(elements * size_of(dtype).value)) {}

Array::Array(std::vector<double> values, DType dtype) : Array(static_cast<std::int64_t>(values.size()), dtype) {
  for (std::size_t i = 0; i < values.size(); ++i) set(static_cast<std::int64_t>(i), values[i]);
}

template <class Stored>
static Stored get(const std::vector<std::byte>& bytes, std::int64_t i) {
  Stored value;
  std::memcpy(&value, bytes.data() + static_cast<std::size_t>(i) * sizeof value, sizeof value);
  return value;
}
template <class Stored>
static void put(std::vector<std::byte>& bytes, std::int64_t i, Stored value) {
  std::memcpy(bytes.data() + static_cast<std::size_t>(i) * sizeof value, &value, sizeof value);
}

double Array::at(std::int64_t i) const {
  switch (dtype_) {
    case DType::F64: return get<double>(bytes_, i);
    case DType::F32:
    case DType::TF32: return get<float>(bytes_, i);
    case DType::BF16: return to_float(get<BFloat16>(bytes_, i));
    case DType::F16: return to_float(get<Float16>(bytes_, i));
    case DType::I64: return static_cast<double>(get<std::int64_t>(bytes_, i));
    case DType::U8:
    case DType::F8: return get<std::uint8_t>(bytes_, i);
    case DType::I32: return get<std::int32_t>(bytes_, i);
    case DType::F4: break;  // two elements in a byte: no array of the tests
  }
  return 0;
}

void Array::set(std::int64_t i, double value) {
  switch (dtype_) {
    case DType::F64: return put(bytes_, i, value);
    case DType::F32:
    case DType::TF32: return put(bytes_, i, static_cast<float>(value));
    case DType::BF16: return put(bytes_, i, to_bfloat16(static_cast<float>(value)));
    case DType::F16: return put(bytes_, i, to_float16(static_cast<float>(value)));
    case DType::I64: return put(bytes_, i, std::isfinite(value) ? static_cast<std::int64_t>(value) : std::int64_t{-77});
    case DType::U8:
    case DType::F8: return put(bytes_, i, std::isfinite(value) ? static_cast<std::uint8_t>(value) : std::uint8_t{77});
    case DType::I32: return put(bytes_, i, std::isfinite(value) ? static_cast<std::int32_t>(value) : std::int32_t{-77});
    case DType::F4: return;
  }
}

std::vector<double> Array::values() const {
  std::vector<double> values;
  for (std::int64_t i = 0; i < elements_; ++i) values.push_back(at(i));
  return values;
}

Operand Array::operand() { return {bytes_.data(), elements_, dtype_}; }

Array random_array(std::int64_t elements, std::uint64_t seed, DType dtype) {
  Array array(elements, dtype);
  for (std::int64_t i = 0; i < elements; ++i) array.set(i, standard_normal(seed, 1, static_cast<std::uint64_t>(i)));
  return array;
}

void run_on(const Compute& what, std::vector<Array>& reads, std::vector<Array>& writes, const OpArguments& arguments) {
  std::vector<Operand> from, to;
  for (Array& array : reads) from.push_back(array.operand());
  for (Array& array : writes) to.push_back(array.operand());
  run_compute(what, from, to, arguments);
}

std::vector<Array> outputs_of(const Compute& what, std::vector<Array> reads, const std::vector<std::int64_t>& sizes,
                              const OpArguments& arguments, DType dtype) {
  std::vector<Array> writes;
  for (const std::int64_t size : sizes)
    writes.emplace_back(std::vector<double>(static_cast<std::size_t>(size), std::nan("")), dtype);
  run_on(what, reads, writes, arguments);
  return writes;
}

double relative_error(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double difference = 0, scale = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return std::numeric_limits<double>::infinity();
    difference = std::max(difference, std::abs(a[i] - b[i]));
    scale = std::max(scale, std::abs(b[i]));
  }
  return scale > 0 ? difference / scale : difference;
}
double relative_error(const Array& a, const Array& b) { return relative_error(a.values(), b.values()); }

}  // namespace foreshard
