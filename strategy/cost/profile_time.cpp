#include "strategy/cost/profile_time.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/plan/joined_products.h"

namespace foreshard {

namespace {

constexpr std::size_t kNearest = 12;
constexpr double kRidge = 0.3;  // pull of slopes towards 0, against the weights of the samples
constexpr double kReach = 0.5;  // distance, in doublings of all sizes together, at which a sample counts half
constexpr double kSameSize = 1e-9;

double logarithm(double value) { return std::log2(std::max(value, 1.0)); }

std::vector<double> features(const std::vector<std::int64_t>& dims, Bytes traffic) {
  std::vector<double> all;
  for (const std::int64_t dim : dims) all.push_back(logarithm(static_cast<double>(dim)));
  all.push_back(logarithm(static_cast<double>(traffic.value)));
  return all;
}

// The work that samples are compared by: of a product or attention, the multiply-adds by its sizes, up to a factor; else the bytes.
double work_of(const Operation& op, const std::vector<std::int64_t>& dims, Bytes traffic) {
  const auto product = [&](std::initializer_list<std::size_t> places) {
    double work = 1;
    for (const std::size_t place : places) work *= static_cast<double>(std::max<std::int64_t>(dims[place], 1));
    return work;
  };
  if (is_matrix_product(op) && dims.size() >= 4) return product({0, 1, 2, 3});
  if (is<ops::Attention>(op) && dims.size() >= 8) return product({0, 1, 2, 3, 5});
  if (is<ops::Conv2d>(op) && dims.size() >= 12) return product({1, 5, 5, 8, 9, 10, 11});
  return std::max(static_cast<double>(traffic.value), 1.0);
}

// Solves the symmetric positive definite system by elimination.
std::vector<double> solve(std::vector<std::vector<double>> a, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = i + 1; j < n; ++j) {
      const double factor = a[j][i] / a[i][i];
      for (std::size_t k = i; k < n; ++k) a[j][k] -= factor * a[i][k];
      b[j] -= factor * b[i];
    }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

struct Near {
  double distance = 0;
  const ProfileSample* sample = nullptr;
  std::vector<double> offset = {};  // features, seen from the wanted point
};

// ln(time / work) at the wanted point.
double plane_at_zero(const std::vector<Near>& near, const Operation& op) {
  const std::size_t n = near.front().offset.size() + 1;
  std::vector<std::vector<double>> a(n, std::vector<double>(n, 0));
  std::vector<double> b(n, 0);
  double total = 0, mean = 0;
  std::vector<double> weights, values;
  for (const Near& at : near) {
    weights.push_back(1 / (kReach * kReach + at.distance * at.distance));
    values.push_back(std::log(at.sample->time.value / work_of(op, at.sample->dims, at.sample->traffic)));
    total += weights.back();
    mean += weights.back() * values.back();
  }
  mean /= total;
  for (std::size_t s = 0; s < near.size(); ++s) {
    std::vector<double> row = {1};
    row.insert(row.end(), near[s].offset.begin(), near[s].offset.end());
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) a[i][j] += weights[s] / total * row[i] * row[j];
      b[i] += weights[s] / total * row[i] * (values[s] - mean);
    }
  }
  a[0][0] += 1e-9;
  for (std::size_t i = 1; i < n; ++i) a[i][i] += kRidge;
  // Limits the plane's extrapolation, which is meaningless far from all samples.
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return std::clamp(mean + solve(std::move(a), std::move(b))[0], *least, *most);
}

// The op's samples with `dims` sizes, of the same phase (a recomputation also takes a forward's). The number format counts more than the
// variant, the variant more than the exact phase. Computes on codes take samples of that code only.
const ProfileOp* find(const MachineProfile& profile, const Compute& compute, std::size_t dims, bool joined) {
  const std::string variant = variant_of(compute);
  const DType dtype = compute.shapes.empty() ? DType::F32 : compute.shapes.front().dtype;
  const ProfileOp* best = nullptr;
  int best_score = 0;
  for (const ProfileOp& op : profile.ops) {
    if (op.op != word(compute.op) || op.joined != joined || op.samples.empty() || op.samples.front().dims.size() != dims)
      continue;
    if (is_code(dtype) && op.dtype != dtype) continue;
    const bool alike = op.phase == compute.phase || (op.phase == Phase::Forward && compute.phase == Phase::Recompute);
    if (!alike) continue;
    const int score = 1 + (op.dtype == dtype ? 8 : 0) + (op.variant == variant ? 4 : 0) + (op.phase == compute.phase ? 2 : 0);
    if (score > best_score) best = &op, best_score = score;
  }
  return best;
}

}  // namespace

std::optional<Seconds> profiled_time(const MachineProfile& profile, const Compute& compute, bool joined) {
  const std::vector<std::int64_t> dims = dims_of(compute);
  const ProfileOp* op = find(profile, compute, dims.size(), joined);
  if (!op) return {};
  const std::vector<double> wanted = features(dims, compute.traffic);
  std::vector<Near> near;
  for (const ProfileSample& sample : op->samples) {
    Near at{.sample = &sample, .offset = features(sample.dims, sample.traffic)};
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      at.offset[i] -= wanted[i];
      at.distance += at.offset[i] * at.offset[i];
    }
    at.distance = std::sqrt(at.distance);
    if (at.distance < kSameSize) return sample.time;
    near.push_back(std::move(at));
  }
  const std::size_t count = std::min(near.size(), kNearest);
  std::partial_sort(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(count), near.end(),
                    [](const Near& a, const Near& b) { return a.distance < b.distance; });
  near.resize(count);
  return Seconds{std::exp(plane_at_zero(near, compute.op)) * work_of(compute.op, dims, compute.traffic)};
}

Seconds join_products(const MachineProfile& profile, const Segment& segment, std::vector<Cost>& costs) {
  Seconds spared = {};
  for (const JoinedProduct& pair : joined_products(segment)) {
    const auto together = profiled_time(profile, std::get<Compute>(segment.instructions[pair.product].what), true);
    if (!together) continue;
    Nanoseconds &product = costs[pair.product].busy, &activation = costs[pair.activation].busy;
    const Nanoseconds before = product + activation, all = to_nanoseconds(*together);
    product = std::min(product, all), activation = all - product;
    spared = spared + to_seconds(before - all);
  }
  return spared;
}

std::optional<Seconds> profiled_copy(const MachineProfile& profile, Bytes bytes) {
  const std::vector<ProfileTransfer>& all = profile.copies;
  if (all.empty()) return {};
  if (all.size() == 1 || bytes >= all.back().bytes)
    return all.back().time * (static_cast<double>(bytes.value) / static_cast<double>(all.back().bytes.value));
  std::size_t upper = 1;
  while (all[upper].bytes < bytes) ++upper;
  const ProfileTransfer &low = all[upper - 1], &high = all[upper];
  const double share = static_cast<double>((bytes - low.bytes).value) / static_cast<double>((high.bytes - low.bytes).value);
  return Seconds{std::max(low.time.value + share * (high.time - low.time).value, 0.0)};
}

}  // namespace foreshard
