// Linear layers with 8-bit factors: with sizes that the library multiplies in 8 bits, and with sizes that it does not.
#include "exec/cuda_checks/case_list.h"

namespace foreshard::gpu {

static void multiply_by_two_to(StoredArray& array, int power) {
  array.change([=](std::int64_t, double x) { return std::ldexp(x, power); });
}

// Makes the first `parts` factors small, each by another power, and one factor large. With a wrong scale, or that of another factor, they
// would leave the range of 8 bits. An output that is accumulated to is as small as what is added.
static void spread(KernelCase& tried, std::size_t parts, std::size_t large) {
  const int least = tried.what.phase == Phase::Forward ? -14 : -40;
  for (std::size_t r = 0; r < parts; ++r) multiply_by_two_to(tried.reads[r], least + 4 * static_cast<int>(r));
  multiply_by_two_to(tried.reads[large], 10);
  put(tried.reads[large], tried.reads[large].size() - 1, 9000);  // its largest number is the last one
  if (!tried.what.accumulate) return;
  multiply_by_two_to(tried.writes[0], least + 12);
  if (tried.writes.size() == 2) multiply_by_two_to(tried.writes[1], least + 2);
}

void add_eight_bits(Cases& all, bool large) {
  using enum Phase;
  struct Sizes {
    const char* name;
    std::int64_t m, n, k, first;  // first: columns of the first part of y
  };
  const Sizes small[] = {{"", 48, 80, 96, 80}, {"_parts", 32, 48, 64, 16}, {"_odd", 10, 12, 7, 8}};
  const Sizes real[] = {{"_large", 1024, 768, 3072, 768}};
  for (const Sizes& s : large ? std::span<const Sizes>(real) : std::span<const Sizes>(small)) {
    std::vector<std::int64_t> y = {s.m * s.first};
    if (s.first < s.n) y.push_back(s.m * (s.n - s.first));
    const auto linear = [&](Phase phase, bool add) {
      return Compute{.op = ops::MatMul{}, .phase = phase, .shapes = {{{1, s.m, s.n, s.k}, DType::F8}}, .accumulate = add};
    };
    const auto behind = [](std::vector<std::int64_t> first, const std::vector<std::int64_t>& rest) {
      first.insert(first.end(), rest.begin(), rest.end());
      return first;
    };
    for (const DType dtype : {DType::BF16, DType::F16}) {
      const std::string name = std::string("eighth") + s.name + (dtype == DType::F16 ? "_fp16" : "");
      const std::size_t parts = y.size();
      spread(all.add(name, linear(Forward, false), {s.m * s.k, s.n * s.k, s.n}, y, dtype, kHalf), 1, 1);
      if (dtype == DType::F16) continue;  // fp16 cannot represent gradients as small as these
      spread(
          all.add(name + "_input_grad", linear(InputGrad, true), behind(y, {s.m * s.k, s.n * s.k}), {s.m * s.k}, dtype, kFlash),
          parts, parts + 1);
      spread(all.add(name + "_input_grad_bare", linear(InputGrad, false), behind(y, {s.n * s.k}), {s.m * s.k}, dtype, kFlash),
             parts, parts);
      spread(all.add(name + "_weight_grad", linear(WeightGrad, true), behind(y, {s.m * s.k}), {s.n * s.k, s.n}, dtype, kHalf),
             parts, parts);
    }
    KernelCase& wide = all.add(std::string("eighth") + s.name + "_weight_grad_fp32", linear(WeightGrad, false),
                               behind(y, {s.m * s.k}), {}, DType::BF16, kSingle);
    spread(wide, y.size(), y.size());
    wide.writes = {empty_array(s.n * s.k, DType::F32), empty_array(s.n, DType::F32)};
  }
  // One number far larger than the rest, which determines the scale.
  KernelCase& far =
      all.add(large ? "eighth_far_large" : "eighth_far", {.op = ops::MatMul{}, .shapes = {{{1, 16, 16, 640}, DType::F8}}},
              {16 * 640, 16 * 640}, {256}, DType::BF16, kHalf);
  spread(far, 1, 1);
  for (StoredArray& factor : far.reads) put(factor, factor.size() - 1, 3e5);
}

}  // namespace foreshard::gpu
