#include "strategy/kernels/machine_constants.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "strategy/kernels/fitted_constants.h"

namespace foreshard {

namespace {

// Ceilings: the best measured shape of each generation divided by the model's own tile and wave losses for that shape,
// see docs/cost-model.md. Ring fractions: asymptotes of nccl-tests (V100 134.5 of 150 GB/s, A100 235 of 300, H200 366
// of 450, B200 682 of 900), switch reduction H200 304 and B200 539 GB/s through a port. All-to-alls: NVIDIA AIConfigurator's nccl-tests, 8
// ranks, what 256 MiB more take: A100 210 GB/s, H100 323, B200 592.

// Speed of a deterministic backward of flash attention, relative to the usual one. It adds the gradients of the queries in a fixed order,
// so thread blocks wait for each other. FlashAttention 3 loses up to 37.9 % (arXiv:2601.21824). On Blackwell, cuDNN's kernel has no such
// mode in the versions of the measured rows, and Transformer Engine falls back to FlashAttention 2 (dot_product_attention/utils.py).
constexpr double kFixedOrder = 0.65;

// Flash attention of Hopper's and Blackwell's own kernels: fits to cuDNN 9.19 and 9.22 in NVIDIA/cudnn-frontend
// (benchmark/sdpa_benchmark_training/results, H200, GB200 and GB300), least errors over all lengths, masks and head sizes; sustained: read from
// the errors at 32768 keys. Assumed: Blackwell's forward has blocks of 256 queries; 128 and more filling fit as well. Inferred: in its backward the sums
// of a tile fill the 512 columns of tensor memory at head size 128, so that larger heads need smaller tiles.

// Rows that are no multiples of 16 bytes: EleutherAI/cookbook sizing/results, A100: vocab_v_sweep.out 0.55 and 0.29 of the rate of 51136
// columns, vocab_h_sweep.out 0.67 and 0.28 of that of a depth of 14336. Ada: gemm.csv, RTX 4090, 0.71 (odd rows). V100: ksweep_low 0.70 at
// depths from 242; odd rows take no tensor cores before cuBLAS 11 (NVIDIA's guide on matrix products): a quarter. Hopper and Blackwell have
// no measurement: their own kernels want 16 bytes (bulk copies), the libraries fall back to Ampere's.
constexpr MachineConstants kVolta = {.tensor_cap = 0.76,
                                     .narrow_rows = 0.86,
                                     .odd_rows = 6,
                                     .vector_ceiling = 0.93,
                                     .flash_forward = {0.4, 0.4, 0.4, 0.4},
                                     .flash_backward = {0.35, 0.35, 0.35, kFixedOrder * 0.35},
                                     .memory_efficiency = 0.88,
                                     .nvlink_ring = 0.924,
                                     .nvlink_p2p = 0.85,
                                     .ring_copy = {330e9},
                                     .ll_limit = {39e9},
                                     .channels = 12};
constexpr MachineConstants kAmpere = {.power_coefficient = 0.85,
                                      .flash_watts = 400.0 / 312,
                                      .vector_ceiling = 0.93,
                                      .flash_forward = {0.36, 0.72, 0.72, 0.72},
                                      .flash_backward = {0.30, 0.62, 0.62, kFixedOrder * 0.62},
                                      .memory_efficiency = 0.85,
                                      .nvlink_ring = 0.8065,
                                      .nvlink_p2p = 0.78,
                                      .nvlink_all_to_all = 0.70,
                                      .ring_copy = {576e9},
                                      .ll_limit = {87.7e9},
                                      .channels = 24};
// FlashAttention 1 on Hopper is a fit; its backward against its forward as on A100.
constexpr MachineConstants kHopperKernels = {
    .power_coefficient = 0.955,
    .flash_watts = 700 / 989.4,
    .fp8_share = 0.89,
    .flash_forward = {0, 0.36, 0.737, 0.737},
    .flash_backward = {0, 0.31, 0.627, kFixedOrder * 0.627},
    .flash_blocks = {.own = true, .forward_fill = 303, .backward_fill = 256, .sustained = 0.95},
    .memory_efficiency = 0.89,
    .nvlink_ring = 0.836,
    .nvlink_sharp = 0.676,
    .nvlink_p2p = 0.86,
    .nvlink_all_to_all = 0.72,
    .ring_copy = {918e9},
    .ll_limit = {141e9},
    .channels = 24};
// Kernels written for warps (FlashAttention 1 and 2) have the products of a warp, as fast per SM and clock as Hopper's, while the
// peak is that of Blackwell's own: half of the fraction.
constexpr double kWarpProducts = 0.5;
constexpr MachineConstants kBlackwellKernels = {
    .power_coefficient = 1.08,
    .flash_watts = 1400.0 / 2500,
    .fp8_share = 0.97,
    .codes =
        {.any_layout = true, .blocks = true, .block_products = 0.95, .block_casts = 0.68, .fp4_casts = 0.87, .maxima = 0.57},
    .flash_forward = {0, kWarpProducts * 0.36, 0.754, kWarpProducts * 0.36},
    .flash_backward = {0, kWarpProducts * 0.31, 0.579, kFixedOrder* kWarpProducts * 0.31},
    .flash_blocks =
        {.own = true, .queries = 256, .forward_fill = 405, .backward_fill = 206, .wide_backward = 0.84, .sustained = 0.91},
    .memory_efficiency = 0.85,
    .nvlink_ring = 0.788,
    .nvlink_sharp = 0.60,
    .nvlink_p2p = 0.80,
    .nvlink_all_to_all = 0.66,
    .ring_copy = {1266e9},
    .ll_limit = {282e9},
    .channels = 32};
// Power: L40S and RTX PRO 6000 (0.96 and 1.19 W per TFLOP/s), medians of accuracy/kernel_rates. Their clock falls faster than in proportion:
// memory and leakage take their part first.
constexpr MachineConstants kAda = {.tensor_cap = 1.0,
                                   .power_coefficient = 0.70,
                                   .power_exponent = 1.3,
                                   .clock_alone = true,
                                   .fp4_share = 0.87,
                                   .odd_rows = 1.6,
                                   .flash_forward = {0.45, 0.85, 0.85, 0.85},
                                   .flash_backward = {0.35, 0.65, 0.65, kFixedOrder * 0.65},
                                   .memory_efficiency = 0.90,
                                   .ll_limit = {87.7e9},
                                   .channels = 8};
constexpr MachineConstants kUnknown = {};

constexpr std::array<ProtocolLatency, kProtocols> kLatencies = {{
    {.base = {6.6e-6}, .nvlink = {0.6e-6}, .pcie = {1.0e-6}, .network = {2.7e-6}},
    {.base = {14.0e-6}, .nvlink = {1.9e-6}, .pcie = {2.5e-6}, .network = {4.0e-6}},
    {.base = {8.4e-6}, .nvlink = {3.4e-6}, .pcie = {5.7e-6}, .network = {14.0e-6}},
}};
constexpr std::array<ProtocolLatency, kProtocols> kTreeLatencies = {{
    {.base = {6.8e-6}, .nvlink = {0.6e-6}, .pcie = {1.0e-6}, .network = {5.0e-6}},
    {.base = {14.0e-6}, .nvlink = {1.25e-6}, .pcie = {1.9e-6}, .network = {8.5e-6}},
    {.base = {8.4e-6}, .nvlink = {4.0e-6}, .pcie = {4.0e-6}, .network = {14.0e-6}},
}};

}  // namespace

static MachineConstants with_first_flash(MachineConstants machine, double share) {
  machine.flash_forward[0] = fitted("attention.first_on_hopper") * share;
  machine.flash_backward[0] = machine.flash_forward[0] * (kAmpere.flash_backward[0] / kAmpere.flash_forward[0]);
  return machine;
}

// Asked for with every operator: views compare lengths first.
const MachineConstants& machine_constants(const std::string& architecture) {
  const std::string_view name = architecture;
  static const MachineConstants kHopper = with_first_flash(kHopperKernels, 1),
                                kBlackwell = with_first_flash(kBlackwellKernels, kWarpProducts);
  if (name == "ampere") return kAmpere;
  if (name == "hopper") return kHopper;
  if (name == "blackwell") return kBlackwell;
  if (name == "volta") return kVolta;
  if (name == "ada") return kAda;
  return kUnknown;
}

bool has_own_constants(const std::string& architecture) { return &machine_constants(architecture) != &kUnknown; }

const MachineConstants& machine_constants(const Gpu& gpu) {
  // Recognized by the 16-bit FLOPs per SM and clock: 512 and 1024 on these cards, 8192 on datacenter cards.
  const auto is_warp = [&] {
    const double clocks = gpu.sm_count * gpu.clock_ghz * 1e9;
    return clocks > 0 && peak(gpu, DType::F16).value / clocks < 2048;
  };
  return std::string_view(gpu.architecture) == std::string_view("blackwell") && is_warp() ? kAda
                                                                                          : machine_constants(gpu.architecture);
}

// Share of a peak that the power limit leaves; `sixteen`: the peak, in products of 16 bits that switch as much.
static double power_share(const Gpu& gpu, FlopsPerSecond sixteen) {
  const MachineConstants& machine = machine_constants(gpu);
  const double teraflops = sixteen.value * 1e-12;
  const bool known = gpu.power_watts > 0 && teraflops > 0;
  const double limit = known ? std::pow(gpu.power_watts / teraflops, machine.power_exponent) : 1;
  return std::min(machine.tensor_cap, machine.power_coefficient * limit);
}

double tensor_ceiling(const Gpu& gpu) { return power_share(gpu, peak(gpu, DType::F16)); }
double fp4_ceiling(const Gpu& gpu) { return power_share(gpu, peak(gpu, DType::F4) * 0.25) * machine_constants(gpu).fp4_share; }

bool bound_by_power(const Gpu& gpu) { return tensor_ceiling(gpu) < machine_constants(gpu).tensor_cap; }

double flash_clock(const Gpu& gpu) {
  const MachineConstants& machine = machine_constants(gpu);
  const double teraflops = peak(gpu, DType::F16).value * 1e-12;
  if (machine.flash_watts == 0 || gpu.power_watts <= 0 || teraflops <= 0) return 1;
  return std::min(1.0, std::pow(gpu.power_watts / teraflops / machine.flash_watts, machine.power_exponent));
}

double exponential_rate(const Gpu& gpu) {
  // Blackwell Ultra has twice the rate (NVIDIA, "Making Softmax More Efficient with NVIDIA Blackwell Ultra"). It is recognized by its units of
  // fp64, which have 1/64 of the rate of fp32; on other data center cards they have half.
  const bool tensor_memory = machine_constants(gpu).flash_blocks.queries > 128;
  return tensor_memory && gpu.fp64.value < gpu.vector_fp32.value / 16 ? 2 : 1;
}

double sustained_share(const Gpu& gpu) {
  return machine_constants(gpu).clock_alone || !bound_by_power(gpu) ? 1 : product_constants().sustained;
}

const ProtocolLatency& protocol_latency(Protocol protocol) { return kLatencies[static_cast<std::size_t>(protocol)]; }
const ProtocolLatency& tree_latency(Protocol protocol) { return kTreeLatencies[static_cast<std::size_t>(protocol)]; }

}  // namespace foreshard
