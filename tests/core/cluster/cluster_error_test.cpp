// Every way a cluster file can be wrong has a message that says where, what was found and what was expected.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "core/base/data_path.h"
#include "core/base/error.h"
#include "core/cluster/cluster.h"
#include "core/cluster_file/cluster_file.h"
#include "core/json/json.h"
#include "core/network/network.h"

namespace foreshard::cluster_error_test {
namespace {

struct Wrong {
  std::string text, message;
};

std::string message_of(const std::string& text) {
  try {
    parse_cluster(text, "c.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// The message without the list of known keys, which is core/json's.
std::string told(const std::string& text) {
  const std::string message = message_of(text);
  return message.substr(0, message.find(" (known keys"));
}

// Fields beside a good quote.
const std::vector<Wrong> kWrongFields = {
    {R"("nodes": 0)", R"(nodes: found 0, expected an integer from 1 to 1048576)"},
    {R"("nodes": 2)", R"(nics: found no NIC that gpu0 can reach, expected at least one in each of several nodes)"},
    {R"("nodes": 200000, "nics": {"count": 1, "bandwidth": "1 GB/s"})",
     R"(nodes: found 200000, expected at most 1048576 GPUs, not 1600000)"},
    {R"("nics": {"count": 0, "bandwidth": "1 GB/s"})", R"(nics.count: found 0, expected an integer from 1 to 576)"},
    {R"("nics": {"count": 2, "bandwidth": "1 GB/s", "rails": 3})", R"(nics.rails: found 3, expected an integer from 1 to 2)"},
    {R"("nics": {"count": 2, "bandwidth": "1 GB/s", "at": "gpu"})",
     R"(nics.at: found "gpu", expected one of "switch", "socket")"},
    {R"("nics": {"count": 2, "bandwidth": "1 GB/s", "latency": "2 s"})",
     R"(nics.latency: found "2 s", expected a time of 0 to 1 s)"},
    {R"("nvlink": {"bandwidth": "1 GB/s"})", R"(nvlink.kind: found nothing, expected a value for this key)"},
    {R"("nvlink": {"kind": "ring", "bandwidth": "1 GB/s"})", R"(nvlink.kind: found "ring", expected one of "switch", "mesh")"},
    {R"("nvlink": {"kind": "mesh", "bandwidth": "1 GB/s", "sharp": true})",
     R"(nvlink.sharp: found true, expected false: only a switch can reduce)"},
    {R"("nvlink": {"kind": "switch", "bandwidth": "1 GB/s", "pairs": [[0,1]]})",
     R"(nvlink.pairs: found an array of 1, expected no pairs: they belong to kind "mesh")"},
    {R"("nvlink": {"kind": "mesh", "bandwidth": "1 GB/s", "pairs": []})",
     R"(nvlink.pairs: found an array of 0, expected a list of [gpu, gpu] or [gpu, gpu, links])"},
    {R"("nvlink": {"kind": "mesh", "bandwidth": "1 GB/s", "pairs": [[0,8]]})",
     R"(nvlink.pairs[0][1]: found 8, expected an integer from 0 to 7)"},
    {R"("nvlink": {"kind": "mesh", "bandwidth": "1 GB/s", "pairs": [[0,0]]})",
     R"(nvlink.pairs[0]: found an array of 2, expected two different GPUs)"},
    {R"("nvlink": {"kind": "mesh", "bandwidth": "1 GB/s", "pairs": [[0,1,0]]})",
     R"(nvlink.pairs[0][2]: found 0, expected an integer from 1 to 64)"},
    {R"("nvlink": {"kind": "mesh", "bandwidth": "1 GB/s", "pairs": [3]})",
     R"(nvlink.pairs[0]: found 3, expected [gpu, gpu] or [gpu, gpu, links])"},
    {R"("sockets": 65)", R"(sockets: found 65, expected an integer from 1 to 64)"},
    {R"("socket_link": -1)", R"(socket_link: found -1, expected a number of at least 0)"},
    {R"("cores": 1.5)", R"(cores: found 1.5, expected an integer from 0 to 100000)"},
    {R"("host_memory": "4 PB")",
     R"(host_memory: found "4 PB", expected a size of at least 0 with a unit (B, kB, KB, MB, GB, TB, KiB, MiB, GiB, TiB))"},
    {R"("host_memory": "2000 TiB")", R"(host_memory: found "2000 TiB", expected a memory of at most 1 PiB)"},
    {R"("host_memory_bandwidth": "1 kB/s")",
     R"(host_memory_bandwidth: found "1 kB/s", expected a bandwidth of 1 MB/s to 1 PB/s)"},
    {R"("nvme": {"capacity": "30 TB"})", R"(nvme.bandwidth: found nothing, expected a value for this key)"},
    {R"("nvme": {"capacity": "30 TB", "bandwidth": "1 GB/s", "queue_depth": 0})",
     R"(nvme.queue_depth: found 0, expected an integer from 1 to 65536)"},
    {R"("nvme": {"capacity": "30 TB", "bandwidth": "1 GB/s", "block": "4 B"})",
     R"(nvme.block: found "4 B", expected 512 bytes to 1 GiB)"},
    {R"("nvme": {"capacity": "30 TB", "bandwidth": "1 GB/s", "latency": "2 s"})",
     R"(nvme.latency: found "2 s", expected a time of 0 to 1 s)"},
    {R"("nvme": "30 TB")", R"(nvme: found "30 TB", expected an object)"},
    {R"("nvme": {"capacity": "3000 TiB", "bandwidth": "1 GB/s"})",
     R"(nvme.capacity: found "3000 TiB", expected at most 1 PiB)"},
    {R"("fabric": {"levels": 4})", R"(fabric.levels: found 4, expected an integer from 1 to 3)"},
    {R"("fabric": {"oversubscription": 0.5})", R"(fabric.oversubscription: found 0.5, expected a number from 1 to 1000)"},
    {R"("fabric": {"nodes_per_leaf": 0})", R"(fabric.nodes_per_leaf: found 0, expected an integer from 1 to 65536)"},
    {R"("fabric": {"leaves_per_pod": 0})", R"(fabric.leaves_per_pod: found 0, expected an integer from 1 to 65536)"},
    {R"("fabric": {"rail_optimized": true})",
     R"(fabric.rail_optimized: found an unknown key with value true, expected "rail_optimised")"},
    {R"("fabric": {"rail_optimised": 1})", R"(fabric.rail_optimised: found 1, expected true or false)"},
    {R"("fabric": 2)", R"(fabric: found 2, expected an object)"},
    {R"("price_per_gpu_hour": -1)", R"(price_per_gpu_hour: found -1, expected a number from 0 to 1e+10)"},
    {R"("price_per_gpu_hour": 0)",
     R"(price_per_gpu_hour: found 0, expected more than 0; without the key the price is unknown)"},
    {R"("capex": {"per_node": 0, "years": 1})",
     R"(capex.per_node: found 0, expected more than 0; without the key the price is unknown)"},
    {R"("price_per_gpu_hour": 1, "capex": {"per_node": 1, "years": 1})",
     R"(capex: found an object of 2, expected either price_per_gpu_hour or capex; --set cluster.price_per_gpu_hour=null takes that away)"},
    {R"("capex": {"per_node": 1, "years": 0})", R"(capex.years: found 0, expected a number from 0.1 to 100)"},
    {R"("capex": {"per_node": 1, "years": 3, "electricity_per_kwh": 0.1})",
     R"(capex.electricity_per_kwh: found 0.1, expected power_per_node or power_per_gpu beside it)"},
    {R"("power_per_node": "10 MW")", R"(power_per_node: found "10 MW", expected a power, like "10.2 kW")"},
    {R"("power_per_node": 0)", R"(power_per_node: found 0, expected a power of at least 1 W and at most 10 MW)"},
    {R"("power_per_node": "1 kW", "power_per_gpu": "1 kW")",
     R"(power_per_gpu: found "1 kW", expected either power_per_node or power_per_gpu; --set cluster.power_per_node=null takes that away)"},
    {R"("name": "")", R"(name: found "", expected a name)"},
    {R"("name": 3)", R"(name: found 3, expected a text)"},
    {R"("gpus": {})", R"(gpus: found an object of 0, expected a list of GPUs)"},
    {R"("fabric": {"switch_latency": "2 s"})", R"(fabric.switch_latency: found "2 s", expected a time of 0 to 1 s)"},
    {R"("fabric": {"rail_optimised": "no"})", R"(fabric.rail_optimised: found "no", expected true or false)"},
    {R"("nvlink": {"kind": "switch", "bandwidth": "1 GB/s", "latency": "1 min"})",
     R"(nvlink.latency: found "1 min", expected a time of at least 0 with a unit (s, ms, us, ns))"},
    {R"("capex": {"years": 1})", R"(capex.per_node: found nothing, expected a value for this key)"},
    {R"("source": 4)", R"(source: found 4, expected a text)"}};

const std::vector<Wrong> kWrongFiles = {
    {R"([])", R"(found an array of 0, expected a cluster: an object with "gpu", "gpus_per_node", "pcie", ...)"},
    {R"({})", R"(gpu: found nothing, expected a value for this key)"},
    {R"({"gpu": "h100"})", R"(gpu: found "h100", expected a GPU of the catalogue or of "gpus", perhaps 'h200')"},
    {R"({"gpu": "h100-81", "gpus_per_node": 8, "pcie": {"bandwidth": "63 GB/s"}})",
     R"(gpu: found "h100-81", expected a GPU of the catalogue or of "gpus", perhaps 'h100-80')"},
    {R"({"gpu": "h200", "gpus_per_node": 0, "pcie": {"bandwidth": "63 GB/s"}})",
     R"(gpus_per_node: found 0, expected an integer from 1 to 576)"},
    {R"({"gpu": "h200", "gpus_per_node": 8})", R"(pcie: found nothing, expected a value for this key)"},
    {R"({"gpu": "h200", "gpus_per_nodes": 8, "pcie": {"bandwidth": "63 GB/s"}})",
     R"(gpus_per_nodes: found an unknown key with value 8, expected "gpus_per_node")"},
    {R"({"gpu": "h200", "gpus_per_node": 8, "pcie": {"bandwidth": "63 GB"}})",
     R"(pcie.bandwidth: found "63 GB", expected a bandwidth of at least 0 with a unit (B/s, kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, TiB/s, b/s, kb/s, Mb/s, Gb/s, Tb/s))"},
    {R"({"gpu": "h200", "gpus_per_node": 8, "pcie": {"bandwidth": 0}})",
     R"(pcie.bandwidth: found 0, expected a bandwidth of 1 MB/s to 1 PB/s)"},
    {R"({"gpu": "h200", "gpus_per_node": 8, "pcie": {"bandwidth": "63 GB/s", "switches": 9}})",
     R"(pcie.switches: found 9, expected an integer from 0 to 8)"},
    {R"({"gpu": "h200", "gpus_per_node": 8, "pcie": {"bandwidth": "63 GB/s", "switches": 4, "gpus_per_switch": 4}})",
     R"(pcie.gpus_per_switch: found 4, expected a number that agrees with 4 switches for 8 GPUs)"},
    {R"({"gpu": "h200", "gpus_per_node": 8, "pcie": {"bandwidth": "63 GB/s", "switchs": 4}})",
     R"(pcie.switchs: found an unknown key with value 4, expected "switches")"},
    {R"({"gpu": "h200", "gpus_per_node": 1, "pcie": {"bandwidth": "63 GB/s"}, "nvlink": {"kind": "mesh", "bandwidth": "1 GB/s"}})",
     R"(nvlink.kind: found "mesh", expected "switch": a mesh needs two GPUs)"},
    {R"({"shape": "dgx-h10"})",
     R"(shape: found "dgx-h10", expected one of "dgx-a100", "dgx-a100-40gb", "dgx-b200", "dgx-h100", "dgx-h800", "dgx1-v100", "eth100-a100", "eth25-a100", "gb200-nvl72", "gh200", "hgx-h200", "pcie-a100-8", "workstation-rtx4090" (nearest: "dgx-h100"))"},
    {R"({"shape": "dgx-h100", "gpus_per_node": 4})",
     R"(gpus_per_node: found an unknown key with value 4, expected "power_per_node")"},
    {R"({"nodes": []})", R"(nodes: found an array of 0, expected 1 to 1000 groups of nodes)"},
    {R"({"nodes": [{"shape": "dgx-h100", "count": 0}]})", R"(nodes[0].count: found 0, expected an integer from 1 to 1048576)"},
    {R"({"nodes": [{"shape": "dgx-h100"}], "gpu": "h200"})", R"(gpu: found an unknown key with value "h200", expected "gpus")"},
    {R"({"nodes": [3]})", R"(nodes[0]: found 3, expected an object)"},
    {R"({"gpu": "h200", "parts": [], "links": []})",
     R"(parts: found an array of 0, expected a list of 1 to 8192 parts [kind, name])"},
    {R"({"gpu": "h200", "parts": [["gpu", "a"], ["gpu", "a"]], "links": []})",
     R"(parts[1][1]: found "a", expected a name of its own)"},
    {R"({"gpu": "h200", "parts": [["cpu", "a"], ["gpu", "b"]], "links": []})",
     R"(parts[1]: found an array of 2, expected the GPUs before all other parts)"},
    {R"({"gpu": "h200", "parts": [["cpu", "a"]], "links": []})",
     R"(parts: found an array of 1, expected 1 to 576 GPUs among the parts)"},
    {R"({"gpu": "h200", "parts": [["gpv", "a"]], "links": []})",
     R"(parts[0][0]: found "gpv", expected one of "gpu", "nvswitch", "pcie", "cpu", "dram", "nvme", "nic" (nearest: "gpu"))"},
    {R"({"gpu": "h200", "parts": [["gpu"]], "links": []})",
     R"(parts[0]: found an array of 1, expected [kind, name] or ["nic", name, rail])"},
    {R"({"gpu": "h200", "parts": [["gpu", "a"], ["nic", "n", 2000]], "links": []})",
     R"(parts[1][2]: found 2000, expected an integer from -1 to 1023)"},
    {R"({"gpu": "h200", "parts": [["gpu", "a"], ["nic", "n"]], "links": []})",
     R"(nics: found nothing, expected a value for this key)"},
    {R"({"gpu": "h200", "parts": [["gpu", "a"], ["gpu", "b"]], "links": []})",
     R"(node shape c: found no path from gpu0 to gpu1, expected links that join all GPUs)"},
    {R"({"gpu": "h200", "parts": [["gpu", "a"], ["gpu", "b"]], "links": [["a", "c", "pcie", "1 GB/s", "1 us"]]})",
     R"(links[0][1]: found "c", expected one of "a", "b" (nearest: "a"))"},
    {R"({"gpu": "h200", "parts": [["gpu", "a"], ["gpu", "b"]], "links": [["a", "a", "pcie", "1 GB/s", "1 us"]]})",
     R"(links[0]: found an array of 5, expected a link between two different parts)"},
    {R"({"gpu": "h200", "parts": [["gpu", "a"], ["gpu", "b"]], "links": [["a", "b", "usb", "1 GB/s", "1 us"]]})",
     R"(links[0][2]: found "usb", expected one of "nvlink", "pcie", "socket", "dram", "nvme")"},
    {R"({"gpu": "h200", "parts": [["gpu", "a"], ["gpu", "b"]], "links": [["a", "b", "pcie", "1 GB/s"]]})",
     R"(links[0]: found an array of 4, expected [part, part, kind, bandwidth, latency])"},
    {R"({"gpu": "h200", "parts": [["gpu", "a"], ["gpu", "b"]], "links": [["a", "b", "pcie", "1 GB/s", "-1 us"]]})",
     R"(links[0][4]: found "-1 us", expected a time of at least 0 with a unit (s, ms, us, ns))"},
    {R"({"gpu": "h200", "parts": [["gpu", "a"], ["gpu", "b"]], "links": [["a", "b", "pcie", "1 GB/s", "1 us"]], "nodes": 2})",
     R"(nics: found no NIC that gpu0 can reach, expected at least one in each of several nodes)"},
    {R"({"gpu": "x", "gpus": [{"name": "x", "architecture": "ampere", "fp32": "1 TFLOP/s"}], "gpus_per_node": 8, "pcie": {"bandwidth": "63 GB/s"}})",
     R"(gpus[0].vector_fp32: found nothing, expected a value for this key)"},
    {R"({"gpu": "x", "gpus": [{"name": "x", "architecture": "ampere", "fp32": 0, "vector_fp32": "1 TFLOP/s", "memory": "80 GB", "memory_bandwidth": "1 TB/s", "sm_count": 100}], "gpus_per_node": 8, "pcie": {"bandwidth": "63 GB/s"}})",
     R"(gpus[0].fp32: found 0, expected a peak of at least 1 GFLOP/s: every GPU computes in fp32)"},
    {R"({"gpu": "x", "gpus": [{"name": "x", "architecture": "ampere", "fp32": "1 TFLOP/s", "vector_fp32": "1 TFLOP/s", "memory": "80 kB", "memory_bandwidth": "1 TB/s", "sm_count": 100}], "gpus_per_node": 8, "pcie": {"bandwidth": "63 GB/s"}})",
     R"(gpus[0].memory: found "80 kB", expected a memory of 1 MiB to 1 PiB)"},
    {R"({"gpu": "x", "gpus": [{"name": "x", "architecture": "ampere", "fp32": "1 TFLOP/s", "vector_fp32": "1 TFLOP/s", "memory": "80 GB", "memory_bandwidth": "1 TB/s", "sm_count": 0}], "gpus_per_node": 8, "pcie": {"bandwidth": "63 GB/s"}})",
     R"(gpus[0].sm_count: found 0, expected an integer from 1 to 100000)"},
    {R"({"gpu": "x", "gpus": [{"name": "x", "architecture": "ampere", "fp16": "2 EFLOP/s", "fp32": "1 TFLOP/s", "vector_fp32": "1 TFLOP/s", "memory": "80 GB", "memory_bandwidth": "1 TB/s", "sm_count": 10}], "gpus_per_node": 8, "pcie": {"bandwidth": "63 GB/s"}})",
     R"(gpus[0].fp16: found "2 EFLOP/s", expected a peak of at most 1 EFLOP/s; 0 or absent: not supported)"},
    {R"({"gpu": "x", "gpus": [{"name": "x", "architecture": "ampere", "bf32": "2 EFLOP/s"}], "gpus_per_node": 8, "pcie": {"bandwidth": "63 GB/s"}})",
     R"(gpus[0].bf32: found an unknown key with value "2 EFLOP/s", expected "tf32")"},
    {R"({"gpu": "h200", "gpus_per_node": 33, "pcie": {"bandwidth": "63 GB/s"}, "nvlink": {"kind": "mesh", "bandwidth": "1 GB/s"}})",
     R"(nvlink.kind: found "mesh", expected "switch", or pairs: all to all is for at most 32 GPUs)"},
    {R"({"gpu": "h200", "gpus_per_node": 8, "pcie": {"bandwidth": "63 GB/s", "c2c": "1 B/s"}})",
     R"(pcie.c2c: found "1 B/s", expected a bandwidth of 1 MB/s to 1 PB/s)"},
    {R"({"gpu": "h200", "gpus_per_node": 8, "pcie": {"bandwidth": "63 GB/s", "uplink": "1 EB/s"}})",
     R"(pcie.uplink: found "1 EB/s", expected a bandwidth of at least 0 with a unit (B/s, kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, TiB/s, b/s, kb/s, Mb/s, Gb/s, Tb/s))"},
    {R"({"gpu": "h200", "parts": [["gpu", "a"]], "links": [], "nvlink_sharp": 1})",
     R"(nvlink_sharp: found 1, expected true or false)"},
    {R"({"gpu": "h200", "parts": [["gpu", "a"]], "links": {}, "nvme_capacity": 1})",
     R"(links: found an object of 0, expected a list of at most 65536 links)"},
    {R"({"gpu": "h200", "parts": [["gpu", "a"]], "links": [], "nvme_capacity": "2000 TiB"})",
     R"(nvme_capacity: found "2000 TiB", expected at most 1 PiB)"},
    {R"({"gpu": "h200", "parts": [["gpu", "a"]], "links": [], "cores": -1})",
     R"(cores: found -1, expected an integer from 0 to 100000)"}};

TEST(ClusterErrors, FieldsOfAQuote) {
  const std::string good = R"("gpu": "h200", "gpus_per_node": 8, "pcie": {"bandwidth": "63 GB/s"})";
  EXPECT_EQ(message_of("{" + good + "}"), "no error");
  for (const Wrong& wrong : kWrongFields)
    EXPECT_EQ(told("{" + good + ", " + wrong.text + "}"), "c.json: " + wrong.message) << wrong.text;
}

TEST(ClusterErrors, WholeFiles) {
  for (const Wrong& wrong : kWrongFiles) EXPECT_EQ(told(wrong.text), "c.json: " + wrong.message) << wrong.text;
}

template <class Call>
std::string message_from(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ClusterErrors, NamesAndNumbersOfNodes) {
  EXPECT_EQ(
      message_from([] { load_cluster("dgx-h10-x4"); }),
      "cluster: found 'dgx-h10-x4', expected a file, or the name of a shipped cluster with or without -xN, perhaps 'dgx-h100'");
  EXPECT_EQ(message_from([] { load_cluster("dgx-h100-x0"); }),
            "cluster: found 'dgx-h100-x0', expected a file, or the name of a shipped cluster with or without -xN, perhaps "
            "'dgx-h100'");
  EXPECT_EQ(message_from([] { load_cluster("dgx-h100-x999999"); }),
            "dgx-h100: nodes: found 999999, expected 1 to 131072: at most 1048576 GPUs, 8 a node");
  EXPECT_EQ(message_from([] {
              with_nodes(parse_cluster(R"({"nodes": [{"shape": "dgx-a100"}, {"shape": "dgx-h100"}]})", "two.json"), 4);
            }),
            "two: nodes: found 2 groups of nodes, expected one group, to repeat it 4 times");
  EXPECT_EQ(message_from([] {
              with_nodes(parse_cluster(R"({"gpu": "h200", "gpus_per_node": 2, "pcie": {"bandwidth": 1e9}})", "one.json"), 2);
            }),
            "one: nodes: found 2, expected 1: its nodes have no NIC");
}

TEST(ClusterErrors, NetworksOfImpossibleShapes) {
  const Cluster good = load_cluster("dgx-a100");
  const auto with = [&](auto change) {
    Cluster cluster = good;
    change(cluster, cluster.nodes[0].shape);
    return message_from([&] { const Network network(cluster); });
  };
  EXPECT_EQ(with([](Cluster&, NodeShape& shape) { shape.links[0].bandwidth = {0}; }),
            "dgx-a100: node shape dgx-a100: found a link of 0.000000 B/s, expected a positive bandwidth");
  EXPECT_EQ(with([](Cluster&, NodeShape& shape) { shape.links[3].to = 1000; }),
            "dgx-a100: node shape dgx-a100: found a link from part 3 to 1000, expected two different parts of the node");
  EXPECT_EQ(with([](Cluster&, NodeShape& shape) { shape.nics = 7; }),
            "dgx-a100: node shape dgx-a100: found 8 NIC parts, expected 7, its number of NICs");
  EXPECT_EQ(with([](Cluster&, NodeShape& shape) { shape.gpus = 9; }),
            "dgx-a100: node shape dgx-a100: found part 8 of another kind, expected the GPUs first, then the other parts");
  EXPECT_EQ(with([](Cluster&, NodeShape& shape) { shape.gpu = "b100"; }),
            "dgx-a100: node shape dgx-a100: found GPU 'b100', expected one of Cluster::gpus");
  EXPECT_EQ(with([](Cluster& cluster, NodeShape&) { cluster.nodes[0].count = 0; }),
            "dgx-a100: nodes: found 0, expected at least 1 node");
  EXPECT_EQ(with([](Cluster& cluster, NodeShape&) { cluster.nodes.clear(); }),
            "dgx-a100: nodes: found no GPU, expected at least one node");
  EXPECT_EQ(
      with([](Cluster& cluster, NodeShape&) { cluster.fabric.oversubscription = 0; }),
      "dgx-a100: fabric: found a number out of range, expected 1 to 3 levels, at least one node per leaf and leaf per pod, "
      "oversubscription above 0");
}

// ---- a file that somebody mangled ------------------------------------------------------------------------------------------

std::string mangled(std::string text, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % std::max<std::size_t>(1, n); };
  static const std::vector<std::string> pieces = {
      "0",    "-1", "1e300", "99999999999999999999", "null",     "true",     "[]", "{}",
      "\"\"", "8",  "3",     "\"1 GB/s\"",           "\"mesh\"", "\"h200\"", ",",  "\"",
      "}",    "]",  "1"};
  const std::size_t changes = 1 + below(3);
  for (std::size_t i = 0; i < changes && !text.empty(); ++i) {
    const std::size_t at = below(text.size()), length = std::min(below(12) + 1, text.size() - at);
    switch (random() % 5) {
      case 0: text[at] = static_cast<char>(random() % 96 + 32); break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(at, text.substr(below(text.size()), length)); break;
      case 3: text.insert(at, pieces[below(pieces.size())]); break;
      case 4: {  // another value for a field
        const std::size_t colon = text.find(": ", at),
                          end = text.find_first_of(",}\n", colon == std::string::npos ? at : colon);
        if (colon != std::string::npos && end != std::string::npos)
          text.replace(colon + 2, end - colon - 2, pieces[below(pieces.size())]);
        break;
      }
    }
  }
  return text;
}

// Uses all that a reader of the cluster would.
void use(const Cluster& cluster, std::mt19937& random) {
  const Network network(cluster);
  std::vector<DeviceId> members;
  for (int i = 0; i < 6; ++i) members.push_back({static_cast<int>(random() % static_cast<unsigned>(network.devices()))});
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
  for (const DeviceId from : members)
    for (const DeviceId to : members) {
      const Route route = network.route(from, to);
      EXPECT_EQ(route.links.empty(), from == to);
      for (const LinkId id : route.links) EXPECT_FALSE(network.name(id).empty());
      EXPECT_TRUE(from == to || route.bandwidth.value > 0);
      (void)network.host_route(from, Endpoint::HostMemory, true);
      (void)network.host_route(from, Endpoint::Nvme, false);
    }
  for (const Algorithm algorithm : {Algorithm::Ring, Algorithm::DoubleTree, Algorithm::Hierarchical, Algorithm::NvlinkSharp})
    (void)collective_phases(network, {.algorithm = algorithm, .bytes = {1000}}, members);
  EXPECT_EQ(parse_cluster(to_json(cluster), "copy"), cluster);
}

TEST(ClusterErrors, MangledFilesGiveAnErrorOrAClusterThatWorks) {
  std::mt19937 random(7);
  std::vector<std::string> texts;
  for (const char* name : {"dgx1-v100", "dgx-a100", "pcie-a100-8"})
    texts.push_back(read_file(data_directory() + "/topologies/" + name + ".json"));
  texts.push_back(read_file(std::string(FORESHARD_SOURCE) + "/examples/quote-h100-pcie.json"));
  texts.push_back(to_json(load_cluster("workstation-rtx4090-x2")));
  texts.push_back(R"({"nodes": [{"shape": "dgx-a100", "count": 2}, {"shape": "dgx-h100"}], "fabric": {"levels": 3}})");
  int good = 0, bad = 0;
  for (int i = 0; i < 1500; ++i) {
    const std::string text = mangled(texts[static_cast<std::size_t>(i) % texts.size()], random);
    try {
      const Cluster cluster = parse_cluster(text, "mangled.json");
      use(cluster, random);
      ++good;
    } catch (const Error& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("mangled.json")) << error.what();
      ++bad;
    }
  }
  EXPECT_GT(good, 100);
  EXPECT_GT(bad, 100);
}

// A file of the catalogue says the name that clusters ask for, else a cluster would have a GPU that nobody has described.
TEST(ClusterErrors, AFileOfTheCatalogueHasTheNameOfItsGpu) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "foreshard-catalogue";
  fs::create_directories(folder / "topologies" / "gpus");
  const std::string path = (folder / "topologies" / "gpus" / "mine.json").string();
  std::string text = read_file(data_directory() + "/topologies/gpus/h100-80.json");
  write_file(path, text);
  const std::string before = data_directory();
  setenv("FORESHARD_DATA", folder.c_str(), 1);
  std::string said = "no error";
  try {
    load_gpu("mine");
  } catch (const Error& error) {
    said = error.what();
  }
  setenv("FORESHARD_DATA", before.c_str(), 1);
  EXPECT_EQ(said, path + R"(: name: found "h100-80", expected "mine", the name of the file)");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace foreshard::cluster_error_test
