// Cluster files; the format is docs/clusters.md.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "core/base/data_path.h"
#include "core/base/error.h"
#include "core/cluster/cluster_json.h"

namespace foreshard {

namespace {
constexpr int kMostNodes = kMostClusterGpus;       // of one GPU each
constexpr Seconds kDefaultSwitchLatency{0.13e-6};  // NVIDIA QM8700 datasheet: 130 ns port to port

const std::vector<std::string> kClusterKeys = {
    "name", "source", "nodes", "fabric", "gpus", "price_per_gpu_hour", "capex", "power_per_node", "power_per_gpu"};
const std::vector<std::string> kPartsKeys = {
    "gpu", "parts", "links", "nics", "nvlink_sharp", "cores", "host_memory", "host_memory_bandwidth", "nvme_capacity"};

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// ---- nodes whose parts and links are listed
// ---------------------------------------------------------------------------------

void read_parts(const JsonReader& json, NodeShape& shape, std::map<std::string, int>& numbers) {
  if (!json.is_array() || json.size() == 0 || json.size() > 8192) json.fail("a list of 1 to 8192 parts [kind, name]");
  for (const JsonReader& entry : json.elements()) {
    if (!entry.is_array() || entry.size() < 2 || entry.size() > 3) entry.fail("[kind, name] or [\"nic\", name, rail]");
    Part part{.kind = *part_kind(entry.at(0).as_choice(part_words())), .name = entry.at(1).as_string()};
    if (entry.size() == 3) part.rail = small_int(entry.at(2), -1, 1023);
    if (part.kind == PartKind::Gpu && static_cast<int>(shape.parts.size()) != shape.gpus)
      entry.fail("the GPUs before all other parts");
    if (!numbers.emplace(part.name, static_cast<int>(shape.parts.size())).second) entry.at(1).fail("a name of its own");
    shape.gpus += part.kind == PartKind::Gpu;
    shape.nics += part.kind == PartKind::Nic;
    shape.parts.push_back(part);
  }
  if (shape.gpus < 1 || shape.gpus > kMostGpus) json.fail("1 to " + std::to_string(kMostGpus) + " GPUs among the parts");
}

void read_links(const JsonReader& json, NodeShape& shape, const std::map<std::string, int>& numbers) {
  if (!json.is_array() || json.size() > 65536) json.fail("a list of at most 65536 links");
  std::vector<std::string> names;
  for (const auto& [name, number] : numbers) names.push_back(name);
  for (const JsonReader& entry : json.elements()) {
    if (!entry.is_array() || entry.size() != 5) entry.fail("[part, part, kind, bandwidth, latency]");
    const int from = numbers.at(entry.at(0).as_choice(names)), to = numbers.at(entry.at(1).as_choice(names));
    if (from == to) entry.fail("a link between two different parts");
    shape.links.push_back(
        {from, to, *link_kind(entry.at(2).as_choice(link_words())), link_bandwidth(entry.at(3)), short_time(entry.at(4))});
  }
}

NodeShape read_listed(const JsonReader& json, const std::string& name, const std::vector<Gpu>& own) {
  NodeShape shape{.name = name, .gpu = gpu_name(json.at("gpu"), own)};
  std::map<std::string, int> numbers;
  read_parts(json.at("parts"), shape, numbers);
  read_links(json.at("links"), shape, numbers);
  if (const auto nics = json.find("nics")) {
    nics->only({"bandwidth", "latency"});
    shape.nic_bandwidth = link_bandwidth(nics->at("bandwidth"));
    shape.nic_latency = short_time(nics->at("latency"));
  } else if (shape.nics > 0) {
    (void)json.at("nics");  // throws: it is missing
  }
  if (const auto sharp = json.find("nvlink_sharp")) shape.nvlink_sharp = sharp->as_bool();
  if (const auto count = json.find("cores")) shape.cpu_cores = small_int(*count, 0, 100000);
  const Bytes most{std::int64_t{1} << 50};
  if (const auto size = json.find("host_memory")) shape.host_memory = bytes_between(*size, {0}, most, "at most 1 PiB");
  if (const auto size = json.find("nvme_capacity")) shape.nvme = bytes_between(*size, {0}, most, "at most 1 PiB");
  if (const auto bus = json.find("host_memory_bandwidth")) shape.host_memory_bandwidth = link_bandwidth(*bus);
  return shape;
}

// ---- the whole
// --------------------------------------------------------------------------------------------------------------

Cluster read_cluster(const JsonReader& json, const std::string& stem, bool shapes_allowed);

std::vector<std::string> node_keys(const JsonReader& json) {
  if (json.has("shape")) return {"shape"};
  return json.has("parts") ? kPartsKeys : quote_keys();
}

NodeShape read_node(const JsonReader& json, const std::string& name, Cluster& cluster, bool shapes_allowed) {
  if (json.has("parts")) return read_listed(json, name, cluster.gpus);
  if (!json.has("shape")) return read_quote(json, name, cluster.gpus);
  const JsonReader shape = json.at("shape");
  if (!shapes_allowed) shape.fail("no shape of another cluster inside a shipped cluster");
  const std::string from = shape.as_choice(shipped("topologies"));
  const Cluster other = read_cluster(JsonReader::load(data_directory() + "/topologies/" + from + ".json"), from, false);
  if (other.nodes.size() != 1) shape.fail("a cluster of equal nodes");
  for (const Gpu& gpu : other.gpus) cluster.gpus.push_back(gpu);
  return other.nodes.front().shape;
}

Fabric read_fabric(const JsonReader& json) {
  json.only({"levels", "nodes_per_leaf", "leaves_per_pod", "oversubscription", "switch_latency", "rail_optimised"});
  Fabric fabric{.switch_latency = kDefaultSwitchLatency};
  if (const auto v = json.find("levels")) fabric.levels = small_int(*v, 1, 3);
  if (const auto v = json.find("nodes_per_leaf")) fabric.nodes_per_leaf = small_int(*v, 1, 65536);
  if (const auto v = json.find("leaves_per_pod")) fabric.leaves_per_pod = small_int(*v, 1, 65536);
  if (const auto v = json.find("oversubscription")) fabric.oversubscription = v->as_double(1, 1000);
  if (const auto v = json.find("switch_latency")) fabric.switch_latency = short_time(*v);
  if (const auto v = json.find("rail_optimised")) fabric.rail_optimised = v->as_bool();
  return fabric;
}

double watts(const JsonReader& json, double least) {
  double value = 0;
  if (json.is_number()) {
    value = json.as_double();
  } else {
    const std::string text = json.is_string() ? json.as_string() : "";
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    std::string unit(end, text.data() + text.size());
    unit.erase(0, unit.find_first_not_of(' '));
    if (problem != std::errc() || (unit != "W" && unit != "kW")) json.fail("a power, like \"10.2 kW\"");
    if (unit == "kW") value *= 1000;
  }
  if (!(value >= least && value <= 1e7)) json.fail("a power of at least 1 W and at most 10 MW");
  return value;
}

// Prices: a price per GPU hour is given, or it follows from the price of a node, its years of use and its electricity.
void read_money(const JsonReader& json, Cluster& cluster) {
  const double per_node = static_cast<double>(gpu_count(cluster)) / node_count(cluster);
  // Null counts as missing, so that --set cluster.power_per_node=null removes a value.
  const auto given = [&](const char* key) {
    auto value = json.find(key);
    return value && value->is_null() ? std::nullopt : value;
  };
  const auto node_power = given("power_per_node"), gpu_power = given("power_per_gpu");
  if (node_power && gpu_power)
    gpu_power->fail("either power_per_node or power_per_gpu; --set cluster.power_per_node=null takes that away");
  if (node_power) cluster.power_per_gpu_watts = watts(*node_power, 1) / per_node;
  if (gpu_power) cluster.power_per_gpu_watts = watts(*gpu_power, 1e-3);
  const auto price = given("price_per_gpu_hour"), capex = given("capex");
  if (price && capex) capex->fail("either price_per_gpu_hour or capex; --set cluster.price_per_gpu_hour=null takes that away");
  const auto more_than_nothing = [](const JsonReader& money, double most) {
    const double amount = money.as_double(0, most);
    if (amount == 0) money.fail("more than 0; without the key the price is unknown");
    return amount;
  };
  if (price) cluster.price_per_gpu_hour = more_than_nothing(*price, 1e10);
  if (!capex) return;
  capex->only({"per_node", "years", "electricity_per_kwh"});
  const double hours = capex->at("years").as_double(0.1, 100) * 365 * 24;
  cluster.price_per_gpu_hour = more_than_nothing(capex->at("per_node"), 1e12) / per_node / hours;
  if (const auto electricity = capex->find("electricity_per_kwh")) {
    const double cost = electricity->as_double(0, 1e4);
    if (!node_power && !gpu_power) electricity->fail("power_per_node or power_per_gpu beside it");
    cluster.price_per_gpu_hour += cost * cluster.power_per_gpu_watts / 1000;
  }
}

// One catalogue entry per GPU that is used, in order of use. An entry of "gpus" in the file replaces that of the catalogue.
void complete_gpus(Cluster& cluster) {
  std::vector<Gpu> used;
  for (const NodeGroup& group : cluster.nodes) {
    const auto same = [&](const Gpu& gpu) { return gpu.name == group.shape.gpu; };
    if (std::any_of(used.begin(), used.end(), same)) continue;
    const auto own = std::find_if(cluster.gpus.begin(), cluster.gpus.end(), same);
    used.push_back(own != cluster.gpus.end() ? *own : load_gpu(group.shape.gpu));
  }
  cluster.gpus = std::move(used);
}

void read_nodes(const JsonReader& json, Cluster& cluster, bool shapes_allowed) {
  const auto nodes = json.find("nodes");
  if (nodes && nodes->is_array()) {
    json.only(kClusterKeys);
    if (nodes->size() == 0 || nodes->size() > 1000) nodes->fail("1 to 1000 groups of nodes");
    for (const JsonReader& group : nodes->elements()) {
      group.only(joined({"name", "count"}, node_keys(group)));
      const auto name = group.find("name");
      const int count = group.has("count") ? small_int(group.at("count"), 1, kMostNodes) : 1;
      NodeShape shape = read_node(group, name ? name->as_string() : cluster.name, cluster, shapes_allowed);
      if (name) shape.name = name->as_string();
      cluster.nodes.push_back({std::move(shape), count});
    }
  } else {
    json.only(joined(kClusterKeys, node_keys(json)));
    const int count = nodes ? small_int(*nodes, 1, kMostNodes) : 1;
    cluster.nodes.push_back({read_node(json, cluster.name, cluster, shapes_allowed), count});
  }
}

Cluster read_cluster(const JsonReader& json, const std::string& stem, bool shapes_allowed) {
  if (!json.is_object()) json.fail("a cluster: an object with \"gpu\", \"gpus_per_node\", \"pcie\", ...");
  Cluster cluster{.name = stem, .fabric = {.switch_latency = kDefaultSwitchLatency}};
  if (const auto name = json.find("name")) cluster.name = name->as_string();
  if (cluster.name.empty()) json.at("name").fail("a name");
  if (const auto source = json.find("source")) cluster.source = source->as_string();
  if (const auto gpus = json.find("gpus")) {
    if (!gpus->is_array()) gpus->fail("a list of GPUs");
    for (const JsonReader& gpu : gpus->elements()) cluster.gpus.push_back(read_gpu(gpu));
  }
  read_nodes(json, cluster, shapes_allowed);
  std::int64_t devices = 0;
  for (const NodeGroup& group : cluster.nodes) devices += static_cast<std::int64_t>(group.count) * group.shape.gpus;
  if (devices > kMostClusterGpus)
    json.at("nodes").fail("at most " + std::to_string(kMostClusterGpus) + " GPUs, not " + std::to_string(devices));
  if (const auto fabric = json.find("fabric")) cluster.fabric = read_fabric(*fabric);
  complete_gpus(cluster);
  read_money(json, cluster);
  return cluster;
}
}  // namespace

Cluster read_cluster(const std::string& text, const std::string& file_name) {
  return read_cluster(JsonReader::parse(text, file_name), std::filesystem::path(file_name).stem().string(), true);
}

}  // namespace foreshard
