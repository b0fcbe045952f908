#include "strategy/kernels/kernel_rates.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>

#include "core/base/data_path.h"
#include "core/base/error.h"
#include "core/json/json.h"
#include "strategy/kernels/machine_constants.h"
#include "strategy/kernels/shipped_tables.h"

namespace foreshard {

namespace {

// The format whose tables a format uses; empty: none has.
std::optional<DType> format_of(DType type) {
  switch (type) {
    case DType::F8:
    case DType::F4: return type;
    case DType::BF16:
    case DType::F16:
    case DType::TF32: return DType::BF16;  // the same kernels with other operands
    case DType::F32:
    case DType::F64:
    case DType::I64:
    case DType::I32:
    case DType::U8: return {};
  }
  return {};
}

ProductRates parse_products(const std::string& format, const JsonReader& json) {
  json.only({"kernel", "quantisation", "result_bytes", "m", "n", "k", "teraflops"});
  ProductRates rates{.format = format == "nvfp4" ? DType::F4 : format == "fp8" ? DType::F8 : DType::BF16};
  const auto axis = [&](const char* name) {
    std::vector<std::int64_t> sizes = json.at(name).as_ints(1);
    if (sizes.empty() || !std::ranges::is_sorted(sizes, std::less_equal<>{})) json.at(name).fail("rising sizes");
    return sizes;
  };
  rates.m = axis("m"), rates.n = axis("n"), rates.k = axis("k");
  const std::vector<JsonReader> lines = json.at("teraflops").elements();
  if (lines.size() != rates.m.size() * rates.n.size()) json.at("teraflops").fail("a line for each m and n");
  for (const JsonReader& line : lines) {
    if (!line.is_array() || line.size() != rates.k.size()) line.fail("a rate for each k");
    for (const JsonReader& rate : line.elements()) rates.teraflops.push_back(rate.as_double(0, 1e6));
  }
  if (const auto beside = json.find("quantisation")) {
    beside->only({"launches", "bytes"});
    rates.quantisation = beside->at("launches").as_seconds();
    rates.quantisation_bytes = beside->at("bytes").as_double(0, 100);
  }
  if (const auto bytes = json.find("result_bytes")) rates.result_bytes = bytes->as_double(0, 100);
  return rates;
}

std::vector<double> logarithms(const std::vector<std::int64_t>& sizes) {
  std::vector<double> all;
  for (const std::int64_t size : sizes) all.push_back(logarithm(size));
  return all;
}

// Where a value lies between the points of an axis; on the border beyond them.
struct Between {
  std::size_t low = 0, high = 0;
  double share = 0;  // of the higher one
};
Between between(const std::vector<double>& axis, double value) {
  if (value <= axis.front()) return {};
  if (value >= axis.back()) return {axis.size() - 1, axis.size() - 1, 0};
  const auto high = static_cast<std::size_t>(std::ranges::upper_bound(axis, value) - axis.begin());
  return {high - 1, high, (value - axis[high - 1]) / (axis[high] - axis[high - 1])};
}

// Points that were not measured get the mean of those with the same m, weighted by 1 / distance^4 in the logarithms of n and k.
void fill_holes(const std::vector<double>& n, const std::vector<double>& k, double* plane) {
  const std::vector<double> known(plane, plane + n.size() * k.size());
  for (std::size_t hole = 0; hole < known.size(); ++hole) {
    if (!std::isnan(known[hole])) continue;
    double sum = 0, weights = 0;
    for (std::size_t at = 0; at < known.size(); ++at) {
      if (std::isnan(known[at])) continue;
      const double dn = n[at / k.size()] - n[hole / k.size()], dk = k[at % k.size()] - k[hole % k.size()];
      const double squared = dn * dn + dk * dk, weight = 1 / (squared * squared);
      sum += weight * known[at], weights += weight;
    }
    plane[hole] = weights > 0 ? sum / weights : 0;
  }
}

}  // namespace

double logarithm(std::int64_t size) { return std::log2(static_cast<double>(std::max<std::int64_t>(size, 1))); }

double interpolated(const std::vector<double>& axis, const std::vector<double>& values, double at) {
  const Between place = between(axis, at);
  return values[place.low] + place.share * (values[place.high] - values[place.low]);
}

GpuRates parse_gpu_rates(const std::string& text, const std::string& file_name) {
  const JsonReader json = JsonReader::parse(text, file_name);
  json.only({"gpu", "source", "products"});
  GpuRates rates{.gpu = json.at("gpu").as_string(), .source = json.at("source").as_string()};
  for (const auto& [format, table] : json.at("products").members()) {
    if (format != "bf16" && format != "fp8" && format != "nvfp4") table.fail("bf16, fp8 or nvfp4");
    rates.products.push_back(parse_products(format, table));
  }
  return rates;
}

Seconds benchmark_overhead(const Gpu& gpu, const ProductRates& rates, const Gemm& gemm) {
  const double streamed = gpu.memory_bandwidth.value * machine_constants(gpu).memory_efficiency;
  const double bytes =
      rates.quantisation_bytes * static_cast<double>(gemm.k) + rates.result_bytes * static_cast<double>(gemm.n);
  return rates.quantisation + Seconds{bytes * static_cast<double>(gemm.m) / streamed};
}

Seconds measured_product(const Gpu& gpu, const ProductRates& rates, std::size_t m, std::size_t n, std::size_t k) {
  const double rate = rates.teraflops[(m * rates.n.size() + n) * rates.k.size() + k] * 1e12;
  if (rate <= 0) return {};
  const Gemm gemm = {1, rates.m[m], rates.n[n], rates.k[k]};
  const Seconds overhead = benchmark_overhead(gpu, rates, gemm);
  const double flops = 2.0 * static_cast<double>(gemm.m) * static_cast<double>(gemm.n) * static_cast<double>(gemm.k);
  const Seconds alone = Seconds{flops / rate} - gpu.launch_overhead - overhead;
  return alone > overhead ? alone : Seconds{};  // a difference of two numbers of one size is noise
}

KernelRates::KernelRates(const std::vector<std::string>& gpus, const std::function<GpuRates(const std::string& gpu)>& read) {
  static std::atomic<std::uint64_t> count{0};
  number_ = ++count;
  for (const std::string& gpu : gpus) {
    tables_.push_back(std::make_unique<Table>());
    tables_.back()->gpu = gpu, tables_.back()->read = [=] { return read(gpu); };
  }
}

static std::vector<std::string> gpus_of(const std::vector<GpuRates>& rates) {
  std::vector<std::string> gpus;
  for (const GpuRates& of : rates) gpus.push_back(of.gpu);
  return gpus;
}

KernelRates::KernelRates(const std::vector<GpuRates>& rates)
    : KernelRates(gpus_of(rates), [rates](const std::string& gpu) { return *std::ranges::find(rates, gpu, &GpuRates::gpu); }) {}

const std::vector<KernelRates::Surface>& KernelRates::surfaces_of(const Table& table) const {
  table.made.call([&] {
    const Gpu gpu = load_gpu(table.gpu);
    std::vector<Surface> made;
    for (const ProductRates& products : table.read().products) made.push_back(surface_of(gpu, products));
    table.surfaces = std::move(made);  // whole, or an exception leaves none
  });
  return table.surfaces;
}

KernelRates::Surface KernelRates::surface_of(const Gpu& gpu, const ProductRates& rates) {
  Surface surface{.gpu = gpu.name, .format = rates.format, .n = logarithms(rates.n), .k = logarithms(rates.k)};
  for (std::size_t m = 0; m < rates.m.size(); ++m) {
    std::vector<double> plane;
    for (std::size_t n = 0; n < rates.n.size(); ++n)
      for (std::size_t k = 0; k < rates.k.size(); ++k) {
        const Seconds measured = measured_product(gpu, rates, m, n, k);
        const Gemm gemm = {1, rates.m[m], rates.n[n], rates.k[k]};
        plane.push_back(measured.value > 0 ? std::log(measured.value / product_formula(gpu, gemm, rates.format).value)
                                           : std::numeric_limits<double>::quiet_NaN());
      }
    if (std::ranges::all_of(plane, [](double value) { return std::isnan(value); })) continue;  // nothing of this m
    fill_holes(surface.n, surface.k, plane.data());
    surface.m.push_back(logarithm(rates.m[m]));
    surface.excess.insert(surface.excess.end(), plane.begin(), plane.end());
  }
  return surface;
}

double KernelRates::Surface::at(const Gemm& gemm) const {
  const Between i = between(m, logarithm(gemm.m)), j = between(n, logarithm(gemm.n)), l = between(k, logarithm(gemm.k));
  const auto line = [&](std::size_t a, std::size_t b) {
    const double* row = excess.data() + (a * n.size() + b) * k.size();
    return row[l.low] + l.share * (row[l.high] - row[l.low]);
  };
  const auto plane = [&](std::size_t a) { return line(a, j.low) + j.share * (line(a, j.high) - line(a, j.low)); };
  const double low = plane(i.low);
  return i.share > 0 ? low + i.share * (plane(i.high) - low) : low;
}

std::vector<const KernelRates::Surface*> KernelRates::surfaces_with(DType format, const MachineConstants* kind) const {
  std::vector<const Surface*> all;
  for (const auto& table : tables_) {
    if (kind != nullptr && &machine_constants(load_gpu(table->gpu)) != kind) continue;  // a table is larger than a GPU's file
    for (const Surface& surface : surfaces_of(*table))
      if (surface.format == format) all.push_back(&surface);
  }
  return all;
}

std::vector<const KernelRates::Surface*> KernelRates::sources(const Gpu& gpu, DType type) const {
  const std::optional<DType> format = format_of(type);
  if (!format) return {};
  for (const auto& table : tables_) {
    if (table->gpu != gpu.name) continue;
    for (const Surface& surface : surfaces_of(*table))
      if (surface.format == *format) return {&surface};
  }
  std::vector<const Surface*> relatives = surfaces_with(*format, &machine_constants(gpu));
  if (relatives.empty()) return surfaces_with(*format);
  // Long products lower the clock of a GPU that is bound by power, which says nothing about one that is not.
  if (!bound_by_power(gpu)) std::erase_if(relatives, [](const Surface* of) { return bound_by_power(load_gpu(of->gpu)); });
  return relatives;
}

const std::vector<const KernelRates::Surface*>& KernelRates::known_sources(const Gpu& gpu, DType type) const {
  struct Last {
    std::uint64_t number = 0;
    std::string gpu = {}, architecture = {};
    DType type = DType::F64;
    std::vector<const Surface*> sources = {};
  };
  thread_local std::array<Last, 2> last;  // of codes, and others
  Last& of = last[is_code(type) ? 0 : 1];
  if (of.number != number_ || of.type != type || of.gpu != gpu.name || of.architecture != gpu.architecture)
    of = {number_, gpu.name, gpu.architecture, type, sources(gpu, type)};
  return of.sources;
}

double KernelRates::product_ratio(const Gpu& gpu, const Gemm& gemm, DType type) const {
  const std::vector<const Surface*>& from = known_sources(gpu, type);
  if (from.empty()) return 1;
  double sum = 0;
  for (const Surface* surface : from) sum += surface->at(gemm);
  return std::exp(sum / static_cast<double>(from.size()));
}

double KernelRates::spread_between(const std::vector<const Surface*>& surfaces) {
  if (surfaces.size() < 2) return 0;
  double squares = 0;
  int count = 0;
  for (const std::int64_t m : {2048, 8192})
    for (const std::int64_t n : {2048, 4096, 8192, 16384})
      for (const std::int64_t k : {2048, 4096, 8192, 16384}) {
        std::vector<double> values;
        for (const Surface* surface : surfaces) values.push_back(surface->at({1, m, n, k}));
        const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
        for (const double value : values) squares += (value - mean) * (value - mean) / static_cast<double>(values.size() - 1);
        ++count;
      }
  return std::sqrt(squares / count);
}

RateOrigin KernelRates::product_origin(const Gpu& gpu, DType type) const {
  const std::vector<const Surface*> from = sources(gpu, type);
  RateOrigin origin;
  for (const Surface* surface : from) origin.gpus.push_back(surface->gpu);
  origin.own = from.size() == 1 && from.front()->gpu == gpu.name;
  const std::optional<DType> format = format_of(type);
  if (origin.own || !format) return origin;
  origin.spread = spread_between(from.size() > 1 ? from : surfaces_with(*format));
  return origin;
}

static constexpr const char* kFolder = "accuracy/kernel_rates";

const std::vector<GpuRates>& shipped_kernel_rates() {
  static const std::vector<GpuRates> rates = shipped_tables(kFolder, parse_gpu_rates);
  return rates;
}

const KernelRates& kernel_rates() {
  static const KernelRates rates(shipped(kFolder),
                                 [](const std::string& gpu) { return shipped_table(kFolder, gpu, parse_gpu_rates); });
  return rates;
}

}  // namespace foreshard
