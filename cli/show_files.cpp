// foreshard show model|cluster|plan: what a file or a shipped name says.
#include <ostream>

#include "cli/table.h"
#include "cli/verb.h"
#include "core/cluster.h"
#include "core/json.h"
#include "core/model.h"
#include "core/plan.h"

namespace foreshard {

static ExitCode show_model(const Arguments& arguments, const Console& console) {
  const Model model = load_model(arguments.text("NAME"));
  if (arguments.flag("--json")) {
    console.out << to_json(model);
    return ExitCode::Ok;
  }
  Table table{{"what", "value"}, {{"name", model.name}, {"source", model.source}}};
  const auto add = [&](const std::string& what, std::int64_t value) {
    table.rows.push_back({what, std::to_string(value)});
  };
  if (const auto* t = std::get_if<Transformer>(&model.shape)) {
    table.rows.push_back({"family", t->causal ? "decoder" : "encoder"});
    add("layers", t->layers), add("hidden", t->hidden), add("ffn hidden", t->ffn_hidden);
    add("heads", t->heads), add("key/value heads", t->kv_heads), add("vocabulary", t->vocab);
    add("positions", t->max_positions);
  } else {
    table.rows.push_back({"family", "layer list"});
    add("layers", static_cast<std::int64_t>(std::get<LayerList>(model.shape).layers.size()));
  }
  add("parameters", parameter_count(model));
  console.out << table_text(table);
  return ExitCode::Ok;
}

static std::string gib(Bytes bytes) { return plain(in_gib(bytes)) + " GiB"; }
static std::string gigabytes(BytesPerSecond rate) { return plain(rate.value / 1e9) + " GB/s"; }

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
    add("nodes", std::to_string(group.count) + " x " + shape.name + ": " + std::to_string(shape.gpus) + " " +
                     shape.gpu + ", " + std::to_string(shape.nics) + " NICs of " + gigabytes(shape.nic_bandwidth) +
                     ", host memory " + gib(shape.host_memory));
  }
  for (const Gpu& gpu : cluster.gpus)
    add("GPU", gpu.name + ": " + gib(gpu.memory) + " at " + gigabytes(gpu.memory_bandwidth) + ", bf16 " +
                   plain(peak(gpu, DType::BF16).value / 1e12) + " TFLOP/s, " + std::to_string(gpu.sm_count) + " SMs");
  const Fabric& fabric = cluster.fabric;
  if (node_count(cluster) > 1)
    add("fabric", std::to_string(fabric.levels) + " levels, " + std::to_string(fabric.nodes_per_leaf) +
                      " nodes per leaf, oversubscription " + plain(fabric.oversubscription) +
                      (fabric.rail_optimised ? ", rail-optimised" : ""));
  if (cluster.price_per_gpu_hour > 0) add("price", plain(cluster.price_per_gpu_hour) + " per GPU and hour");
  if (cluster.power_per_gpu_watts > 0) add("power", plain(cluster.power_per_gpu_watts) + " W per GPU");
  console.out << table_text(table);
  return ExitCode::Ok;
}

static ExitCode show_plan(const Arguments& arguments, const Console& console) {
  const Plan plan = load_plan(arguments.text("PLAN"));
  if (arguments.flag("--json")) {
    console.out << to_json(plan);
    return ExitCode::Ok;
  }
  console.out << "plan " << program_hash(plan) << ": " << plan.stages << " stages, " << plan.microbatches
              << " micro-batches, " << plan.samples << " samples\n";
  Table axes{{"axis", "size"}, {}};
  for (const Axis& axis : plan.axes) axes.rows.push_back({axis.name, std::to_string(axis.size)});
  Table roles{{"role", "device", "actions", "buffers", "resident GiB"}, {}};
  for (const Role& role : plan.roles) {
    Bytes resident;
    for (const Buffer& buffer : role.buffers)
      if (buffer.resident && buffer.space == Space::Device)
        resident += buffer.bytes * static_cast<std::int64_t>(buffer.offsets.size());
    roles.rows.push_back({role.name, role.device_kind, std::to_string(role.actions.size()),
                          std::to_string(role.buffers.size()), plain(in_gib(resident))});
  }
  console.out << "\n" << table_text(axes) << "\n" << table_text(roles);
  return ExitCode::Ok;
}

static VerbOption json_option() { return {.name = "--json", .help = "print JSON"}; }

Verb show_model_verb() {
  return {.name = "show model",
          .summary = "Prints the shape of a model and its exact parameter count.",
          .examples = {"foreshard show model llama-3-70b"},
          .options = {{.name = "NAME", .value = "NAME", .help = "a shipped model or a config.json", .required = true},
                      json_option()},
          .run = show_model};
}

Verb show_cluster_verb() {
  return {
      .name = "show cluster",
      .summary = "Prints the GPUs, nodes and network of a cluster.",
      .examples = {"foreshard show cluster dgx-h100-x16"},
      .options = {{.name = "NAME", .value = "NAME", .help = "a shipped cluster or a cluster file", .required = true},
                  json_option()},
      .run = show_cluster};
}

Verb show_plan_verb() {
  return {.name = "show plan",
          .summary = "Prints the axes and roles of a saved plan.",
          .examples = {"foreshard show plan gpt2.plan.json"},
          .options = {{.name = "PLAN", .value = "PLAN", .help = "a .plan.json file", .required = true}, json_option()},
          .run = show_plan};
}

}  // namespace foreshard
