// Functions with which kernel_cases*.cpp of this folder write the lists of cases.
#pragma once

#include <cmath>
#include <functional>

#include "core/base/words.h"
#include "exec/cuda_checks/kernel_cases.h"

namespace foreshard::gpu {

// Tolerances of relative errors: exact results, fp32, 16-bit numbers, attention on tensor cores.
inline constexpr double kExact = 0, kSingle = 1e-5, kHalf = 6e-3, kFlash = 1.2e-2;
inline const RandomSamples kSamples(3);

using Function = ops::Activation::Function;
inline constexpr Function kFunctions[] = {Function::Gelu,  Function::Relu,          Function::Tanh, Function::SwiGlu,
                                          Function::GeGlu, Function::ClampedSwiGlu, Function::Cap};
inline ops::Activation activation(Function function) {
  return {.function = function, .cap = function == Function::Cap ? 0.7 : 0};
}
inline bool is_gated(Function function) {
  return function == Function::SwiGlu || function == Function::GeGlu || function == Function::ClampedSwiGlu;
}

// Arrays whose elements are computed when a case is run (StoredArray::Values). `value` must not refer to what is gone by then.
inline StoredArray filled(std::int64_t size, DType dtype, const std::function<double(std::int64_t)>& value) {
  return {size, dtype, [size, value] {
            std::vector<double> values(static_cast<std::size_t>(size));
            for (std::int64_t i = 0; i < size; ++i) values[static_cast<std::size_t>(i)] = value(i);
            return values;
          }};
}
inline StoredArray empty_array(std::int64_t size, DType dtype) {
  return {size, dtype, [size] { return std::vector<double>(static_cast<std::size_t>(size), std::nan("")); }};
}
inline void put(StoredArray& array, std::int64_t at, double value) {
  array.change([=](std::int64_t i, double x) { return i == at ? value : x; });
}
// Standard deviations, second moments: not negative.
inline StoredArray random_magnitudes(std::int64_t elements, std::uint64_t seed, DType dtype) {
  StoredArray array = random_array(elements, seed, dtype);
  array.change([](std::int64_t, double x) { return std::abs(x); });
  return array;
}
// What the host writes; it runs once, when the first of these arrays is needed.
std::vector<StoredArray> made_on_host(const Compute& what, const std::vector<StoredArray>& reads,
                                      const std::vector<StoredArray>& writes, const OpArguments& arguments = {});

class Cases {
 public:
  // Adds a case with random operands of the given numbers of elements. An output that is accumulated to holds random numbers, any other
  // NaN.
  KernelCase& add(const std::string& name, Compute what, const std::vector<std::int64_t>& in,
                  const std::vector<std::int64_t>& out, DType dtype = DType::F32, double tolerance = kSingle) {
    KernelCase next{.name = name, .what = std::move(what), .tolerance = tolerance};
    std::uint64_t seed = 10 * cases_.size() + 1;
    for (const std::int64_t size : in) next.reads.push_back(random_array(size, seed++, dtype));
    const bool adds = next.what.accumulate || next.what.accumulate_weights || next.what.phase == Phase::Update ||
                      is<ops::ClipScale>(next.what.op);
    for (const std::int64_t size : out)
      next.writes.push_back(adds ? random_array(size, seed++, dtype) : empty_array(size, dtype));
    next.arguments = {.seed = 5, .layer = 77, .first_sample = 6, .samples_of_step = 8, .source = &kSamples};
    cases_.push_back(std::move(next));
    return cases_.back();
  }
  std::vector<KernelCase> take() { return std::move(cases_); }

 private:
  std::vector<KernelCase> cases_;
};

// Add the cases of kernel_cases_packed.cpp, kernel_cases_more.cpp (two), _eight_bits.cpp, _context_parallel.cpp, _codec.cpp, _experts.cpp,
// _heads.cpp and _masks.cpp.
void add_packed(Cases& all);
void add_loss_scales(Cases& all);
void add_pictures(Cases& all);
void add_eight_bits(Cases& all, bool large);
void add_context(Cases& all);
void add_codecs(Cases& all);
void add_experts(Cases& all);
void add_head_rows(Cases& all);
void add_masks(Cases& all);

}  // namespace foreshard::gpu
