// foreshard show cluster: the parts of a cluster file or a shipped cluster.
#include <ostream>

#include "cli/program/table.h"
#include "cli/program/verb.h"
#include "core/base/count_text.h"
#include "core/cluster/cluster.h"
#include "core/cluster_file/cluster_file.h"

namespace foreshard {

static std::string gib(Bytes bytes) { return plain(in_gib(bytes)) + " GiB"; }
static std::string gigabytes(BytesPerSecond rate) { return plain(rate.value / 1e9) + " GB/s"; }

static std::string nics_text(const NodeShape& shape) {
  if (shape.nics == 0) return "no NIC";
  return counted(shape.nics, "NIC") + " of " + gigabytes(shape.nic_bandwidth);
}

static ExitCode show_cluster(const Arguments& arguments, const Console& console) {
  const Cluster cluster = load_cluster(arguments.text("NAME"));
  if (arguments.flag("--json")) {
    console.out << to_json(cluster);
    return ExitCode::Ok;
  }
  Table table{{"what", "value"}, {{"name", cluster.name}, {"source", cluster.source}}};
  const auto add = [&](const std::string& what, const std::string& value) { table.rows.push_back({what, value}); };
  add("GPUs", std::to_string(gpu_count(cluster)));
  for (const NodeGroup& group : cluster.nodes) {
    const NodeShape& shape = group.shape;
    add("nodes", std::to_string(group.count) + " x " + shape.name + ": " + std::to_string(shape.gpus) + " " + shape.gpu + ", " +
                     nics_text(shape) + ", host memory " + (shape.host_memory.value > 0 ? gib(shape.host_memory) : "not said"));
  }
  for (const Gpu& gpu : cluster.gpus)
    add("GPU", gpu.name + ": " + gib(gpu.memory) + " at " + gigabytes(gpu.memory_bandwidth) + ", bf16 " +
                   plain(peak(gpu, DType::BF16).value / 1e12) + " TFLOP/s, " + counted(gpu.sm_count, "SM"));
  const Fabric& fabric = cluster.fabric;
  if (node_count(cluster) > 1)
    add("fabric", std::to_string(fabric.levels) + " levels, " + counted(fabric.nodes_per_leaf, "node") +
                      " per leaf, oversubscription " + plain(fabric.oversubscription) +
                      (fabric.rail_optimised ? ", rail-optimised" : ""));
  if (cluster.price_per_gpu_hour > 0)
    add("price", plain(cluster.price_per_gpu_hour) + " per GPU and hour, in the currency of the file");
  if (cluster.power_per_gpu_watts > 0) add("power", plain(cluster.power_per_gpu_watts) + " W per GPU");
  console.out << table_text(table);
  return ExitCode::Ok;
}

Verb show_cluster_verb() {
  return {.name = "show cluster",
          .summary = "Prints the GPUs, nodes and network of a cluster.",
          .examples = {"foreshard show cluster dgx-h100-x16"},
          .options = {{.name = "NAME", .value = "NAME", .help = "a shipped cluster or a cluster file", .required = true},
                      {.name = "--json", .help = "print JSON"}},
          .run = show_cluster};
}

}  // namespace foreshard
