// Measured times of kernels, a file per GPU in accuracy/kernel_rates. They are kept as ratios to what the formulas of the cost model say of
// the same sizes, so that the formulas, scaled by them, hold where there is no measurement. docs/cost-model.md, "Measured rates".
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/once.h"
#include "core/base/units.h"
#include "core/cluster/cluster.h"
#include "strategy/kernels/product_formula.h"

namespace foreshard {

struct MachineConstants;  // strategy/kernels/machine_constants.h

// Rates of the products y = x w of one number format: y [m, n], x [m, k].
struct ProductRates {
  DType format = DType::BF16;                        // BF16 stands for both formats of 16 bits
  std::vector<std::int64_t> m = {}, n = {}, k = {};  // rising
  std::vector<double> teraflops = {};                // [m][n][k]; 0: not measured
  Seconds quantisation = {};                         // of the input, contained in the measured times: launches
  double quantisation_bytes = 0;                     // and streamed bytes per element of x
  double result_bytes = 0;                           // streamed bytes per element of y: further passes over it in these times
  bool operator==(const ProductRates&) const = default;
};

struct GpuRates {
  std::string gpu = {};  // catalogue name
  std::string source = {};
  std::vector<ProductRates> products = {};
  bool operator==(const GpuRates&) const = default;
};
// Throws Error.
GpuRates parse_gpu_rates(const std::string& text, const std::string& file_name);

// Overhead of the benchmark: what the measured time contains besides the product and its launch, quantising x and passes over y.
Seconds benchmark_overhead(const Gpu& gpu, const ProductRates& rates, const Gemm& gemm);
// Time of the product alone at a point of the grid, as measured; 0: not measured, or less than the overhead.
Seconds measured_product(const Gpu& gpu, const ProductRates& rates, std::size_t m, std::size_t n, std::size_t k);

// Where the ratios of a GPU come from.
struct RateOrigin {
  std::vector<std::string> gpus = {};  // its own name; or those whose ratios are averaged; none: the formulas alone
  bool own = false;
  // Standard deviation of ln(ratio) between these GPUs, or between all if there is at most one, over sizes of 2048 to 16384; 0: own, or no
  // table of the format.
  double spread = 0;
};

double logarithm(std::int64_t size);  // to base 2, of at least 1
// Linear between the points of a rising axis, constant beyond them.
double interpolated(const std::vector<double>& axis, const std::vector<double>& values, double at);

class KernelRates {
 public:
  // Ratios of the catalogue's GPUs.
  explicit KernelRates(const std::vector<GpuRates>& rates);
  // Tables of these GPUs, each read when a product first asks for it, since reading all eight takes as long as lowering a plan.
  KernelRates(const std::vector<std::string>& gpus, const std::function<GpuRates(const std::string& gpu)>& read);
  KernelRates(const KernelRates&) = delete;  // pointers to its surfaces are cached
  KernelRates& operator=(const KernelRates&) = delete;

  // Measured time over the formula's, of the arithmetic and traffic of a product:
  //   a GPU with a table      its own, exact at measured points; between them the logarithm is linear in those of m, n and k, and outside
  //                           the value at the border holds
  //   without                 the mean of the logarithms of the GPUs with the same constants (MachineConstants), or else of all
  //   not bound by power      1 where all of these are (bound_by_power): their long products show what the limit does to the clock
  //   no table of the format  1
  double product_ratio(const Gpu& gpu, const Gemm& gemm, DType type) const;
  RateOrigin product_origin(const Gpu& gpu, DType type) const;

 private:
  struct Surface {
    std::string gpu = {};
    const void* family = nullptr;  // the constants of its kind of GPU
    DType format = DType::BF16;
    std::vector<double> m = {}, n = {}, k = {};  // log2
    std::vector<double> excess = {};             // ln(measured / formula), [m][n][k]
    double at(const Gemm& gemm) const;
  };
  struct Table {
    std::string gpu = {};
    std::function<GpuRates()> read = {};
    mutable Once made = {};
    mutable std::vector<Surface> surfaces = {};
  };
  static Surface surface_of(const Gpu& gpu, const ProductRates& rates);
  const std::vector<Surface>& surfaces_of(const Table& table) const;
  // Of all tables or, where `kind` is not null, of those of the GPUs with these constants.
  std::vector<const Surface*> surfaces_with(DType format, const MachineConstants* kind = nullptr) const;
  std::vector<const Surface*> sources(const Gpu& gpu, DType type) const;
  static double spread_between(const std::vector<const Surface*>& surfaces);
  const std::vector<const Surface*>& known_sources(const Gpu& gpu, DType type) const;  // of this thread's last call
  std::vector<std::unique_ptr<Table>> tables_ = {};
  std::uint64_t number_ = 0;  // no two objects of a process have the same
};

// The shipped tables.
const KernelRates& kernel_rates();
const std::vector<GpuRates>& shipped_kernel_rates();

}  // namespace foreshard
