// What no datasheet says about a GPU generation: achievable fractions and protocol costs, from benchmarks of kernels and
// from libraries' own tables; what was fitted on training runs is in strategy/cost/fitted_constants.h. docs/cost-model.md says
// how each was obtained. A calibrated profile replaces these numbers, not the formulas.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/base/units.h"
#include "core/cluster/cluster.h"

namespace foreshard {

// NCCL's three wire protocols: LL sends 8 bytes of flag with 8 of data, LL128 8 with 120, Simple none but synchronises
// more.
enum class Protocol : std::uint8_t { LL, LL128, Simple };
inline constexpr int kProtocols = 3;

struct MachineConstants {
  // Products. Of the dense datasheet peak the best shapes reach min(cap, coefficient * cbrt(watts per TFLOP/s)): under full
  // load the power limit sets the clock, and power goes with its cube.
  double tensor_cap = 1.0;
  double power_coefficient = 0.9;
  double fp8_share = 0.95;    // of the 16-bit ceiling: more data to feed per second
  bool copies_beside = true;  // products load their operands beside the arithmetic: losses are clocks, not a share of it
  // What rows of operands cost that are multiples of 4 or 8 bytes, or of less, instead of 16: clocks per FLOP of an SM in units of what
  // an A100's tensor cores take.
  double narrow_rows = 0.67, odd_rows = 2.5;
  double vector_ceiling = 0.9;  // fp32 and fp64 without tensor cores
  double fill_depth = 64;       // per tile, in units of k: filling the pipeline and writing the result
  // Flash attention of head dimension 128 and long sequences, of the dense peak, FLOPs really executed.
  // By FlashKernel (op_cost.h).
  std::array<double, 4> flash_forward = {0.35, 0.6, 0.6, 0.6}, flash_backward = {0.3, 0.5, 0.5, 0.33};
  // Device memory: fraction of the datasheet bandwidth that a large streaming kernel reaches.
  double memory_efficiency = 0.85;
  double gather_efficiency = 0.5;  // rows picked by index
  // Links: fraction of the datasheet rate of one direction that large messages reach.
  double nvlink_ring = 0.8, nvlink_sharp = 0.65, nvlink_p2p = 0.8;
  BytesPerSecond ll_limit = {87.7e9};  // LL is bound by flag polling
  int channels = 24;                   // thread blocks of a large collective, one SM each
  bool operator==(const MachineConstants&) const = default;
};

// By Gpu::architecture; an unknown name gets the defaults above.
const MachineConstants& machine_constants(const std::string& architecture);

// Of a card: Blackwell's GeForce and RTX PRO have no tensor memory, their products are those of a warp as Ada's.
const MachineConstants& machine_constants(const Gpu& gpu);

// NCCL's own latency table (src/graph/tuning.cc), ring algorithm, per protocol.
struct ProtocolLatency {
  Seconds base = {};                             // per collective
  Seconds nvlink = {}, pcie = {}, network = {};  // per step over such a link
};
const ProtocolLatency& protocol_latency(Protocol protocol);

// Of the rate of a short benchmark, what products keep in training: min(1, level * (watts / TFLOP/s)^exponent). A burst ends before
// the power limit acts; the less power a FLOP has, the more it costs. Level and exponent are fits (strategy/cost/fitted_constants.h).
double sustained_share(const Gpu& gpu);

inline constexpr double kLl128Efficiency = 0.92;  // NCCL: 120/128 and its flag handling
inline constexpr double kLlEfficiency = 0.5;
inline constexpr double kNetworkEfficiency = 0.94;     // of a NIC's line rate: headers and credits
inline constexpr double kPcieEfficiency = 0.835;       // of the encoded rate, peer to peer (RTX A6000: 26.3 of 31.5 GB/s)
inline constexpr double kCopyEngineEfficiency = 0.88;  // of the encoded rate, pinned memory (H200: 55.4 of 63 GB/s)
inline constexpr Seconds kNvlinkSharpBase = {23e-6};   // NCCL: latency of its NVLS algorithm

}  // namespace foreshard
