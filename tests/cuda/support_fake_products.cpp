// Products of a FakeRuntime: by the host, with the epilogues that cuBLASLt has, within the limits that its documents set.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/base/error.h"
#include "exec/arithmetic/host_blas.h"
#include "exec/arithmetic/host_convert.h"
#include "tests/cuda/fake_parts.h"

namespace foreshard::gpu {

namespace {

constexpr std::uint64_t kOurs = 0x616c676f72697468;

// One product of a batch as a plain array.
std::vector<float> loaded(const Matrix& matrix, std::int64_t rows, std::int64_t columns, std::int64_t number) {
  std::vector<float> all(static_cast<std::size_t>(rows * columns));
  if (matrix.dtype == DType::F8) {
    float scale = 0;
    std::memcpy(&scale, matrix.scale, sizeof scale);
    for (std::int64_t i = 0; i < rows * columns; ++i)
      all[static_cast<std::size_t>(i)] =
          scale * float8_value(static_cast<std::uint8_t>(matrix.data[i / columns * matrix.row + i % columns]), matrix.format);
    return all;
  }
  const Operand operand{matrix.data + number * matrix.step * size_of(matrix.dtype).value, INT64_MAX, matrix.dtype};
  for (std::int64_t r = 0; r < rows; ++r) host::load(operand, r * matrix.row, columns, all.data() + r * columns);
  return all;
}

// GELU in tanh form, as its authors write it.
double gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
double gelu_slope(double x) {
  const double t = std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}

void finish(const Multiply& w, std::vector<float>& c) {
  if (w.epilogue == Epilogue::None) return;
  for (std::int64_t r = 0; r < w.m; ++r) {
    float* row = c.data() + r * w.n;
    const Operand aux{w.aux, INT64_MAX, w.c.dtype};
    if (w.epilogue == Epilogue::Gelu) {
      host::store(row, w.n, aux, r * w.aux_row);
      for (std::int64_t n = 0; n < w.n; ++n) row[n] = static_cast<float>(gelu(row[n]));
    } else {
      std::vector<float> saved(static_cast<std::size_t>(w.n));
      host::load(aux, r * w.aux_row, w.n, saved.data());
      for (std::int64_t n = 0; n < w.n; ++n) row[n] *= static_cast<float>(gelu_slope(saved[static_cast<std::size_t>(n)]));
    }
  }
}

// Of a matrix [rows, columns]: over its rows, or over its columns.
std::vector<float> sums_of(const std::vector<float>& matrix, std::int64_t rows, std::int64_t columns, bool over_rows) {
  std::vector<float> sums(static_cast<std::size_t>(over_rows ? columns : rows));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t n = 0; n < columns; ++n)
      sums[static_cast<std::size_t>(over_rows ? n : r)] += matrix[static_cast<std::size_t>(r * columns + n)];
  return sums;
}

void multiply_now(const Multiply& w) {
  for (std::int64_t i = 0; i < w.count; ++i) {
    const std::int64_t rows_of_a = w.a.transposed ? w.k : w.m, columns_of_a = w.a.transposed ? w.m : w.k;
    const std::vector<float> a = loaded(w.a, rows_of_a, columns_of_a, i);
    const std::vector<float> b = loaded(w.b, w.b.transposed ? w.n : w.k, w.b.transposed ? w.k : w.n, i);
    std::vector<float> c(static_cast<std::size_t>(w.m * w.n)), bias(static_cast<std::size_t>(w.n));
    if (w.beta != 0) c = loaded(w.c, w.m, w.n, i);
    if (w.bias) host::load({const_cast<std::byte*>(w.bias), w.n, w.c.dtype}, 0, w.n, bias.data());
    host::multiply({.m = w.m,
                    .n = w.n,
                    .k = w.k,
                    .a = a.data(),
                    .lda = columns_of_a,
                    .transpose_a = w.a.transposed,
                    .b = b.data(),
                    .ldb = w.b.transposed ? w.k : w.n,
                    .transpose_b = w.b.transposed,
                    .c = c.data(),
                    .ldc = w.n,
                    .alpha = w.alpha,
                    .beta = w.beta});
    for (std::int64_t r = 0; r < w.m; ++r)
      for (std::int64_t n = 0; n < w.n; ++n) c[static_cast<std::size_t>(r * w.n + n)] += bias[static_cast<std::size_t>(n)];
    finish(w, c);
    std::vector<float> sums;
    if (w.sums == Sums::OfResult) sums = sums_of(c, w.m, w.n, true);
    if (w.sums == Sums::OfFactor) sums = sums_of(a, rows_of_a, columns_of_a, w.a.transposed);
    if (!sums.empty()) {
      const auto count = static_cast<std::int64_t>(sums.size());
      host::store(sums.data(), count, {w.sums_to, count, w.c.dtype}, 0);
    }
    const Operand to{w.c.data + i * w.c.step * size_of(w.c.dtype).value, INT64_MAX, w.c.dtype};
    for (std::int64_t r = 0; r < w.m; ++r) host::store(c.data() + r * w.n, w.n, to, r * w.c.row);
  }
}

// What the arrays that an epilogue reaches begin at a multiple of, by their addresses: not as the form of the product says, which is tested.
std::uint32_t end_alignment(const Multiply& w) {
  std::uintptr_t all = 256;
  for (const void* array : {static_cast<const void*>(w.c.data), static_cast<const void*>(w.bias),
                            static_cast<const void*>(w.aux), static_cast<const void*>(w.sums_to)})
    all |= reinterpret_cast<std::uintptr_t>(array);
  return std::uint32_t{1} << std::countr_zero(all);
}

Algorithm algorithm_of(const Multiply& w, std::uint64_t number) {
  const std::string form = text_of(form_of(w, 0));
  return {.words = {kOurs, number, std::hash<std::string>{}(form)}};
}

}  // namespace

