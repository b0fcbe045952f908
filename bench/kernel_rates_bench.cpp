// The cost model against tables of measured kernels: a table for docs/cost-model.md.
//
//   kernel_rates_bench FOLDER     with gemm.csv, attention.csv, moe.csv and comm.csv; the columns are those that this file names
//
// A kernel of a benchmark is shorter than the time in which the power limit acts, so products count without sustained_share.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/cluster_file/cluster_file.h"
#include "core/network/network.h"
#include "strategy/cost/collective_cost.h"
#include "strategy/cost/communication_path.h"
#include "strategy/kernels/kernel_rates.h"
#include "strategy/kernels/machine_constants.h"
#include "strategy/kernels/op_cost.h"

namespace foreshard {

namespace {

using Row = std::map<std::string, std::string>;

const std::map<std::string, std::string> kCatalogue = {
    {"A100-80GB SXM", "a100-80"}, {"H100-80GB SXM", "h100-80"}, {"H200 SXM", "h200"}, {"B200 SXM", "b200"},
    {"GB200", "gb200"},           {"GB300", "gb300"},           {"L40S", "l40s"},     {"RTX PRO 6000 Server", "rtx-pro-6000"}};
const std::map<std::string, std::string> kClusters = {
    {"a100-80", "dgx-a100"},  {"h100-80", "dgx-h100"},  {"h200", "hgx-h200"},    {"b200", "dgx-b200"},
    {"gb200", "gb200-nvl72"}, {"gb300", "gb200-nvl72"}, {"l40s", "pcie-a100-8"}, {"rtx-pro-6000", "pcie-a100-8"}};

std::vector<Row> rows_of(const std::string& path) {
  std::ifstream file(path);
  const auto cells_of = [](const std::string& line) {
    std::vector<std::string> cells;
    std::stringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);  // quoted notes come last
    return cells;
  };
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> names = cells_of(line);
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = cells_of(line);
    Row& row = rows.emplace_back();
    for (std::size_t i = 0; i < std::min(names.size(), cells.size()); ++i) row[names[i]] = cells[i];
  }
  return rows;
}

std::int64_t number(const Row& row, const char* name) { return std::stoll(row.at(name)); }
const Gpu& gpu_named(const std::string& name) {
  static std::map<std::string, Gpu> known;
  const auto [at, fresh] = known.try_emplace(name);
  if (fresh) at->second = load_gpu(name);
  return at->second;
}

// Errors of a kind of kernel, [GPU and what tells it apart].
using Errors = std::map<std::string, std::vector<double>>;

void print(const char* kind, Errors& errors) {
  for (auto& [name, all] : errors) {
    std::sort(all.begin(), all.end());
    const auto at = [&](std::size_t tenths) { return 100 * all[std::min(all.size() - 1, all.size() * tenths / 10)]; };
    std::printf("| %s | %s | %zu | %+.1f | %+.1f to %+.1f |\n", kind, name.c_str(), all.size(), at(5), at(1), at(9));
  }
}

// Overhead of the benchmark in the measured time of a product; 0 without a table.
Seconds overhead_of(const Gpu& gpu, const Gemm& gemm, DType type) {
  for (const GpuRates& of : shipped_kernel_rates())
    for (const ProductRates& table : of.products)
      if (of.gpu == gpu.name && table.format == type) return benchmark_overhead(gpu, table, gemm);
  return {};
}

void products(const std::string& folder) {
  Errors errors;
  for (const Row& row : rows_of(folder + "/gemm.csv")) {
    const Gpu& gpu = gpu_named(kCatalogue.at(row.at("gpu")));
    const DType type = row.at("dtype") == "nvfp4" ? DType::F4 : row.at("dtype") == "fp8" ? DType::F8 : DType::BF16;
    const Gemm gemm = {1, number(row, "m"), number(row, "n"), number(row, "k")};
    const double seconds =
        2.0 * static_cast<double>(gemm.m * gemm.n) * static_cast<double>(gemm.k) / std::stod(row.at("tflops")) * 1e-12;
    const double overhead = (gpu.launch_overhead + overhead_of(gpu, gemm, type)).value,
                 formula = product_formula(gpu, gemm, type).value;
    errors[row.at("gpu") + " | " + row.at("dtype") + ", formula"].push_back((formula + overhead) / seconds - 1);
    errors[row.at("gpu") + " | " + row.at("dtype") + ", with its table"].push_back(
        (formula * kernel_rates().product_ratio(gpu, gemm, type) + overhead) / seconds - 1);
  }
  print("product", errors);
}

