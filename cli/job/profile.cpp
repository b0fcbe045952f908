#include "cli/job/profile.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>
#include <sstream>
#include <thread>

#include "cli/program/table.h"
#include "core/base/count_text.h"
#include "core/base/error.h"
#include "core/json/json.h"
#include "core/plan/plan_words.h"
#include "exec/calibrate/calibrate.h"
#include "strategy/cost/learned_factors.h"

namespace foreshard {

VerbOption profile_option() {
  return {.name = "--profile",
          .value = "FILE",
          .help = "times and bandwidths that `foreshard calibrate` measured, for the device it names"};
}

std::optional<MachineProfile> read_profile(const Cluster& cluster, const Arguments& arguments) {
  if (!arguments.has("--profile")) return {};
  const std::string file = arguments.text("--profile");
  MachineProfile profile = load_machine_profile(file);
  std::vector<std::string> names;
  for (const Gpu& gpu : cluster.gpus) names.push_back(gpu.name);
  if (std::find(names.begin(), names.end(), profile.device) == names.end())
    throw Error(file, "device", "\"" + profile.device + "\"", "a device of the cluster " + cluster.name + ": " + joined(names));
  return profile;
}

std::string machine_words(const Cluster& cluster) {
  const NodeShape& node = cluster.nodes.front().shape;
  double fastest = 0;
  for (const NodeLink& link : node.links) fastest = std::max(fastest, link.bandwidth.value);
  return node.gpu + ", " + std::to_string(node.gpus) + " per node, links of " + plain(std::round(fastest * 1e-8) / 10) +
         " GB/s, network of " + plain(std::round(node.nic_bandwidth.value * node.nics / std::max(1, node.gpus) * 8e-9)) +
         " Gb/s per GPU";
}

void check_framework(const MachineProfile& profile, const std::string& framework, const std::string& file) {
  if (!profile.learned || LearnedFactors(*profile.learned).knows(framework)) return;
  std::set<std::string> known;
  for (const LearnedShape& shape : profile.learned->shapes)
    if (!shape.shape.words.empty()) known.insert(shape.shape.words.front());
  throw Error(file, "learned", "runs of " + joined({known.begin(), known.end()}),
              "runs of the strategy's framework, " + framework + ": its kernels are others; see --framework");
}

std::string profile_note(const MachineProfile& profile, const Cluster& cluster) {
  if (!profile.learned || profile.learned->cluster.empty()) return "";
  const std::string here = machine_words(cluster);
  if (here == profile.learned->cluster) return "";
  return "the profile learned from runs on " + profile.learned->cluster + "; this is " + here +
         ": what it says about communication may not hold";
}

namespace {

bool is_forward_product(const ProfileOp& op) {
  return (op.op == ops::MatMul::kWord || op.op == ops::Scores::kWord || op.op == ops::WeightedValues::kWord) &&
         op.phase == Phase::Forward && !op.joined;
}

double best_rate(const ProfileOp& product) {  // FLOP/s of its fastest size
  double best = 0;
  for (const ProfileSample& sample : product.samples) {
    double flops = 2;
    for (const std::int64_t dim : sample.dims) flops *= static_cast<double>(dim);
    best = std::max(best, flops / sample.time.value);
  }
  return best;
}

// The rate of the fastest forward product of this format; `otherwise` where nothing was measured.
double best_rate(const MachineProfile& profile, DType dtype, double otherwise) {
  double best = 0;
  for (const ProfileOp& op : profile.ops)
    if (is_forward_product(op) && op.dtype == dtype) best = std::max(best, best_rate(op));
  return best > 0 ? best : otherwise;
}

// scores, "1 causal" -> "attention scores, causal": what the kinds of one format differ in (variant_of).
std::string product_words(const ProfileOp& product) {
  std::istringstream variant(product.variant);
  std::vector<std::string> words = {product.op == ops::MatMul::kWord   ? "linear layer"
                                    : product.op == ops::Scores::kWord ? "attention scores"
                                                                       : "attention values"};
  variant >> std::ws;
  while (std::isdigit(variant.peek()) != 0) variant.get();  // the number of shapes
  for (std::string word; variant >> word;) {
    std::replace(word.begin(), word.end(), '_', ' ');
    words.push_back(word);
  }
  return joined(words);
}

double copy_rate(const MachineProfile& profile) {
  if (profile.copies.empty()) return 10e9;
  return static_cast<double>(profile.copies.back().bytes.value) / profile.copies.back().time.value;
}

// Names the rates that host_cluster_text assumes because they were not measured.
std::string assumed_formats(const MachineProfile& profile) {
  std::vector<std::string> assumed;
  const auto add = [&](DType dtype, const char* word) {
    if (best_rate(profile, dtype, 0) == 0) assumed.push_back(word);
  };
  add(DType::F64, "fp64 (half of fp32)"), add(DType::F32, "fp32 (50 GFLOP/s)");
  add(DType::F16, "fp16 (as fp32)"), add(DType::BF16, "bf16 (as fp32)");
  return assumed.empty() ? "" : "; assumed, not measured: " + joined(assumed);
}

}  // namespace

std::string host_cluster_text(const MachineProfile& profile, int ranks) {
  const double fp32 = best_rate(profile, DType::F32, 50e9), copy = copy_rate(profile);
  const double link = profile.link_bandwidth.value > 0 ? profile.link_bandwidth.value : 10e9;
  JsonWriter json;
  json.begin_object().field("name", "this-host");
  json.field("source", "foreshard calibrate: " + (profile.machine.empty() ? machine_words() : profile.machine));
  json.field("gpu", "host").field("gpus_per_node", ranks);
  json.key("nvlink").begin_object().field("kind", "switch").field("bandwidth", link);
  json.field("latency", profile.link_latency.value > 0 ? profile.link_latency.value : 5e-6).end_object();
  json.key("pcie").begin_object().field("bandwidth", copy).end_object();
  json.field("sockets", 1).field("cores", static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
  json.field("host_memory", physical_memory().value).field("host_memory_bandwidth", 2 * copy);
  json.key("fabric").begin_object().field("levels", 1).end_object();
  json.key("gpus").begin_array().begin_object().field("name", "host").field("architecture", "host");
  json.field("source", "a core of this host, as measured" + assumed_formats(profile));
  json.field("fp64", best_rate(profile, DType::F64, fp32 / 2)).field("fp32", fp32).field("vector_fp32", fp32);
  json.field("fp16", best_rate(profile, DType::F16, fp32)).field("bf16", best_rate(profile, DType::BF16, fp32));
  json.field("memory", physical_memory().value / ranks).field("memory_bandwidth", 2 * copy).field("sm_count", 1);
  json.field("launch_overhead", profile.launch_overhead.value).end_object().end_array();
  return json.end_object().text();
}

std::string profile_text(const MachineProfile& profile) {
  const auto micro = [](Seconds time) { return plain(time.value * 1e6); };
  std::string text = profile.machine + "\n\n";
  text += "instruction        " + micro(profile.launch_overhead) + " us to start\n";
  text += "link               " + micro(profile.link_latency) + " us + bytes / " + plain(profile.link_bandwidth.value * 1e-9) +
          " GB/s\n";
  if (profile.collective_share > 0)
    text += "collectives        take " + plain(std::round(profile.collective_share * 1e3) / 10) + " % of the compute units\n";
  if (profile.outside_memory.value > 0)
    text += "outside the arena  " + plain(std::round(static_cast<double>(profile.outside_memory.value) / 1048576)) + " MiB\n";
  std::size_t samples = 0;
  for (const ProfileOp& op : profile.ops) samples += op.samples.size();
  text += "measured           " + counted(profile.ops.size(), "kind of instructions", "kinds of instructions") + ", " +
          counted(samples, "size") + "\n\n";
  Table products{{"format", "product", "best GFLOP/s", "sizes"}, {}};
  for (const ProfileOp& op : profile.ops)
    if (is_forward_product(op))
      products.rows.push_back(
          {word(op.dtype), product_words(op), plain(std::round(best_rate(op) * 1e-8) / 10), std::to_string(op.samples.size())});
  Table transfers{{"bytes", "copy GB/s", "all-reduce of 2, GB/s"}, {}};
  for (const ProfileTransfer& copy : profile.copies) {
    const auto rate = [](const ProfileTransfer& at) {
      return plain(std::round(static_cast<double>(at.bytes.value) / at.time.value * 1e-8) / 10);
    };
    std::string reduce = "-";
    for (const ProfileTransfer& at : profile.all_reduces)
      if (at.bytes == copy.bytes && at.ranks == 2) reduce = rate(at);
    transfers.rows.push_back({std::to_string(copy.bytes.value), rate(copy), reduce});
  }
  return text + table_text(products) + "\n" + table_text(transfers);
}

}  // namespace foreshard