std::vector<Algorithm> FakeRuntime::algorithms(const Multiply& w, Bytes, int most) {
  std::vector<Algorithm> all;
  const bool epilogue = w.epilogue != Epilogue::None || w.sums != Sums::None;
  if (!wrong_form(w).empty() || (epilogue && !settings_.epilogues) || (w.a.dtype == DType::F8 && !settings_.eight_bits))
    return all;
  const std::size_t count = std::min(static_cast<std::size_t>(most), std::max<std::size_t>(1, settings_.product_times.size()));
  for (std::size_t i = 0; i < count; ++i) all.push_back(algorithm_of(w, i));
  return all;
}

bool FakeRuntime::takes(const Multiply& w, const Algorithm& algorithm, Bytes) {
  return algorithm.words[1] < std::max<std::size_t>(1, settings_.product_times.size()) &&
         algorithm == algorithm_of(w, algorithm.words[1]);
}

void FakeRuntime::multiply(const Multiply& w, std::byte* workspace, Bytes bytes, Stream* stream) {
  expect_current(stream, kFakeProduct);
  load(kFakeProduct, stream, settings_.first_product);
  std::vector<Range> ranges;
  for (const ProductRange& range : ranges_of(w)) ranges.push_back({range.begin, range.end, range.written});
  if (workspace) ranges.push_back({workspace, workspace + bytes.value, true});
  if (const std::string problem = wrong_form(w); !problem.empty())
    throw DeviceError(kFakeProduct, "CUBLAS_STATUS_INVALID_VALUE, " + problem);
  if (w.algorithm && !takes(w, *w.algorithm, bytes))
    throw DeviceError(kFakeProduct, "CUBLAS_STATUS_INVALID_VALUE, a foreign algorithm");
  const ProductForm form = form_of(w, stream->device);
  std::int64_t takes = 0;
  const std::uint32_t needed = [&] {
    const std::lock_guard lock(mutex_);
    ++epilogues_[{w.epilogue, w.sums}];
    eight_bit_products_ += w.a.dtype == DType::F8 ? 1 : 0;
    ++products_by_[w.algorithm ? static_cast<int>(w.algorithm->words[1]) : -1];
    if (!settings_.product_times.empty()) takes = settings_.product_times[w.algorithm ? w.algorithm->words[1] : 0];
    return chosen_.try_emplace(form, form.end_aligned()).first->second;
  }();
  put_work(stream, kFakeProduct, ranges,
           [this, w, ranges, takes, device = stream->device, misaligned = end_alignment(w) < needed] {
             failure_ = misaligned ? "cudaErrorMisalignedAddress" : out_of_reach(device, ranges);
             now_ += takes;
             if (failure_.empty()) multiply_now(w);
           });
}

}  // namespace foreshard::gpu
