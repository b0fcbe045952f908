// Cases of what prepares the heads of attention, and of other settings of the model families of today.
#include "exec/cuda_checks/case_list.h"

namespace foreshard::gpu {

namespace {

struct HeadFormat {
  DType dtype;
  double tolerance;
  const char* suffix;
  std::int64_t dim;  // of a head: whole packs, or not
};
const HeadFormat kHeadFormats[] = {{DType::F32, kSingle, "", 10},
                                   {DType::BF16, kHalf, "_bf16", 9},
                                   {DType::F32, kSingle, "_packed_fp32", 24},
                                   {DType::BF16, kHalf, "_packed_bf16", 16},
                                   {DType::F16, kHalf, "_packed_fp16", 48}};

void add_head_norms(Cases& all, const HeadFormat& format) {
  const std::int64_t samples = 2, positions = 20, rows = samples * positions, dim = format.dim;
  const struct {
    const char* name;
    QkNorm over;
    std::int64_t heads, kv_heads;
    bool around_one;
  } forms[] = {{"head_norm", QkNorm::PerHead, 3, 2, false},         {"head_norm_around_one", QkNorm::PerHead, 4, 1, true},
               {"head_norm_queries", QkNorm::PerHead, 3, 0, false}, {"head_norm_keys", QkNorm::PerHead, 0, 2, true},
               {"head_norm_all", QkNorm::AllHeads, 6, 3, false},    {"head_norm_unweighted", QkNorm::Unweighted, 3, 1, false}};
  for (const auto& f : forms) {
    const std::int64_t width = (f.heads + f.kv_heads) * dim, values = f.kv_heads * dim;
    Compute what{
        .op = ops::HeadNorm{.over = f.over, .heads = f.heads, .kv_heads = f.kv_heads, .dim = dim, .around_one = f.around_one},
        .shapes = {{{samples, positions, width}}}};
    std::vector<std::int64_t> weights;
    for (const std::int64_t heads : {f.heads, f.kv_heads})
      if (heads > 0 && f.over != QkNorm::Unweighted) weights.push_back(f.over == QkNorm::AllHeads ? heads * dim : dim);
    std::vector<std::int64_t> in = {rows * width}, back = {rows * (width + values), rows * width}, out = {rows * width};
    if (values > 0) in.push_back(rows * values), out.push_back(rows * values);
    for (std::vector<std::int64_t>* sizes : {&in, &back, &out}) sizes->insert(sizes->end(), weights.begin(), weights.end());
    all.add(std::string(f.name) + format.suffix, what, in, {rows * (width + values)}, format.dtype, format.tolerance);
    what.phase = weights.empty() ? Phase::InputGrad : Phase::Backward;
    for (const bool add : {false, true}) {
      what.accumulate = add, what.accumulate_weights = add;
      all.add(f.name + std::string(add ? "_grad_added" : "_grad") + format.suffix, what, back, out, format.dtype,
              format.tolerance);
    }
  }
}

void add_latent_heads(Cases& all, const HeadFormat& format) {
  const std::int64_t rows = 10, heads = 3, plain = format.dim, rotated = format.dim == 9 ? 4 : 2 * format.dim, value = plain;
  const std::int64_t x = rows * heads * (plain + value), shared = rows * rotated, y = rows * heads * (plain + rotated + value);
  Compute what{.op = ops::LatentHeads{.heads = heads, .plain = plain, .rotated = rotated, .value = value},
               .shapes = {{{2, 5, heads * (plain + value)}}}};
  all.add(std::string("latent_heads") + format.suffix, what, {x, shared}, {y}, format.dtype, format.tolerance);
  what.phase = Phase::InputGrad;
  for (const bool add : {false, true}) {
    what.accumulate = add;
    all.add(std::string(add ? "latent_heads_grad_added" : "latent_heads_grad") + format.suffix, what, {y}, {x, shared},
            format.dtype, format.tolerance);
  }
}

// A part of each head turns: its first elements or its last ones.
void add_partial_rope(Cases& all, const HeadFormat& format) {
  const std::int64_t dim = 2 * format.dim, rotated = format.dim % 8 == 0 ? format.dim / 8 * 8 : format.dim / 2 * 2;
  const std::int64_t width = 4 * dim, size = 2 * 6 * width;
  for (const bool last : {false, true})
    for (const bool back : {false, true}) {
      const ops::Rope op{
          .heads = 2, .kv_heads = 1, .dim = dim, .theta = 100, .rotated = rotated, .last = last, .scale = last ? 1 : 1.5};
      const Compute what{
          .op = op, .phase = back ? Phase::InputGrad : Phase::Forward, .shapes = {{{2, 6, width}}}, .accumulate = back && last};
      all.add(std::string(last ? "rope_last" : "rope_first") + (back ? "_grad" : "") + format.suffix, what, {size}, {size},
              format.dtype, format.tolerance);
    }
}

void add_scales_and_norms(Cases& all, const HeadFormat& format) {
  using enum Phase;
  const std::int64_t h = 3 * format.dim, size = 30 * h;
  for (const bool add : {false, true})
    all.add(std::string(add ? "scale_grad_added" : "scale") + format.suffix,
            {.op = ops::Scale{.factor = 0.22}, .phase = add ? InputGrad : Forward, .shapes = {{{2, 15, h}}}, .accumulate = add},
            {size}, {size}, format.dtype, format.tolerance);
  const ops::Norm norm{.kind = NormKind::RmsNorm, .around_one = true};
  all.add(std::string("norm_around_one") + format.suffix, {.op = norm, .shapes = {{{30, h}}}}, {size, h}, {size}, format.dtype,
          format.tolerance);
  all.add(std::string("norm_around_one_grad") + format.suffix, {.op = norm, .phase = Backward, .shapes = {{{30, h}}}},
          {size, size, h}, {size, h}, format.dtype, format.tolerance);
}

// Inputs beyond the limits of the clamped SwiGLU.
void add_clamped(Cases& all) {
  Compute what{.op = activation(Function::ClampedSwiGlu), .shapes = {{{9, 16}}}};
  for (const bool back : {false, true}) {
    what.phase = back ? Phase::InputGrad : Phase::Forward;
    KernelCase& tried =
        all.add(back ? "clamped_beyond_grad" : "clamped_beyond", what,
                back ? std::vector<std::int64_t>{144, 288} : std::vector<std::int64_t>{288}, {back ? 288 : 144});
    tried.reads.back().change([](std::int64_t, double x) { return 8 * x; });
  }
}

// A module that predicts a token further ahead: its tokens, and its loss.
void add_later_tokens(Cases& all) {
  KernelCase& lookup =
      all.add("tokens_ahead", {.op = ops::TokenEmbedding{.vocab = 36, .ahead = 1}, .shapes = {{{20, 36, 36}}}}, {1296}, {720});
  lookup.arguments.samples = 4, lookup.writes.push_back(empty_array(20, DType::I64));
  const ops::CrossEntropy op{.classes = 290, .ahead = 2, .weight = 0.3};
  KernelCase& loss = all.add("loss_ahead", {.op = op, .shapes = {{{12, 300}}}}, {3600}, {3600, 1});
  loss.writes.insert(loss.writes.begin() + 1, empty_array(12, DType::I64)), loss.arguments.samples = 3;
  KernelCase& grad = all.add("loss_ahead_grad", {.op = op, .phase = Phase::InputGrad, .shapes = {{{12, 300}}}}, {3600}, {3600});
  grad.reads.push_back(filled(12, DType::I64, [](std::int64_t i) { return static_cast<double>(i * 23 % 290); }));
}

}  // namespace

void add_head_rows(Cases& all) {
  for (const HeadFormat& format : kHeadFormats) {
    add_head_norms(all, format);
    add_latent_heads(all, format);
    add_partial_rope(all, format);
    add_scales_and_norms(all, format);
  }
  add_clamped(all);
  add_later_tokens(all);
}

}  // namespace foreshard::gpu
