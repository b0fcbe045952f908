// What collectives took between ranks, as measured: by kind, algorithm, class of the link, group and size. Part of a MachineProfile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

class JsonReader;
class JsonWriter;

// The slowest link that a group communicates over: inside one process, between processes of one node, between its GPUs, between nodes.
enum class MeasuredLink : std::uint8_t { Process, Node, NvLink, Pcie, Network };

// Automatic: as the library chose by size. Direct: every member with every other in two rounds, as the host's communicators do. The others by
// NCCL's names (NCCL_ALGO).
enum class MeasuredAlgorithm : std::uint8_t { Automatic, Direct, Ring, Tree, CollnetDirect, CollnetChain, Nvls, NvlsTree, Pat };

struct CollectiveMeasure {
  CollectiveKind kind = CollectiveKind::AllReduce;
  MeasuredAlgorithm algorithm = MeasuredAlgorithm::Automatic;
  MeasuredLink link = MeasuredLink::Process;
  int ranks = 2;
  int nodes = 1;     // that the ranks are on, equally many on each; more than 1 just for MeasuredLink::Network
  Bytes bytes = {};  // of the full tensor, as Collective::bytes
  Seconds time = {};
  // As nccl-tests report them (PERFORMANCE.md there): bytes per second; and what a link carries: that times 2 (n - 1) / n of an all-reduce,
  // (n - 1) / n of gathers, scatters and all-to-alls, 1 of a broadcast or reduce.
  BytesPerSecond algorithm_bandwidth() const { return {static_cast<double>(bytes.value) / time.value}; }
  BytesPerSecond bus_bandwidth() const;
  bool operator==(const CollectiveMeasure&) const = default;
};

// The order of a file: kind, algorithm, link, nodes, ranks, bytes.
bool comes_before(const CollectiveMeasure& a, const CollectiveMeasure& b);

// A link that explains the all-reduces of a class best: a ring of 2 (n - 1) steps of latency + bytes / n / bandwidth, least squares of the
// relative error, so that small ones count as much as large ones. Nothing of fewer than two sizes.
struct FittedLink {
  Seconds latency = {};
  BytesPerSecond bandwidth = {};
  bool operator==(const FittedLink&) const = default;
};
std::optional<FittedLink> fitted_link(const std::vector<CollectiveMeasure>& measures, MeasuredLink link);

const std::vector<std::string>& measured_links();  // "process", "node", "nvlink", "pcie", "network"
const std::string& word_of(MeasuredLink link);
const std::vector<std::string>& measured_algorithms();  // "automatic", "direct", "ring", ...
const std::string& word_of(MeasuredAlgorithm algorithm);

// The member "collectives" of a profile. Reading throws Error with file, field, found and expected.
void write_collectives(JsonWriter& json, const std::vector<CollectiveMeasure>& measures);
std::vector<CollectiveMeasure> read_collectives(const JsonReader& json);

}  // namespace foreshard
