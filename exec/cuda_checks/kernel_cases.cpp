#include <memory>
#include <utility>

#include "exec/cuda_checks/case_list.h"

namespace foreshard::gpu {

namespace {

void add_rows(Cases& all) {
  using enum NormKind;
  const auto norm = [](NormKind kind, Phase phase, std::int64_t rows, std::int64_t h, bool add, bool add_weights) {
    return Compute{.op = ops::Norm{.kind = kind, .eps = 1e-5},
                   .phase = phase,
                   .shapes = {{{rows, h}}},
                   .accumulate = add,
                   .accumulate_weights = add_weights};
  };
  using enum Phase;
  all.add("layernorm", norm(LayerNorm, Forward, 5, 70, false, false), {350, 70, 70}, {350});
  all.add("layernorm_wide", norm(LayerNorm, Forward, 3, 520, false, false), {1560, 520, 520}, {1560});
  all.add("layernorm_bf16", norm(LayerNorm, Forward, 9, 64, false, false), {576, 64, 64}, {576}, DType::BF16, kHalf);
  all.add("layernorm_fp16", norm(LayerNorm, Forward, 9, 64, false, false), {576, 64, 64}, {576}, DType::F16, kHalf);
  all.add("rmsnorm", norm(RmsNorm, Forward, 5, 70, false, false), {350, 70}, {350});
  all.add("layernorm_grad", norm(LayerNorm, Backward, 200, 40, false, false), {8000, 8000, 40, 40}, {8000, 40, 40});
  all.add("layernorm_grad_added", norm(LayerNorm, Backward, 20, 33, true, true), {660, 660, 33, 33}, {660, 33, 33});
  all.add("layernorm_grad_weights", norm(LayerNorm, Backward, 20, 33, false, true), {660, 660, 33, 33}, {33, 33});
  all.add("layernorm_input_grad", norm(LayerNorm, InputGrad, 20, 33, false, false), {660, 660, 33, 33}, {660});
  all.add("rmsnorm_input_grad_added", norm(RmsNorm, InputGrad, 70, 48, true, false), {3360, 3360, 48}, {3360});
  all.add("rmsnorm_grad", norm(RmsNorm, Backward, 70, 48, false, false), {3360, 3360, 48}, {3360, 48});
  all.add("rmsnorm_grad_bf16", norm(RmsNorm, Backward, 70, 48, false, false), {3360, 3360, 48}, {3360, 48}, DType::BF16, kHalf);
  const auto softmax = [](Phase phase, bool causal, bool add) {
    return Compute{
        .op = ops::Softmax{.causal = causal, .scale = 0.3}, .phase = phase, .shapes = {{{2 * 37, 37}}}, .accumulate = add};
  };
  all.add("softmax_causal", softmax(Forward, true, false), {2738}, {2738});
  all.add("softmax_all", softmax(Forward, false, false), {2738}, {2738});
  all.add("softmax_grad", softmax(InputGrad, true, true), {2738, 2738}, {2738});
}

void add_elements(Cases& all) {
  using enum Phase;
  for (const auto function : kFunctions) {
    const bool gated = is_gated(function);
    const std::string kind = word(function);
    const Compute what{.op = activation(function), .shapes = {{{7, 45}}}};
    Compute back = what;
    back.phase = InputGrad;
    all.add(kind, what, {gated ? 630 : 315}, {315});
    all.add(kind + "_grad", back, {315, gated ? 630 : 315}, {gated ? 630 : 315});
    back.accumulate = true;
    all.add(kind + "_grad_added", back, {315, gated ? 630 : 315}, {gated ? 630 : 315}, DType::BF16, kHalf);
  }
  all.add("add_bias", {.op = ops::Add{}, .shapes = {{{2, 5, 31}}}}, {310, 310, 31}, {310});
  all.add("add_three", {.op = ops::Add{}, .shapes = {{{2, 5, 32}}}}, {320, 320, 320}, {320}, DType::BF16, kHalf);
  all.add("add_grad", {.op = ops::Add{}, .phase = InputGrad, .shapes = {{{2, 5, 31}}}, .accumulate = true}, {310}, {310});
  all.add("add_bias_grad", {.op = ops::Add{}, .phase = WeightGrad, .shapes = {{{50, 3, 31}}}, .accumulate = true}, {4650},
          {31});
  all.add("rope", {.op = ops::Rope{.heads = 3, .kv_heads = 1, .dim = 8, .theta = 10000}, .shapes = {{{2, 6, 40}}}}, {480},
          {480});
  all.add("rope_grad",
          {.op = ops::Rope{.heads = 3, .kv_heads = 1, .dim = 8, .theta = 10000},
           .phase = InputGrad,
           .shapes = {{{2, 6, 40}}},
           .accumulate = true},
          {480}, {480});
  KernelCase& cast = all.add("cast", {.op = ops::Cast{}, .phase = Other}, {133}, {133});
  cast.writes = {empty_array(133, DType::BF16)};
  all.add("zero", {.op = ops::Zero{}, .phase = Other}, {}, {37, 5}, DType::BF16, kExact);
  const auto dropout = [](Phase phase, Shape shape, bool sequence_parallel = false) {
    return Compute{.op = ops::Dropout{.p = 0.25, .site = 3, .sequence_parallel = sequence_parallel},
                   .phase = phase,
                   .shapes = {std::move(shape)}};
  };
  KernelCase& rows = all.add("dropout_rows", dropout(Forward, {{3, 5, 22}}, true), {330, 330, 22}, {330});
  rows.arguments.tp = 4, rows.arguments.tp_rank = 2;
  rows.writes.push_back(empty_array(330, DType::U8));
  KernelCase& maps = all.add("dropout_maps", dropout(Forward, {{2, 3, 5, 7}}), {210}, {210});
  maps.arguments.tp = 2, maps.arguments.tp_rank = 1;
  maps.writes.push_back(empty_array(210, DType::U8));
  const auto mask = [](std::int64_t i) { return static_cast<double>(i * 7 % 5 != 0); };
  KernelCase& back = all.add("dropout_grad", dropout(Backward, {{3, 30, 22}}), {1980}, {1980, 22});
  back.reads.push_back(filled(1980, DType::U8, mask));
  back.reads.push_back(random_array(22, 9, DType::F32));
  KernelCase& plain = all.add("dropout_input_grad", dropout(InputGrad, {{3, 5, 22}}), {330}, {330});
  plain.reads.push_back(filled(330, DType::U8, mask));
}

void add_ends(Cases& all) {
  using enum Phase;
  const auto tokens = [](std::int64_t i) { return static_cast<double>((i * i + 3 * i) % 19); };
  KernelCase& lookup = all.add("tokens", {.op = ops::TokenEmbedding{.vocab = 18}, .shapes = {{{20, 36, 9}}}}, {324}, {720});
  lookup.arguments.samples = 4, lookup.arguments.tp = 2, lookup.arguments.tp_rank = 1;
  lookup.writes.push_back(empty_array(20, DType::I64));
  for (const bool add : {false, true}) {
    KernelCase& grad =
        all.add(add ? "tokens_grad_added" : "tokens_grad",
                {.op = ops::TokenEmbedding{.vocab = 24}, .phase = WeightGrad, .shapes = {{{600, 5, 12}}}, .accumulate = add},
                {3000}, {60});
    grad.reads.push_back(filled(600, DType::I64, tokens));
  }
  for (const auto& [name, positions, types] :
       {std::tuple{std::string("positions"), true, false}, {"types", false, true}, {"both", true, true}}) {
    std::vector<std::int64_t> tables = {positions ? 24 * 10 : 2 * 10};
    if (positions && types) tables.push_back(20);
    std::vector<std::int64_t> in = tables;
    in.insert(in.begin(), 3 * 6 * 10);
    const Compute what{.op = ops::PositionEmbedding{.positions = positions, .types = types, .sequence_parallel = true},
                       .shapes = {{{3, 6, 10}}}};
    Compute grad = what;
    grad.phase = WeightGrad;
    for (KernelCase* tried : {&all.add(name, what, in, {180}), &all.add(name + "_grad", grad, {180}, tables)})
      tried->arguments.tp = 4, tried->arguments.tp_rank = 2;
  }
  KernelCase& sample = all.add("pictures", {.op = ops::Sample{}, .shapes = {{{3, 2, 10, 15}}}}, {}, {900});
  sample.arguments.samples = 3;
}

void add_losses(Cases& all) {
  using enum Phase;
  using Piece = ops::CrossEntropy::Piece;
  const auto loss = [](Phase phase, const ops::CrossEntropy& op, std::int64_t rows, std::int64_t columns, bool add = false) {
    return Compute{.op = op, .phase = phase, .shapes = {{{rows, columns}}}, .accumulate = add};
  };
  const auto targets = [](std::int64_t i) { return static_cast<double>(i * 23 % 290); };
  KernelCase& whole = all.add("loss", loss(Forward, {.classes = 290}, 12, 300), {3600}, {3600, 1});
  whole.writes.insert(whole.writes.begin() + 1, empty_array(12, DType::I64));
  whole.arguments.samples = 3;
  KernelCase& label =
      all.add("loss_label", loss(Forward, {.target = ops::CrossEntropy::Target::Label, .classes = 5}, 3, 5), {15}, {15, 1});
  label.writes.insert(label.writes.begin() + 1, empty_array(3, DType::I64));
  label.arguments.samples = 3;
  KernelCase& grad = all.add("loss_grad", loss(InputGrad, {.classes = 290}, 12, 300, true), {3600}, {3600});
  grad.reads.push_back(filled(12, DType::I64, targets));
  grad.arguments.loss_scale = 64;
  KernelCase& maximum = all.add("loss_max", loss(Forward, {.piece = Piece::Max, .classes = 290}, 12, 150), {1800}, {12});
  put(maximum.reads[0], 0, 50);  // if a kernel began the row one element late, it would find another maximum
  maximum.arguments.tp_rank = 1;
  KernelCase& exponentials =
      all.add("loss_exp", loss(Forward, {.piece = Piece::Exp, .classes = 290}, 12, 150), {1800, 12}, {1800, 24});
  exponentials.arguments.tp_rank = 1, exponentials.arguments.samples = 3;
  exponentials.writes.push_back(empty_array(12, DType::I64));
  KernelCase& staged =
      all.add("loss_exp_grad", loss(InputGrad, {.piece = Piece::Exp, .classes = 290}, 12, 150), {1800}, {1800});
  staged.reads.push_back(filled(24, DType::F32, [](std::int64_t i) { return 1.0 + static_cast<double>(i); }));
  staged.reads.push_back(filled(12, DType::I64, targets));
  staged.arguments.tp_rank = 1;
  KernelCase& last = all.add("loss_sum", loss(Forward, {.piece = Piece::Loss, .classes = 290}, 12, 150), {}, {1});
  last.reads.push_back(filled(24, DType::F32, [](std::int64_t i) { return 1.0 + static_cast<double>(i); }));
  last.reads.push_back(random_array(12, 4, DType::F32));
  all.add("squares", {.op = ops::SumOfSquares{}, .shapes = {{{9000}}}}, {9000}, {1});
  all.add("squares_grad", {.op = ops::SumOfSquares{}, .phase = InputGrad, .shapes = {{{333}}}}, {333}, {333});
}

void add_updates(Cases& all) {
  const Compute adam{.op = ops::Adam{}, .phase = Phase::Update, .shapes = {{{203}}}};
  const auto states = [](KernelCase& tried, const std::vector<std::pair<std::int64_t, DType>>& writes) {
    tried.writes.clear();
    std::uint64_t seed = 100;
    for (const auto& [size, dtype] : writes) {
      tried.writes.push_back(random_magnitudes(size, seed++, dtype));
    }
    tried.arguments.step = 3;
    tried.arguments.optimizer = {.weight_decay = 0.1, .momentum = 0.9};
  };
  // The plan lists values that are read among the reads too; both implementations read them in place, from the writes.
  KernelCase& master = all.add("adam_master", adam, {203, 203, 203, 203}, {}, DType::F32, kHalf);
  states(master, {{203, DType::F32}, {203, DType::F32}, {203, DType::F32}, {203, DType::BF16}});
  KernelCase& plain = all.add("adam", adam, {203, 203, 203, 203}, {});
  states(plain, {{203, DType::F32}, {203, DType::F32}, {203, DType::F32}});
  plain.arguments.loss_scale = 8;
  plain.arguments.optimizer.decoupled_decay = false;
  Compute sliced = adam;
  sliced.slice = {0};
  KernelCase& slice = all.add("adam_slice", sliced, {609, 203, 203, 203}, {}, DType::F32, kHalf);
  states(slice, {{203, DType::F32}, {203, DType::F32}, {203, DType::F32}, {609, DType::BF16}});
  slice.arguments.slice = 2;
  for (const std::int64_t step : {3, 7}) {  // before and after the second moment is frozen
    KernelCase& moments =
        all.add("adam_moments_" + std::to_string(step),
                {.op = ops::Adam{.frozen_after = 5}, .phase = Phase::Update, .shapes = {{{203}}}}, {203, 203, 203, 203}, {});
    states(moments, {{203, DType::F32}, {203, DType::F32}, {203, DType::F32}});
    moments.arguments.step = step;
  }
  for (const std::int64_t step : {2, 9}) {  // while the rate of a delayed stage grows, and after
    const ops::DelayedRate rate{.delay = 3, .annealed_over = 4};
    const Compute slow{.op = ops::Adam{.rate = rate}, .phase = Phase::Update, .shapes = {{{203}}}};
    const Compute plain{.op = ops::Sgd{.rate = rate}, .phase = Phase::Update, .shapes = {{{203}}}};
    KernelCase& first = all.add("adam_delayed_" + std::to_string(step), slow, {203, 203, 203, 203}, {});
    states(first, {{203, DType::F32}, {203, DType::F32}, {203, DType::F32}});
    first.arguments.step = step;
    KernelCase& second = all.add("sgd_delayed_" + std::to_string(step), plain, {203, 203}, {});
    states(second, {{203, DType::F32}});
    second.arguments.step = step;
  }
  const Compute sgd{.op = ops::Sgd{}, .phase = Phase::Update, .shapes = {{{203}}}};
  states(all.add("sgd", sgd, {203, 203, 203}, {}), {{203, DType::F32}, {203, DType::F32}});
  states(all.add("sgd_plain", sgd, {203, 203}, {}), {{203, DType::F32}});
  KernelCase& norm =
      all.add("grad_norm", {.op = ops::GradNorm{.divide = 2}, .phase = Phase::Update, .accumulate = true}, {5000, 31, 77}, {1});
  norm.reads[1] = random_array(31, 3, DType::BF16);
  KernelCase& used =
      all.add("grad_norm_slice", {.op = ops::GradNorm{}, .phase = Phase::Update, .shapes = {{{40}}}, .slice = {0}}, {120}, {1});
  used.arguments.slice = 2;
  used.writes = {empty_array(1, DType::F32)};
  KernelCase& clip = all.add("clip", {.op = ops::ClipScale{.max_norm = 0.5}, .phase = Phase::Update}, {}, {55, 201});
  clip.reads.push_back(filled(1, DType::F32, [](std::int64_t) { return 9.0; }));
  KernelCase& short_norm =
      all.add("clip_nothing", {.op = ops::ClipScale{.max_norm = 4}, .phase = Phase::Update}, {}, {55}, DType::F32, kExact);
  short_norm.reads.push_back(filled(1, DType::F32, [](std::int64_t) { return 9.0; }));
}

void add_products(Cases& all) {
  using enum Phase;
  const auto linear = [](Phase phase, bool add, bool first_token = false) {
    return Compute{
        .op = ops::MatMul{.first_token = first_token}, .phase = phase, .shapes = {{{1, 10, 12, 7}}}, .accumulate = add};
  };
  all.add("linear", linear(Forward, false), {70, 84, 12}, {120});
  all.add("linear_parts", linear(Forward, false), {70, 84, 12}, {80, 40}, DType::BF16, kHalf);
  all.add("linear_input_grad", linear(InputGrad, true), {80, 40, 70, 84}, {70});
  all.add("linear_input_grad_bare", linear(InputGrad, false), {120, 84}, {70});
  all.add("linear_first_token", linear(InputGrad, false, true), {120, 140, 84}, {140});
  all.add("linear_weight_grad", linear(WeightGrad, true), {80, 40, 70}, {84, 12});
  all.add("linear_weight_grad_bf16", linear(WeightGrad, false), {80, 40, 70}, {84, 12}, DType::BF16, kHalf);
  all.add("linear_weight_grad_added_bf16", linear(WeightGrad, true), {80, 40, 70}, {84, 12}, DType::BF16, kHalf);
  KernelCase& mixed = all.add("linear_weight_grad_mixed", linear(WeightGrad, false), {120, 70}, {}, DType::BF16, kHalf);
  mixed.writes = {empty_array(84, DType::BF16), empty_array(12, DType::F32)};
  KernelCase& wide = all.add("linear_weight_grad_fp32", linear(WeightGrad, false), {120, 70}, {}, DType::BF16);
  wide.writes = {empty_array(84, DType::F32), empty_array(12, DType::F32)};
  // 2 samples, 4 heads on 2 of keys, 6 positions, 5 dimensions: rows of (4 + 2 + 2) * 5 numbers.
  const ops::Scores scores = {.heads = 4, .kv_heads = 2, .dim = 5};
  const ops::WeightedValues values = {.heads = 4, .kv_heads = 2, .dim = 5};
  const std::int64_t qkv = 6 * 2 * 40, map = 8 * 36, context = 6 * 2 * 20;
  all.add("scores", {.op = scores, .shapes = {{{8, 6, 6, 5}}}}, {qkv}, {map});
  all.add("scores_grad", {.op = scores, .phase = InputGrad, .shapes = {{{8, 6, 6, 5}}}, .accumulate = true}, {map, qkv}, {qkv});
  all.add("values", {.op = values, .shapes = {{{8, 6, 5, 6}}}}, {map, qkv}, {context});
  all.add("values_grad", {.op = values, .phase = InputGrad, .shapes = {{{8, 6, 5, 6}}}}, {context, map, qkv}, {map, qkv});
}

void add_attention(Cases& all, bool large) {
  using enum Phase;
  struct Form {
    const char* name;
    std::int64_t samples, queries, keys, heads, kv, dim;
    bool causal;
    double p;
    std::int64_t site;
    bool apart, add;
    DType dtype;
    double tolerance;
  };
  const Form forms[] = {{"plain", 2, 37, 37, 4, 2, 10, true, 0, 0, false, false, DType::F32, kSingle},
                        {"plain_dropped", 1, 40, 40, 2, 2, 40, true, 0.2, 4, false, true, DType::F32, kSingle},
                        {"plain_apart", 2, 5, 9, 2, 1, 8, false, 0, 0, true, false, DType::F32, kSingle},
                        {"grouped_fp16", 2, 24, 24, 4, 2, 64, true, 0, 0, false, false, DType::F16, kHalf},
                        {"grouped_apart", 2, 20, 36, 4, 1, 72, false, 0, 0, true, false, DType::BF16, kFlash},
                        {"grouped96_fp16", 2, 12, 12, 2, 1, 96, false, 0, 0, false, false, DType::F16, kHalf},
                        {"wide_bf16", 1, 20, 20, 2, 1, 256, true, 0, 0, false, false, DType::BF16, kFlash},
                        {"samples_bf16", 3, 18, 18, 2, 2, 128, true, 0, 0, false, false, DType::BF16, kFlash},
                        {"flash64", 1, 80, 80, 2, 1, 64, true, 0, 0, false, false, DType::BF16, kFlash},
                        {"flash64_all", 1, 64, 100, 1, 1, 64, false, 0, 0, true, true, DType::BF16, kFlash},
                        {"flash128", 1, 70, 70, 1, 1, 128, true, 0, 0, false, true, DType::BF16, kFlash}};
  const Form large_forms[] = {{"flash64_large", 2, 1024, 1024, 4, 2, 64, true, 0, 0, false, false, DType::BF16, kFlash},
                              {"flash128_large", 1, 1000, 1000, 4, 4, 128, true, 0, 0, false, false, DType::BF16, kFlash},
                              {"plain_large", 1, 512, 512, 4, 4, 64, true, 0, 0, false, false, DType::F32, kSingle}};
  for (const Form& f : large ? std::span<const Form>(large_forms) : std::span<const Form>(forms)) {
    const std::int64_t q = f.samples * f.queries * (f.heads + (f.apart ? 0 : 2 * f.kv)) * f.dim,
                       kv = f.samples * f.keys * 2 * f.kv * f.dim;
    const std::int64_t context = f.samples * f.queries * f.heads * f.dim, lse = f.samples * f.heads * f.queries;
    Compute what{
        .op = ops::Attention{.causal = f.causal, .heads = f.heads, .kv_heads = f.kv, .dim = f.dim, .p = f.p, .site = f.site},
        .shapes = {{{f.samples, f.queries, f.heads, f.dim}}, {{f.samples, f.keys, f.kv, f.dim}}}};
    const std::string name = std::string("attention_") + f.name;
    KernelCase& forward = all.add(name, what, f.apart ? std::vector{q, kv} : std::vector{q}, {context}, f.dtype, f.tolerance);
    forward.writes.push_back(empty_array(lse, DType::F32));
    forward.arguments.tp_rank = 1;
    // The backward reads what a forward on the host has made.
    const std::vector<StoredArray> from = forward.reads, made = made_on_host(what, from, forward.writes, forward.arguments);
    what.phase = InputGrad;
    what.accumulate = f.add;
    KernelCase& back =
        all.add(name + "_grad", what, {context}, f.apart ? std::vector{q, kv} : std::vector{q}, f.dtype, f.tolerance);
    back.reads.insert(back.reads.end(), from.begin(), from.end());
    back.reads.insert(back.reads.end(), made.begin(), made.end());
    back.arguments.tp_rank = 1;
  }
}

// Sizes as in training a model of about a billion parameters, still small enough for the host.
void add_large(Cases& all) {
  using enum Phase;
  const std::int64_t rows = 4096, h = 2048;
  const Compute norm{.op = ops::Norm{.kind = NormKind::RmsNorm, .eps = 1e-5}, .phase = Backward, .shapes = {{{rows, h}}}};
  all.add("rmsnorm_large", {.op = ops::Norm{.kind = NormKind::RmsNorm, .eps = 1e-5}, .shapes = {{{rows, h}}}}, {rows * h, h},
          {rows * h}, DType::BF16, kHalf);
  all.add("rmsnorm_grad_large", norm, {rows * h, rows * h, h}, {rows * h, h}, DType::F32, 1e-4);
  all.add("gelu_large", {.op = ops::Activation{.function = ops::Activation::Function::Gelu}, .shapes = {{{rows, h}}}},
          {rows * h}, {rows * h}, DType::BF16, kHalf);
  for (const Phase phase : {Forward, InputGrad, WeightGrad}) {
    const std::int64_t m = 1024, n = 512, k = 768;
    const Compute linear{.op = ops::MatMul{}, .phase = phase, .shapes = {{{1, m, n, k}}}};
    const std::vector<std::int64_t> in = phase == Forward     ? std::vector{m * k, n * k}
                                         : phase == InputGrad ? std::vector{m * n, m * k, n * k}
                                                              : std::vector{m * n, m * k};
    const std::vector<std::int64_t> out = {phase == Forward ? m * n : phase == InputGrad ? m * k : n * k};
    const std::string name = "linear_large_" + std::to_string(static_cast<int>(phase));
    all.add(name, linear, in, out);
    all.add(name + "_bf16", linear, in, out, DType::BF16, kHalf);
  }
}

}  // namespace

std::vector<StoredArray> made_on_host(const Compute& what, const std::vector<StoredArray>& reads,
                                      const std::vector<StoredArray>& writes, const OpArguments& arguments) {
  struct Run {
    Compute what = {};
    std::vector<StoredArray> reads = {}, writes = {};
    OpArguments arguments = {};
    bool done = false;
  };
  const auto run = std::make_shared<Run>(Run{what, reads, writes, arguments});  // of all arrays that it makes
  std::vector<StoredArray> made;
  for (std::size_t i = 0; i < writes.size(); ++i)
    made.emplace_back(writes[i].size(), writes[i].dtype(), [run, i] {
      if (!std::exchange(run->done, true)) run_on_host(run->what, run->reads, run->writes, run->arguments);
      return run->writes[i].values();
    });
  return made;
}

std::vector<KernelCase> kernel_cases(bool large) {
  Cases all;
  add_rows(all);
  add_elements(all);
  add_ends(all);
  add_losses(all);
  add_updates(all);
  add_products(all);
  add_attention(all, false);
  add_packed(all);
  add_loss_scales(all);
  add_pictures(all);
  add_eight_bits(all, false);
  add_context(all);
  add_codecs(all);
  add_experts(all);
  add_head_rows(all);
  add_masks(all);
  if (large) add_attention(all, true);
  if (large) add_large(all);
  if (large) add_eight_bits(all, true);
  return all.take();
}

}  // namespace foreshard::gpu