void attention(const std::string& folder) {
  Errors errors;
  for (const Row& row : rows_of(folder + "/attention.csv")) {
    const Gpu& gpu = gpu_named(kCatalogue.at(row.at("gpu")));
    const std::int64_t batch = number(row, "batch"), seq = number(row, "seq"), heads = number(row, "heads"),
                       kv = number(row, "kv_heads"), dim = number(row, "head_dim");
    const Compute what = {.op = ops::Attention{.causal = true, .heads = heads},
                          .phase = Phase::Forward,
                          .shapes = {{.dims = {batch, seq, heads, dim}, .dtype = DType::BF16},
                                     {.dims = {batch, seq, kv, dim}, .dtype = DType::BF16}},
                          .flops = {4.0 * static_cast<double>(batch * seq * heads) * static_cast<double>(seq * dim)},
                          .traffic = {4 * batch * seq * dim * (heads + kv)}};
    errors[row.at("gpu") + " | " + row.at("seq") + " keys, head size " + row.at("head_dim")].push_back(
        op_time(gpu, what).value / (std::stod(row.at("time_ms")) * 1e-3) - 1);
  }
  print("attention", errors);
}

// Balanced loads of gated experts: two products of the rows of each expert.
void experts(const std::string& folder) {
  Errors errors;
  for (const Row& row : rows_of(folder + "/moe.csv")) {
    const bool gated = row.at("kernel").find("nongated") == std::string::npos;
    if (row.at("distribution") != "balanced" || row.at("dtype") == "fp8_block" || !gated) continue;
    const Gpu& gpu = gpu_named(kCatalogue.at(row.at("gpu")));
    const DType type = row.at("dtype") == "fp8" ? DType::F8 : DType::BF16;
    const std::int64_t experts = number(row, "experts") / number(row, "ep"), hidden = number(row, "hidden"),
                       ffn = number(row, "expert_ffn");
    const std::int64_t rows = std::max<std::int64_t>(1, number(row, "tokens") * number(row, "topk") / number(row, "experts"));
    double seconds = 0;
    for (const Gemm& gemm : {Gemm{experts, rows, 2 * ffn, hidden}, Gemm{experts, rows, hidden, ffn}})
      seconds +=
          product_formula(gpu, gemm, type).value * kernel_rates().product_ratio(gpu, gemm, type) + gpu.launch_overhead.value;
    errors[row.at("gpu") + " | " + row.at("dtype") +
           (rows < 256 ? ", below 256 rows of an expert" : ", from 256 rows of an expert")]
        .push_back(seconds / (std::stod(row.at("time_ms")) * 1e-3) - 1);
  }
  print("experts", errors);
}

void collectives(const std::string& folder) {
  static const std::map<std::string, CollectiveKind> kinds = {{"all_reduce", CollectiveKind::AllReduce},
                                                              {"all_gather", CollectiveKind::AllGather},
                                                              {"reduce_scatter", CollectiveKind::ReduceScatter},
                                                              {"all_to_all", CollectiveKind::AllToAll}};
  Errors errors;
  for (const Row& row : rows_of(folder + "/comm.csv")) {
    const std::string& name = kCatalogue.at(row.at("gpu"));
    Cluster cluster = load_cluster(kClusters.at(name));
    cluster.gpus.front() = gpu_named(name);
    for (NodeGroup& group : cluster.nodes) group.shape.gpu = name;
    const Network network(cluster);
    const CollectiveKind kind = kinds.at(row.at("collective"));
    std::vector<DeviceId> members;
    for (int i = 0; i < number(row, "gpus_per_node"); ++i) members.push_back({i});
    double least = INFINITY;  // the library takes the fastest algorithm
    for (const Algorithm algorithm : {Algorithm::Ring, Algorithm::NvlinkSharp}) {
      if (algorithm == Algorithm::NvlinkSharp &&
          (kind == CollectiveKind::AllToAll || !cluster.nodes.front().shape.nvlink_sharp))
        continue;
      const Collective what = {.kind = kind, .algorithm = algorithm, .bytes = {number(row, "size_bytes")}};
      const CommunicationPath path = communication_path(network, what, members);
      const Cost cost = collective_cost(gpu_named(name), what, path);
      least = std::min(least, to_seconds(cost.busy).value + path.bytes * cost.wire_factor / path.bandwidth.value);
    }
    const std::int64_t bytes = number(row, "size_bytes");
    errors[row.at("gpu") + " | " + row.at("collective") +
           (bytes < (1 << 20)    ? ", below 1 MiB"
            : bytes < (64 << 20) ? ", 1 to 64 MiB"
                                 : ", from 64 MiB")]
        .push_back(least / (std::stod(row.at("time_us")) * 1e-6) - 1);
  }
  print("collective", errors);
}

}  // namespace

}  // namespace foreshard

int main(int count, char** words) {
  if (count != 2) {
    std::fputs("kernel_rates_bench FOLDER\n", stderr);
    return EXIT_FAILURE;
  }
  std::puts("| kernel | GPU | rows | predicted / measured - 1, median % | 10th to 90th |");
  std::puts("|---|---|---|---:|---:|---:|");
  foreshard::products(words[1]);
  foreshard::attention(words[1]);
  foreshard::experts(words[1]);
  foreshard::collectives(words[1]);
  return EXIT_SUCCESS;
}
