// Cases in which kernels use packs: rows of whole packs of 16 bytes in every type that supports them, and arrays with some elements after
// the last pack.
#include "exec/cuda_checks/case_list.h"

namespace foreshard::gpu {

namespace {

struct Format {
  DType dtype;
  double tolerance;
  std::string suffix() const { return std::string("_packed_") + name_of(dtype); }
};
const Format kFormats[] = {{DType::F32, kSingle}, {DType::BF16, kHalf}, {DType::F16, kHalf}};

void add_activations(Cases& all, const Format& format) {
  const std::int64_t rows = 5, columns = 48, size = rows * columns;
  const DType dtype = format.dtype;
  const double tolerance = format.tolerance;
  const std::string in = format.suffix();
  for (const Function function : kFunctions) {
    const std::int64_t wide = is_gated(function) ? 2 * size : size;
    const std::string kind = word(function);
    const Compute what{.op = activation(function), .shapes = {{{rows, columns}}}};
    Compute back = what;
    back.phase = Phase::InputGrad;
    all.add(kind + in, what, {wide}, {size}, dtype, tolerance);
    all.add(kind + in + "_grad", back, {size, wide}, {wide}, dtype, tolerance);
    back.accumulate = true;
    all.add(kind + in + "_grad_added", back, {size, wide}, {wide}, dtype, tolerance);
  }
  all.add("add_bias" + in, {.op = ops::Add{}, .shapes = {{{1, rows, columns}}}}, {size, size, columns}, {size}, dtype,
          tolerance);
  all.add("add_grad" + in, {.op = ops::Add{}, .phase = Phase::InputGrad, .shapes = {{{1, rows, columns}}}, .accumulate = true},
          {size}, {size}, dtype, tolerance);
}

// Rows for one warp, two warps and eight warps, with blocks that are not full.
void add_norms(Cases& all, const Format& format) {
  using enum NormKind;
  const auto norm = [](NormKind kind, Phase phase, std::int64_t rows, std::int64_t h, bool add) {
    return Compute{.op = ops::Norm{.kind = kind, .eps = 1e-5},
                   .phase = phase,
                   .shapes = {{{rows, h}}},
                   .accumulate = add,
                   .accumulate_weights = add};
  };
  const std::string in = format.suffix();
  const auto add = [&](const std::string& name, Compute what, const std::vector<std::int64_t>& reads,
                       const std::vector<std::int64_t>& writes) {
    all.add(name + in, std::move(what), reads, writes, format.dtype, format.tolerance);
  };
  for (const std::int64_t h : {48, 2064, 8200 / (format.dtype == DType::F32 ? 2 : 1) + 4}) {
    if (h % (format.dtype == DType::F32 ? 4 : 8) != 0) continue;
    add("layernorm_" + std::to_string(h), norm(LayerNorm, Phase::Forward, 3, h, false), {3 * h, h, h}, {3 * h});
  }
  add("rmsnorm", norm(RmsNorm, Phase::Forward, 19, 56, false), {19 * 56, 56}, {19 * 56});
  using enum Phase;
  add("layernorm_grad", norm(LayerNorm, Backward, 30, 48, false), {1440, 1440, 48, 48}, {1440, 48, 48});
  add("layernorm_grad_wide", norm(LayerNorm, Backward, 9, 1032, false), {9288, 9288, 1032, 1032}, {9288, 1032, 1032});
  add("layernorm_grad_added", norm(LayerNorm, Backward, 9, 520, true), {4680, 4680, 520, 520}, {4680, 520, 520});
  add("layernorm_grad_weights", norm(LayerNorm, Backward, 20, 40, true), {800, 800, 40, 40}, {40, 40});
  add("rmsnorm_grad", norm(RmsNorm, Backward, 30, 528, false), {15840, 15840, 528}, {15840, 528});
}

void add_sums_and_softmax(Cases& all, const Format& format) {
  const auto add = [&](const std::string& name, Compute what, const std::vector<std::int64_t>& reads,
                       const std::vector<std::int64_t>& writes) {
    all.add(name + format.suffix(), std::move(what), reads, writes, format.dtype, format.tolerance);
  };
  add("add_bias_grad", {.op = ops::Add{}, .phase = Phase::WeightGrad, .shapes = {{{50, 3, 40}}}, .accumulate = true}, {6000},
      {40});
  add("add_bias_grad_wide", {.op = ops::Add{}, .phase = Phase::WeightGrad, .shapes = {{{1, 9, 264}}}}, {2376}, {264});
  const auto softmax = [](Phase phase, std::int64_t rows, std::int64_t columns, bool causal, bool added) {
    return Compute{
        .op = ops::Softmax{.causal = causal, .scale = 0.3}, .phase = phase, .shapes = {{{rows, columns}}}, .accumulate = added};
  };
  using enum Phase;
  add("softmax_causal", softmax(Forward, 80, 40, true, false), {3200}, {3200});
  add("softmax_all", softmax(Forward, 3, 2064, false, false), {6192}, {6192});
  add("softmax_grad", softmax(InputGrad, 3, 2064, false, false), {6192, 6192}, {6192});
  add("softmax_grad_added", softmax(InputGrad, 19, 40, false, true), {760, 760}, {760});
}

void add_ends(Cases& all, const Format& format) {
  using enum Phase;
  const std::string in = format.suffix();
  const auto tokens = [](std::int64_t i) { return static_cast<double>((i * i + 3 * i) % 19); };
  KernelCase& lookup = all.add("tokens" + in, {.op = ops::TokenEmbedding{.vocab = 18}, .shapes = {{{20, 40, 9}}}}, {360}, {800},
                               format.dtype, kExact);
  lookup.tolerance = format.tolerance;
  lookup.arguments.samples = 4, lookup.arguments.tp = 2, lookup.arguments.tp_rank = 1;
  lookup.writes.push_back(empty_array(20, DType::I64));
  for (const auto& [rows, h] : {std::pair<std::int64_t, std::int64_t>{600, 16}, {10, 2056}}) {
    KernelCase& grad = all.add(
        "tokens_grad_" + std::to_string(h) + in,
        {.op = ops::TokenEmbedding{.vocab = 24}, .phase = WeightGrad, .shapes = {{{rows, h, 12}}}, .accumulate = h > 16},
        {rows * h}, {12 * h}, format.dtype, format.tolerance);
    grad.reads.push_back(filled(rows, DType::I64, tokens));
  }
  const std::int64_t size = 3 * 6 * 16;
  Compute both{.op = ops::PositionEmbedding{.positions = true, .types = true, .sequence_parallel = true},
               .shapes = {{{3, 6, 16}}}};
  KernelCase& rows = all.add("both" + in, both, {size, 24 * 16, 2 * 16}, {size}, format.dtype, format.tolerance);
  both.phase = WeightGrad;
  KernelCase& grad = all.add("both_grad" + in, both, {size}, {24 * 16, 2 * 16}, format.dtype, format.tolerance);
  KernelCase& grad_fp32 = all.add("both_grad_fp32" + in, both, {size}, {}, format.dtype, kSingle);
  grad_fp32.writes = {empty_array(24 * 16, DType::F32), empty_array(2 * 16, DType::F32)};
  for (KernelCase* tried : {&rows, &grad, &grad_fp32}) tried->arguments.tp = 4, tried->arguments.tp_rank = 2;
}

void add_losses(Cases& all, const Format& format) {
  using enum Phase;
  const std::string in = format.suffix();
  using Piece = ops::CrossEntropy::Piece;
  const auto loss = [](Phase phase, const ops::CrossEntropy& op, std::int64_t rows, std::int64_t columns, bool add = false) {
    return Compute{.op = op, .phase = phase, .shapes = {{{rows, columns}}}, .accumulate = add};
  };
  const auto targets = [](std::int64_t i) { return static_cast<double>(i * 23 % 290); };
  for (const std::int64_t columns : {304, 8200}) {  // with 256 and with 1024 threads per row
    const std::int64_t rows = columns == 304 ? 12 : 4;
    KernelCase& whole = all.add("loss_" + std::to_string(columns) + in, loss(Forward, {.classes = columns - 14}, rows, columns),
                                {rows * columns}, {rows * columns, 1}, format.dtype, format.tolerance);
    if (columns == 8200 && format.dtype == DType::F32) whole.tolerance = 2 * kSingle;  // sums of 8200 exponentials in fp32
    whole.writes.insert(whole.writes.begin() + 1, empty_array(rows, DType::I64));
    whole.arguments.samples = rows / 2;
    whole.reads[0].change([](std::int64_t, double x) { return 4 * x; });
  }
  for (const bool add : {false, true}) {
    KernelCase& grad = all.add(std::string(add ? "loss_grad_added" : "loss_grad") + in,
                               loss(InputGrad, {.classes = 290}, 12, 304, add), {3648}, {3648}, format.dtype, format.tolerance);
    grad.reads.push_back(filled(12, DType::I64, targets));
    grad.arguments.loss_scale = 64;
  }
  KernelCase& maximum = all.add("loss_max" + in, loss(Forward, {.piece = Piece::Max, .classes = 290}, 12, 152), {1824}, {12},
                                format.dtype, format.tolerance);
  // If a kernel began a row one element late, it would find another maximum.
  maximum.reads[0].change([](std::int64_t i, double x) { return i % 152 == 0 ? 50 : x; });
  maximum.arguments.tp_rank = 1;
  KernelCase& exponentials = all.add("loss_exp" + in, loss(Forward, {.piece = Piece::Exp, .classes = 290}, 12, 152), {1824},
                                     {1824}, format.dtype, format.tolerance);
  exponentials.reads.push_back(filled(12, DType::F32, [](std::int64_t) { return 1.5; }));
  exponentials.arguments.tp_rank = 1, exponentials.arguments.samples = 3;
  exponentials.writes.push_back(empty_array(24, DType::F32)), exponentials.writes.push_back(empty_array(12, DType::I64));
  all.add("grad_norm" + in, {.op = ops::GradNorm{.divide = 2}, .phase = Phase::Update}, {9003, 40}, {}, format.dtype, kSingle)
      .writes = {empty_array(1, DType::F32)};
}

void add_rope(Cases& all, const Format& format) {
  Compute what{.op = ops::Rope{.heads = 3, .kv_heads = 1, .dim = 16, .theta = 10000}, .shapes = {{{2, 3, 96}}}};
  all.add("rope" + format.suffix(), what, {576}, {576}, format.dtype, format.tolerance);
  what.phase = Phase::InputGrad;
  what.accumulate = true;
  all.add("rope_grad" + format.suffix(), what, {576}, {576}, format.dtype, format.tolerance);
}

void add_dropout(Cases& all, const Format& format) {
  const auto dropout = [](Phase phase, Shape shape, bool add) {
    return Compute{.op = ops::Dropout{.p = 0.25, .site = 3, .sequence_parallel = true},
                   .phase = phase,
                   .shapes = {std::move(shape)},
                   .accumulate = add};
  };
  const std::string in = format.suffix();
  KernelCase& rows = all.add("dropout_rows" + in, dropout(Phase::Forward, {{3, 5, 24}}, false), {360, 360, 24}, {360},
                             format.dtype, format.tolerance);
  rows.arguments.tp = 4, rows.arguments.tp_rank = 2;
  rows.writes.push_back(empty_array(360, DType::U8));
  KernelCase& maps = all.add("dropout_maps" + in, dropout(Phase::Forward, {{2, 2, 40, 56}}, false), {8960}, {8960},
                             format.dtype, format.tolerance);
  maps.arguments.tp = 2, maps.arguments.tp_rank = 1;
  maps.writes.push_back(empty_array(8960, DType::U8));
  const auto mask = [](std::int64_t i) { return static_cast<double>(i * 7 % 5 != 0); };
  KernelCase& back = all.add("dropout_grad" + in, dropout(Phase::Backward, {{3, 30, 32}}, false), {2880}, {2880, 32},
                             format.dtype, format.tolerance);
  back.reads.push_back(filled(2880, DType::U8, mask));
  back.reads.push_back(random_array(32, 9, format.dtype));
  KernelCase& plain = all.add("dropout_input_grad" + in, dropout(Phase::InputGrad, {{3, 5, 21}}, true), {315}, {315},
                              format.dtype, format.tolerance);
  plain.reads.push_back(filled(315, DType::U8, mask));
}

// Gradients, values and states in the formats of a training; arrays of a slice begin at any element.
void add_updates(Cases& all, const Format& format) {
  const std::int64_t size = 1203;
  const bool master = format.dtype != DType::F32;
  for (const bool adam : {true, false})
    for (const DType gradient : {format.dtype, DType::F32}) {
      if (gradient == DType::F32 && !master) continue;
      KernelCase& tried =
          all.add((adam ? "adam" : "sgd") + format.suffix() + "_of_" + name_of(gradient),
                  {.op = adam ? Operation(ops::Adam{}) : ops::Sgd{}, .phase = Phase::Update, .shapes = {{{size}}}}, {}, {},
                  DType::F32, kHalf);
      tried.reads = {random_array(size, 1, gradient)};
      const int states = (adam ? 2 : 1) + (master ? 1 : 0);
      for (int i = 0; i <= states; ++i) {
        const bool value = i == states;
        const StoredArray array =
            random_magnitudes(size, 100 + static_cast<std::uint64_t>(i), value ? format.dtype : DType::F32);
        tried.reads.push_back(array);
        tried.writes.push_back(array);
      }
      if (master) tried.reads.pop_back();  // the master copy is read instead of the value
      tried.arguments.step = 3;
      tried.arguments.optimizer = {.weight_decay = 0.1, .momentum = 0.9};
    }
}

// Factors in 16 bits and gradients in fp32, which the product accumulates itself.
void add_fp32_gradients(Cases& all) {
  for (const DType half : {DType::BF16, DType::F16}) {
    KernelCase& product =
        all.add(std::string("linear_weight_grad_fp32_added_") + name_of(half),
                {.op = ops::MatMul{}, .phase = Phase::WeightGrad, .shapes = {{{1, 10, 16, 8}}}, .accumulate = true}, {160, 80},
                {}, half);
    product.writes = {random_array(128, 7, DType::F32), random_array(16, 8, DType::F32)};
  }
}

void add_casts(Cases& all) {
  const auto cast = [&](DType from, DType to) {
    all.add(std::string("cast_") + name_of(from) + "_" + name_of(to), {.op = ops::Cast{}, .phase = Phase::Other}, {1133}, {},
            from, kSingle)
        .writes = {empty_array(1133, to)};
  };
  for (const DType half : {DType::BF16, DType::F16}) cast(DType::F32, half), cast(half, DType::F32);
}

}  // namespace

void add_packed(Cases& all) {
  for (const Format& format : kFormats) {
    add_activations(all, format);
    add_norms(all, format);
    add_sums_and_softmax(all, format);
    add_ends(all, format);
    add_losses(all, format);
    add_rope(all, format);
    add_dropout(all, format);
    add_updates(all, format);
  }
  add_fp32_gradients(all);
  add_casts(all);
}

}  // namespace foreshard::gpu
