#include "exec/cuda/stored_array.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "exec/arithmetic/host_convert.h"
#include "exec/base/philox.h"

namespace foreshard::gpu {

StoredArray::StoredArray(std::int64_t elements, DType dtype)
    : elements_(elements), dtype_(dtype), bytes_(static_cast<std::size_t>(elements * size_of(dtype).value)) {}

StoredArray::StoredArray(const std::vector<double>& values, DType dtype)
    : StoredArray(static_cast<std::int64_t>(values.size()), dtype) {
  if (host::is_floating(dtype))
    host::store(values.data(), elements_, operand(), 0);
  else
    for (std::int64_t i = 0; i < elements_; ++i) set(i, values[static_cast<std::size_t>(i)]);
}

StoredArray::StoredArray(std::int64_t elements, DType dtype, Values values)
    : elements_(elements), dtype_(dtype), values_(std::move(values)) {}

void StoredArray::compute() const {
  if (!values_) return;
  const std::vector<double> values = std::exchange(values_, nullptr)();
  FS_ASSERT(static_cast<std::int64_t>(values.size()) == elements_);
  bytes_ = StoredArray(values, dtype_).bytes_;
}

void StoredArray::change(const std::function<double(std::int64_t, double)>& f) {
  StoredArray before = std::move(*this);
  *this = StoredArray(before.elements_, before.dtype_, [before, f] {
    std::vector<double> values = before.values();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = f(static_cast<std::int64_t>(i), values[i]);
    return values;
  });
}

std::vector<double> StoredArray::values() const {
  std::vector<double> all(static_cast<std::size_t>(elements_));
  for (std::int64_t i = 0; i < elements_; ++i) all[static_cast<std::size_t>(i)] = at(i);
  return all;
}

Operand StoredArray::operand() {
  compute();
  return {bytes_.data(), elements_, dtype_};
}

double StoredArray::at(std::int64_t i) const {
  compute();
  const std::byte* place = bytes_.data() + i * size_of(dtype_).value;
  if (dtype_ == DType::U8) return static_cast<double>(*place);
  if (dtype_ == DType::I64) {
    std::int64_t value = 0;
    std::memcpy(&value, place, sizeof value);
    return static_cast<double>(value);
  }
  double value = 0;
  host::load({const_cast<std::byte*>(bytes_.data()), elements_, dtype_}, i, 1, &value);
  return value;
}

void StoredArray::set(std::int64_t i, double value) {
  compute();
  std::byte* place = bytes_.data() + i * size_of(dtype_).value;
  if (dtype_ == DType::U8) {
    *place = static_cast<std::byte>(std::isfinite(value) ? static_cast<std::uint8_t>(value) : 77);
  } else if (dtype_ == DType::I64) {
    const std::int64_t whole = std::isfinite(value) ? static_cast<std::int64_t>(value) : -77;
    std::memcpy(place, &whole, sizeof whole);
  } else {
    host::store(&value, 1, operand(), i);
  }
}

StoredArray random_array(std::int64_t elements, std::uint64_t seed, DType dtype) {
  return {elements, dtype, [elements, seed] {
            std::vector<double> values(static_cast<std::size_t>(elements));
            standard_normals(seed, 1, 0, values);
            return values;
          }};
}

void run_on_host(const Compute& what, std::vector<StoredArray>& reads, std::vector<StoredArray>& writes,
                 const OpArguments& arguments) {
  std::vector<Operand> from, to;
  for (StoredArray& array : reads) from.push_back(array.operand());
  for (StoredArray& array : writes) to.push_back(array.operand());
  run_compute(what, from, to, arguments);
}

double relative_error(const StoredArray& a, const StoredArray& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double difference = 0, scale = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const double x = a.at(i), y = b.at(i);
    if (!std::isfinite(x) || !std::isfinite(y)) return std::numeric_limits<double>::infinity();
    difference = std::max(difference, std::abs(x - y));
    scale = std::max(scale, std::abs(y));
  }
  return scale > 0 ? difference / scale : difference;
}

}  // namespace foreshard::gpu
