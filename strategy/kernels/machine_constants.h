// Constants of a GPU generation that no datasheet states: achievable fractions of peak rates and protocol costs, from kernel benchmarks and
// from libraries' own tables. Constants that were fitted to training runs are in strategy/kernels/fitted_constants.h. docs/cost-model.md
// says how each was obtained. A calibrated profile replaces these numbers, not the formulas.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/base/units.h"
#include "core/cluster/cluster.h"

namespace foreshard {

// NCCL's three wire protocols: LL sends flags as large as its data, LL128 sends 8 bytes of flags per 120 bytes of data, Simple sends none
// but synchronises more.
enum class Protocol : std::uint8_t { LL, LL128, Simple };
inline constexpr int kProtocols = 3;

// Flash attention of kernels that were written for a GPU's own instructions: wide products, bulk copies, tensor memory.
struct FlashBlocks {
  bool own = false;      // there are such kernels, and their times were measured
  double queries = 128;  // of a block of the forward
  double forward_fill = 0,
         backward_fill = 0;  // what filling a block costs, in keys of head size 128; no faster with smaller heads
  double wide_backward = 1;  // speed of the backward with head sizes above 128
  double sustained = 1;      // share of these rates that runs of a second keep: the power limit acts
  bool operator==(const FlashBlocks&) const = default;
};

// Training in 8 and 4 bits. Speeds of casts are shares of a streaming kernel's speed.
struct Codes {
  bool any_layout = false;    // 8-bit products with one scale per tensor read either layout: no transposed copies
  bool blocks = false;        // there are products with scales of blocks of 32 numbers (MXFP8)
  double block_products = 1;  // their speed, over that with one scale per tensor
  double block_casts = 1;     // casts to MXFP8
  double fp4_casts = 1;       // casts to NVFP4
  double maxima = 1;          // a pass that finds the largest magnitude of a tensor
  bool operator==(const Codes&) const = default;
};

struct MachineConstants {
  // Matrix products. The best shapes reach the share min(cap, coefficient * (watts per TFLOP/s)^exponent) of the dense datasheet peak:
  // under full load the power limit sets the clock, and power grows with the cube of the clock.
  double tensor_cap = 1.0;
  double power_coefficient = 0.9, power_exponent = 1.0 / 3;
  // The voltage is at its minimum, so power grows with the clock only, not with its cube. Such a card is at its limit within milliseconds,
  // in benchmarks too.
  bool clock_alone = false;
  double flash_watts = 0;   // W per 16-bit TFLOP/s of the card whose flash attention was measured; 0: not bound by power
  double fp8_share = 0.95;  // share of the 16-bit ceiling that 8-bit products reach: they need more data per second
  double fp4_share = 0.63;  // the same of products in NVFP4 (fp4_ceiling)
  Codes codes = {};
  // Extra clocks per FLOP, relative to those that an A100's tensor cores take, when the rows of operands are a multiple of 4 or 8 bytes but
  // not of 16 (narrow), or not of 4 (odd).
  double narrow_rows = 0.67, odd_rows = 2.5;
  double vector_ceiling = 0.9;  // share of the peak that fp32 and fp64 products reach without tensor cores
  double fill_depth = 64;       // cost of filling the pipeline and writing an output tile, in steps of k
  // [FlashKernel] (op_cost.h): share of the dense peak that flash attention with head size 128 and long sequences reaches, counting the
  // FLOPs that it really executes.
  std::array<double, 4> flash_forward = {0.35, 0.6, 0.6, 0.6}, flash_backward = {0.3, 0.5, 0.5, 0.33};
  FlashBlocks flash_blocks = {};
  // Device memory: fraction of the datasheet bandwidth that a large streaming kernel reaches.
  double memory_efficiency = 0.85;
  double gather_efficiency = 0.5;  // the same for kernels that read rows by index (embeddings)
  // Links: fraction of the datasheet rate of one direction that large messages reach.
  double nvlink_ring = 0.8, nvlink_sharp = 0.65, nvlink_p2p = 0.8;
  double nvlink_all_to_all = 0.7;      // NCCL's all-to-all: a rank copies its own part beside those of the others
  BytesPerSecond ring_copy = {576e9};  // in a ring, of a rank that copies or adds its own part and sends nothing meanwhile
  BytesPerSecond ll_limit = {87.7e9};  // the most that protocol LL reaches: polling of flags limits it
  int channels = 24;                   // thread blocks of a large collective, one SM each
  bool operator==(const MachineConstants&) const = default;
};

// The constants of an architecture (Gpu::architecture); an unknown name gets the defaults above.
const MachineConstants& machine_constants(const std::string& architecture);
// Whether its constants come from measurements of its own cards.
bool has_own_constants(const std::string& architecture);

// The constants of a GPU. Blackwell's GeForce and RTX PRO cards have no tensor memory; a warp computes their products, as on Ada.
const MachineConstants& machine_constants(const Gpu& gpu);

// NCCL's own latency table (src/graph/tuning.cc), ring algorithm, per protocol.
struct ProtocolLatency {
  Seconds base = {};                             // per collective
  Seconds nvlink = {}, pcie = {}, network = {};  // per step over such a link
};
const ProtocolLatency& protocol_latency(Protocol protocol);
// The same for its trees.
const ProtocolLatency& tree_latency(Protocol protocol);

// Share of the dense 16-bit peak that the best products reach.
double tensor_ceiling(const Gpu& gpu);
// Share of the NVFP4 peak that the best products reach. A quarter of the peak draws what 16-bit products of that rate do, so that Blackwell
// Ultra, with six times its 16-bit peak, runs at a lower clock.
double fp4_ceiling(const Gpu& gpu);
// Whether the power limit sets the clock of large products, so that this share is below that of the best kernels.
bool bound_by_power(const Gpu& gpu);
// Clock during flash attention, over that of the card on which the generation's kernels were measured: a lower power limit lowers it, as it
// does for matrix products. At most 1.
double flash_clock(const Gpu& gpu);
// Exponentials per SM and clock, against the 16 of all generations but Blackwell Ultra.
double exponential_rate(const Gpu& gpu);

// The share of a short benchmark's rate that products sustain in training (ProductConstants). A benchmark ends before the power limit acts;
// 1: on this GPU the limit does not bind, or binds at once.
double sustained_share(const Gpu& gpu);

// Results per SM and clock of PyTorch's kernels without vector loads.
inline constexpr double kUnvectorizedResults = 1.3;

// Shares of a link's datasheet rate.
inline constexpr double kLl128Efficiency = 0.92;  // protocol LL128: 120/128 and the handling of flags
inline constexpr double kLlEfficiency = 0.5;      // protocol LL
inline constexpr double kTreeEfficiency = 0.92;   // of a ring's rate, protocol Simple: NCCL's tuning model, as the next three
inline constexpr double kTreeLl128Efficiency = 120.0 / 128,
                        kTreeLl128InNode = 7.0 / 9;   // of a tree's by Simple, over nodes and inside one
inline constexpr double kTreeLlEfficiency = 1 / 3.8;  // of a tree's by Simple
inline constexpr double kPeerEfficiency = 0.835;  // between two GPUs of a node without NVLink (RTX A6000: 26.3 of 31.5 GB/s)
inline constexpr Seconds kNvlinkSharpBase = {23e-6};  // NCCL: latency of its NVLS algorithm

}  // namespace foreshard
