// How the tokens of a training step chose experts, and how many choices were dropped, counted where routers and dispatches run.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "exec/device/operand.h"

namespace foreshard {

struct ExpertCounts {
  std::vector<std::vector<double>> loads = {};  // [router][expert] tokens that chose the expert
  double placed = 0;                            // choices for which there was room

  bool empty() const { return loads.empty(); }
  double choices() const;
  double dropped() const { return choices() - placed; }
  void add(const ExpertCounts& other);
  bool operator==(const ExpertCounts&) const = default;
};
// The router whose most chosen expert has the most tokens relative to the mean of its experts, and how many times the mean it has. Only if
// there are choices.
struct MostLoaded {
  std::size_t router = 0;
  double factor = 1;
};
MostLoaded most_loaded_of(const ExpertCounts& counts);

// The routers of a plan, in the order of the model: the layer's name, and "" or the part of the layer ("mtp0.").
struct RouterName {
  std::string layer = {}, part = {};
  std::string text() const { return part.empty() ? layer : layer + " " + part.substr(0, part.size() - 1); }
  bool operator==(const RouterName&) const = default;
};
std::vector<RouterName> routers_of(const Plan& plan);

// What one instruction of a rank adds to the counts. Nothing unless it is the forward of a router or a dispatch.
struct ExpertCounting {
  int router = -1;       // its router; -1: it is a dispatch
  Operand numbers = {};  // a router's loads, or the rows that a dispatch gave to each expert; no data: it is neither
  bool counts() const { return numbers.data != nullptr; }
  void add_to(ExpertCounts& counts, const Operand& numbers_on_host, std::size_t routers) const;
};
// `part`: position of the rank among those that share each expert; they dispatch the same gathered tokens, and the first one counts them.
ExpertCounting counting_of(const std::vector<RouterName>& routers, const Role& role, const Instruction& instruction,
                           std::span<const Operand> writes, int part);

// As bytes for other processes, and back. Throws DeviceError for bytes that are not the counts of `routers` routers.
std::string packed(const ExpertCounts& counts);
ExpertCounts counts_of(const std::string& bytes, std::size_t routers);

}  // namespace foreshard
