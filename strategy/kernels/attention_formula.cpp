#include "strategy/kernels/attention_formula.h"

#include <algorithm>
#include <cmath>

#include "strategy/kernels/machine_constants.h"
#include "strategy/kernels/product_formula.h"

namespace foreshard {

namespace {

constexpr double kSoftmax =
    32;  // a score's exponential takes as long as so many elements of a head, of FlashAttention 2 on an A100
constexpr double kProducts = 0.72 * 2048;  // FLOPs per SM and clock of its products
constexpr double kWarpQueries = 128;       // queries of a block of kernels written for the products of a warp
constexpr double kWarpFill = 192;          // keys that filling such a block costs

// Keys that a block of queries works on: the mean over the blocks, in whole tiles, and the most.
struct SeenKeys {
  double mean = 0, most = 0;
};
SeenKeys keys_seen(const AttentionWork& work, double tile) {
  const auto keys = static_cast<double>(work.keys), chunk = static_cast<double>(work.chunk),
             window = static_cast<double>(work.window);
  if (work.chunk > 0 && chunk < keys) return {0.5 * (chunk + std::min(tile, chunk)), chunk};
  const double causal = 0.5 * (keys + std::min(keys, tile));
  // With a window of w keys the first queries see fewer, so there are s w - w (w - 1) / 2 pairs; a block of queries needs the keys of a
  // window and of its own tile.
  if (work.window > 0 && window < keys)
    return {std::min(causal, window - window * (window - 1) / (2 * keys) + tile), std::min(keys, window + tile)};
  return {work.causal ? causal : keys, keys};
}

// Elements of a head whose products take as long as the exponential of a score. Own kernels hide most of it; of kernels of a warp it is more
// where the products are faster. FlashAttention 1 does not hide one behind the other.
double softmax_elements(const Gpu& gpu, const MachineConstants& machine, FlashKernel flash, bool own) {
  if (own) return kSoftmax / exponential_rate(gpu);
  const double clocks = gpu.sm_count * gpu.clock_ghz * 1e9, share = machine.flash_forward[static_cast<std::size_t>(flash)];
  if (flash == FlashKernel::One || clocks <= 0 || share <= 0) return kSoftmax;
  return kSoftmax * share * peak(gpu, DType::F16).value / clocks / kProducts;
}

}  // namespace

AttentionWork attention_work(const Compute& compute, const ops::Attention& op) {
  const auto& query = compute.shapes[0].dims;
  const auto& key = compute.shapes[1].dims;
  AttentionWork work = {
      .batch = query[0], .queries = query[1], .keys = key[1], .heads = query[2], .kv_heads = key[2], .dim = query[3]};
  work.values = op.value_dim > 0 ? op.value_dim : work.dim;
  work.causal = op.causal, work.window = op.window, work.chunk = op.chunk, work.type = compute.shapes[0].dtype;
  work.backward = compute.phase == Phase::InputGrad || compute.phase == Phase::Backward;
  work.pairs = compute.flops.value / ((work.backward ? 4.0 : 2.0) * static_cast<double>(work.dim + work.values));
  return work;
}

// Deterministic is an own kernel where its forward is the newest's.
bool is_own_kernel(const Gpu& gpu, FlashKernel flash) {
  const MachineConstants& machine = machine_constants(gpu);
  const bool newest = flash == FlashKernel::Newest ||
                      (flash == FlashKernel::Deterministic && machine.flash_forward[2] == machine.flash_forward[3]);
  return machine.flash_blocks.own && newest;
}

Seconds attention_time(const Gpu& gpu, const AttentionWork& work, FlashKernel flash, bool is_short) {
  const MachineConstants& machine = machine_constants(gpu);
  const FlashBlocks& blocks_of = machine.flash_blocks;
  const bool own = is_own_kernel(gpu, flash);
  const auto queries = static_cast<double>(work.queries), keys = static_cast<double>(work.keys);
  const double maps = static_cast<double>(work.batch * work.heads);
  // Elements of the products of a score: q k and p v; the backward makes q k again, and the gradients of p, v, q and k.
  const auto dim = static_cast<double>(work.dim), values = static_cast<double>(work.values);
  const double elements = work.backward ? 3 * dim + 2 * values : dim + values, products = work.backward ? 5 : 2;
  const double size = elements / products;
  const double tile = own && !work.backward ? blocks_of.queries : kWarpQueries;
  const SeenKeys seen = keys_seen(work, tile);
  const double pairs = (work.pairs > 0 ? work.pairs : maps * queries * keys) * seen.mean / keys;
  // With head sizes below 128 the products of a score are shorter, while each score still needs its exponential.
  const double softmax = softmax_elements(gpu, machine, flash, own), usual = own ? kSoftmax : softmax;
  double width = size / (size + softmax) * ((128 + usual) / 128);
  if (!own) width = std::min(1.0, width);
  if (own && work.backward && size > 128) width *= blocks_of.wide_backward;
  const double count = maps * std::ceil(queries / tile);
  const double filling =
      own ? count * tile * (work.backward ? blocks_of.backward_fill : blocks_of.forward_fill) * 128 * products
          : pairs * elements / width * kWarpFill / seen.most;
  const double sms = gpu.sm_count;
  const double waves = count < sms ? count / sms : count / sms / std::ceil(count / sms);
  const double full = std::max(waves, count < sms ? 0.0 : 0.8);  // blocks of different length fill the last wave
  const double kernel = (work.backward ? machine.flash_backward : machine.flash_forward)[static_cast<std::size_t>(flash)];
  // FlashAttention 1 leaves the tensor cores idle, and products of a warp leave idle those that read tensor memory.
  const bool idle = flash == FlashKernel::One || (!own && blocks_of.queries > kWarpQueries);
  const double clock = idle ? 1 : flash_clock(gpu);
  // While blocks are filled little power is drawn.
  const double share = own && !is_short ? blocks_of.sustained : 1;
  const double multiplied = pairs * elements / width / share + filling;
  return Flops{2 * multiplied} / FlopsPerSecond{peak(gpu, work.type).value * kernel * full * clock};
}

static Seconds streamed(const Gpu& gpu, double bytes) {
  return {bytes / (gpu.memory_bandwidth.value * machine_constants(gpu).memory_efficiency)};
}

Seconds attention_passes(const Gpu& gpu, const AttentionWork& work, FlashKernel flash) {
  if (!work.backward || !is_own_kernel(gpu, flash)) return {};
  const double sums = static_cast<double>(work.batch * work.queries * work.heads * work.dim);
  return 2 * gpu.launch_overhead + streamed(gpu, (4.0 + 4.0) * sums);  // cleared, read
}

Seconds attention_formula(const Gpu& gpu, const AttentionWork& work) {
  const auto rows = static_cast<double>(work.batch * (work.queries * work.heads + work.keys * work.kv_heads));
  // Reads queries, keys, values, and writes the context; the backward reads these and their gradients' like.
  const double bytes =
      rows * static_cast<double>((work.dim + work.values) * size_of(work.type).value) * (work.backward ? 2 : 1);
  return overlapped(attention_time(gpu, work, FlashKernel::Newest, true), streamed(gpu, bytes));
}

}  // namespace foreshard
