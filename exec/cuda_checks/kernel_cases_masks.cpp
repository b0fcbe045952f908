// Cases of attention with the settings of the model families of today: windows, chunks, sinks, caps, values of a size of their own.
#include "exec/cuda_checks/case_list.h"

namespace foreshard::gpu {

namespace {

struct MaskForm {
  const char* name;
  ops::Attention op;
  std::int64_t samples, queries;
  bool apart, add;
  DType dtype;
  double tolerance;
};

ops::Attention causal(std::int64_t heads, std::int64_t kv, std::int64_t dim) {
  return {.causal = true, .heads = heads, .kv_heads = kv, .dim = dim};
}
template <class Value>
ops::Attention with(ops::Attention op, Value ops::Attention::*setting, Value value) {
  op.*setting = value;
  return op;
}
ops::Attention windowed(const ops::Attention& op, std::int64_t keys) { return with(op, &ops::Attention::window, keys); }
ops::Attention chunked(const ops::Attention& op, std::int64_t keys) { return with(op, &ops::Attention::chunk, keys); }
ops::Attention sinking(const ops::Attention& op) { return with(op, &ops::Attention::sinks, true); }
ops::Attention capped(ops::Attention op, double cap, double scale) {
  op.score_cap = cap, op.scale = scale;
  return op;
}
ops::Attention latent(std::int64_t heads, std::int64_t dim, std::int64_t value_dim) {
  return with(causal(heads, heads, dim), &ops::Attention::value_dim, value_dim);
}
ops::Attention cut(ops::Attention op, int ranks, int chunks) {
  op.split = {.ranks = ranks, .chunks = chunks};
  return op;
}
ops::Attention with_dropout(ops::Attention op) {
  op.p = 0.2, op.site = 4;
  return op;
}

// The forward, and the backward of what the host has made.
void add_form(Cases& all, const MaskForm& f) {
  const std::int64_t keys = f.queries * f.op.split.parts(), kv_width = f.op.kv_heads * (f.op.dim + f.op.values());
  const std::int64_t q = f.samples * f.queries * (f.op.heads * f.op.dim + (f.apart ? 0 : kv_width));
  const std::int64_t context = f.samples * f.queries * f.op.heads * f.op.values(), lse = f.samples * f.op.heads * f.queries;
  Compute what{.op = f.op,
               .shapes = {{{f.samples, f.queries, f.op.heads, f.op.dim}}, {{f.samples, keys, f.op.kv_heads, f.op.dim}}}};
  std::vector<std::int64_t> in = {q};
  if (f.apart) in.push_back(f.samples * keys * kv_width);
  if (f.op.sinks) in.push_back(f.op.heads);
  const std::string name = std::string("mask_") + f.name;
  KernelCase& forward = all.add(name, what, in, {context}, f.dtype, f.tolerance);
  forward.writes.push_back(empty_array(lse, DType::F32));
  forward.arguments.cp = f.op.split.ranks, forward.arguments.cp_rank = f.op.split.ranks - 1;
  const OpArguments arguments = forward.arguments;
  const std::vector<StoredArray> from = forward.reads, made = made_on_host(what, from, forward.writes, arguments);
  what.phase = f.op.sinks ? Phase::Backward : Phase::InputGrad;
  what.accumulate = f.add, what.accumulate_weights = f.add;
  KernelCase& back = all.add(name + "_grad", what, {context}, in, f.dtype, f.tolerance);
  const auto rows = from.begin() + (f.apart ? 2 : 1);
  back.reads.insert(back.reads.end(), from.begin(), rows);
  back.reads.insert(back.reads.end(), made.begin(), made.end());
  back.reads.insert(back.reads.end(), rows, from.end());
  back.arguments = arguments;
}

}  // namespace

void add_masks(Cases& all) {
  const auto single = [](const char* name, const ops::Attention& op, std::int64_t queries, bool apart, bool add) {
    return MaskForm{name, op, 2, queries, apart, add, DType::F32, kSingle};
  };
  const auto half = [](const char* name, const ops::Attention& op, std::int64_t samples, std::int64_t queries, bool apart,
                       bool add) { return MaskForm{name, op, samples, queries, apart, add, DType::BF16, kFlash}; };
  const MaskForm forms[] = {single("plain_window", windowed(causal(4, 2, 10), 7), 37, false, false),
                            single("plain_window_dropped", with_dropout(windowed(causal(2, 2, 12), 9)), 20, false, true),
                            single("plain_chunk", chunked(causal(2, 1, 10), 11), 37, false, true),
                            single("plain_sinks", sinking(windowed(causal(3, 1, 8), 6)), 21, false, false),
                            single("plain_sinks_added", sinking(causal(2, 2, 8)), 40, true, true),
                            single("plain_cap", capped(causal(2, 1, 10), 0.5, 0.7), 34, false, false),
                            single("plain_values", latent(2, 12, 7), 35, true, false),
                            single("plain_values_joined", latent(2, 6, 40), 12, false, true),
                            single("plain_zigzag_window", windowed(cut(causal(2, 1, 10), 2, 2), 9), 14, true, false),
                            half("window64", windowed(causal(2, 1, 64), 20), 2, 140, false, false),
                            half("window64_wide", windowed(causal(1, 1, 64), 75), 1, 140, false, true),
                            half("window96", windowed(causal(2, 2, 96), 30), 1, 70, false, false),
                            half("scale128", capped(causal(1, 1, 128), 0, 0.1), 2, 33, false, false),
                            half("chunk64", chunked(causal(2, 2, 64), 50), 1, 140, false, false),
                            half("chunk128", chunked(causal(2, 1, 128), 40), 1, 90, false, true),
                            half("sinks64", sinking(windowed(causal(2, 1, 64), 32)), 2, 80, false, false),
                            half("cap64", capped(causal(2, 1, 64), 2, 0.2), 1, 70, false, true),
                            half("cap128", capped(windowed(causal(1, 1, 128), 40), 1.5, 0.1), 1, 90, false, false),
                            half("values192", latent(2, 192, 128), 2, 66, true, false),
                            half("values192_added", latent(1, 192, 128), 1, 70, true, true),
                            half("cap256", capped(windowed(causal(2, 1, 256), 30), 2, 0.05), 1, 70, false, false),
                            half("window256", windowed(causal(1, 1, 256), 20), 2, 40, false, true),
                            half("zigzag_window64", windowed(cut(causal(2, 1, 64), 2, 2), 50), 1, 72, true, false)};
  for (const MaskForm& form : forms) add_form(all, form);
}

}  // namespace foreshard::gpu
