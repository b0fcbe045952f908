// Measured times of collectives, by kind, algorithm, class of links, group and size. Part of a MachineProfile.
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

// Automatic: the library chose by size. Direct: every member exchanges with every other in two rounds, as the communicators of the host
// executor do. The others have NCCL's names (NCCL_ALGO).
enum class MeasuredAlgorithm : std::uint8_t { Automatic, Direct, Ring, Tree, CollnetDirect, CollnetChain, Nvls, NvlsTree, Pat };

struct CollectiveMeasure {
  CollectiveKind kind = CollectiveKind::AllReduce;
  MeasuredAlgorithm algorithm = MeasuredAlgorithm::Automatic;
  MeasuredLink link = MeasuredLink::Process;
  int ranks = 2;
  int nodes = 1;     // nodes of the ranks, equal numbers on each; more than 1 only for MeasuredLink::Network
  Bytes bytes = {};  // of the full tensor, as Collective::bytes
  Seconds time = {};
  // As nccl-tests define them (PERFORMANCE.md there). Algorithm bandwidth: bytes / time. Bus bandwidth: that times 2 (n - 1) / n for an
  // all-reduce, (n - 1) / n for all-gather, reduce-scatter and all-to-all, 1 for broadcast and reduce.
  BytesPerSecond algorithm_bandwidth() const { return {static_cast<double>(bytes.value) / time.value}; }
  BytesPerSecond bus_bandwidth() const;
  bool operator==(const CollectiveMeasure&) const = default;
};

// Whether a comes before b in a file: by kind, algorithm, link, nodes, ranks, bytes.
bool comes_before(const CollectiveMeasure& a, const CollectiveMeasure& b);

// The latency and bandwidth that fit the all-reduces of a class of links best, if each is a ring of 2 (n - 1) steps of latency + bytes / n
// / bandwidth. Least squares of the relative error, so that small sizes count as much as large ones. Empty for fewer than two sizes.
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
