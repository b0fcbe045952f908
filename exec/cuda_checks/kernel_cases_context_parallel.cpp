// Cases in which the rows are those of a context-parallel rank.
#include "exec/cuda_checks/case_list.h"

namespace foreshard::gpu {

namespace {

constexpr SequenceSplit kTwoChunks = {.ranks = 2, .chunks = 2}, kThree = {.ranks = 3, .chunks = 1},
                        kHeads = {.ranks = 2, .chunks = 0};

void stand(KernelCase& tried, const SequenceSplit& split, int rank) {
  tried.arguments.cp = split.ranks, tried.arguments.cp_rank = rank;
}

struct Form {
  const char* name;
  ops::Attention op;
  std::int64_t samples, queries, keys;
  int rank;
  bool add;
  DType dtype;
  double tolerance;
};

ops::Attention attention(bool causal, std::int64_t heads, std::int64_t kv, std::int64_t dim, const SequenceSplit& split,
                         int block = -1) {
  ops::Attention op = {.causal = causal, .heads = heads, .kv_heads = kv, .dim = dim, .split = split};
  if (block >= 0) op.blocks = split.ranks, op.block = block;
  return op;
}
ops::Attention dropping(ops::Attention op) {
  op.p = 0.25, op.site = 4;
  return op;
}

void add_attention_over_ranks(Cases& all) {
  const Form forms[] = {
      {"plain_gathered", dropping(attention(true, 4, 2, 10, kTwoChunks)), 2, 20, 40, 1, false, DType::F32, kSingle},
      {"plain_gathered_first", attention(true, 2, 2, 40, kTwoChunks), 1, 38, 76, 0, true, DType::F32, kSingle},
      {"plain_gathered_all", dropping(attention(false, 2, 1, 8, kThree)), 2, 7, 21, 2, false, DType::F32, kSingle},
      {"zigzag_flash64", attention(true, 2, 1, 64, kTwoChunks), 1, 72, 144, 1, true, DType::BF16, kFlash},
      {"zigzag_flash128", attention(true, 1, 1, 128, kTwoChunks), 2, 36, 72, 0, false, DType::BF16, kFlash},
      {"plain_block_own", attention(true, 2, 1, 10, kTwoChunks, 0), 2, 12, 12, 1, false, DType::F32, kSingle},
      {"plain_block_before", dropping(attention(true, 4, 2, 10, kTwoChunks, 1)), 2, 12, 12, 1, true, DType::F32, kSingle},
      {"zigzag_block_flash64", attention(true, 2, 1, 64, kTwoChunks, 1), 1, 80, 80, 1, false, DType::BF16, kFlash},
      {"plain_block_all", dropping(attention(false, 2, 2, 10, kThree, 2)), 1, 9, 9, 1, false, DType::F32, kSingle},
      {"gathered_bf16", attention(false, 2, 1, 64, kThree), 2, 20, 60, 1, false, DType::BF16, kFlash},
      {"dealt_bf16", attention(true, 2, 2, 64, kHeads), 2, 40, 40, 1, false, DType::BF16, kFlash},
      {"plain_dealt", dropping(attention(true, 2, 1, 12, kHeads)), 1, 24, 24, 1, false, DType::F32, kSingle}};
  for (const Form& f : forms) {
    const std::int64_t q = f.samples * f.queries * f.op.heads * f.op.dim,
                       kv = f.samples * f.keys * 2 * f.op.kv_heads * f.op.dim;
    const std::int64_t lse = f.samples * f.op.heads * f.queries;
    Compute what{.op = f.op,
                 .shapes = {{{f.samples, f.queries, f.op.heads, f.op.dim}}, {{f.samples, f.keys, f.op.kv_heads, f.op.dim}}}};
    const std::string name = std::string("context_") + f.name;
    KernelCase& forward = all.add(name, what, {q, kv}, {q}, f.dtype, f.tolerance);
    forward.writes.push_back(empty_array(lse, DType::F32));
    forward.arguments.tp = 2, forward.arguments.tp_rank = 1;
    stand(forward, f.op.split, f.rank);
    const OpArguments arguments = forward.arguments;
    // The backward reads what a forward on the host has made.
    const std::vector<StoredArray> from = forward.reads, made = made_on_host(what, from, forward.writes, arguments);
    what.phase = Phase::InputGrad, what.accumulate = f.add;
    KernelCase& back = all.add(name + "_grad", what, {q}, {q, kv}, f.dtype, f.tolerance);
    back.reads.insert(back.reads.end(), from.begin(), from.end());
    back.reads.insert(back.reads.end(), made.begin(), made.end());
    const OpArguments given = back.arguments;
    back.arguments = arguments, back.arguments.seed = given.seed;
  }
}

void add_maps(Cases& all) {
  KernelCase& soft = all.add(
      "context_softmax",
      {.op = ops::Softmax{.causal = true, .scale = 0.3, .split = kTwoChunks}, .shapes = {{{2 * 3 * 10, 20}}}}, {1200}, {1200});
  stand(soft, kTwoChunks, 1);
  for (const SequenceSplit& split : {kTwoChunks, kThree, kHeads}) {
    const std::int64_t queries = 6, keys = queries * split.parts();
    KernelCase& maps = all.add("context_dropout_maps_" + std::to_string(split.chunks),
                               {.op = ops::Dropout{.p = 0.25, .site = 3, .split = split}, .shapes = {{{2, 3, queries, keys}}}},
                               {6 * queries * keys}, {6 * queries * keys});
    maps.writes.push_back(empty_array(6 * queries * keys, DType::U8));
    maps.arguments.tp = 2, maps.arguments.tp_rank = 1;
    stand(maps, split, 1);
  }
}

void add_rows_of_ranks(Cases& all) {
  using enum Phase;
  // The rows of the tensor-parallel rank begin in the early chunk and end in the late one.
  KernelCase& rows = all.add(
      "context_dropout_rows",
      {.op = ops::Dropout{.p = 0.25, .site = 3, .sequence_parallel = true, .split = kTwoChunks}, .shapes = {{{3, 6, 22}}}},
      {396, 396, 22}, {396});
  rows.writes.push_back(empty_array(396, DType::U8));
  rows.arguments.tp = 3, rows.arguments.tp_rank = 1;  // rows 6 to 11 of 18
  stand(rows, {.ranks = 2, .chunks = 2}, 1);
  for (const Phase phase : {Forward, InputGrad}) {
    KernelCase& rope = all.add(
        phase == Forward ? "context_rope" : "context_rope_grad",
        {.op = ops::Rope{.heads = 2, .kv_heads = 1, .dim = 16, .split = kTwoChunks}, .phase = phase, .shapes = {{{2, 6, 64}}}},
        {768}, {768});
    stand(rope, kTwoChunks, 1);
  }
  KernelCase& lookup = all.add(
      "context_tokens", {.op = ops::TokenEmbedding{.vocab = 18, .split = kTwoChunks}, .shapes = {{{24, 36, 9}}}}, {324}, {864});
  lookup.arguments.samples = 4, lookup.arguments.tp = 2, lookup.arguments.tp_rank = 1;
  stand(lookup, kTwoChunks, 1), lookup.writes.push_back(empty_array(24, DType::I64));
  const Compute what{
      .op = ops::PositionEmbedding{.positions = true, .types = true, .sequence_parallel = true, .split = kTwoChunks},
      .shapes = {{{3, 6, 10}}}};
  Compute grad = what;
  grad.phase = WeightGrad;
  for (KernelCase* tried :
       {&all.add("context_positions", what, {180, 360, 20}, {180}), &all.add("context_positions_grad", grad, {180}, {360, 20})})
    tried->arguments.tp = 3, tried->arguments.tp_rank = 1, stand(*tried, kTwoChunks, 0);
  KernelCase& loss =
      all.add("context_loss", {.op = ops::CrossEntropy{.classes = 290, .split = kTwoChunks}, .shapes = {{{12, 300}}}}, {3600},
              {3600, 1});
  loss.writes.insert(loss.writes.begin() + 1, empty_array(12, DType::I64));
  loss.arguments.samples = 3, stand(loss, kTwoChunks, 1);
}

void add_heads(Cases& all) {
  using enum Phase;
  const std::int64_t samples = 2, queries = 5, heads = 3, dim = 7, lse = samples * queries * heads, context = lse * dim;
  all.add("merge_attention", {.op = ops::MergeAttention{}, .shapes = {{{samples, queries, heads, dim}}}},
          {context, lse, context, lse}, {context, lse});
  for (const bool join : {false, true})
    for (const Phase phase : {Forward, InputGrad})
      all.add(std::string("heads_") + (join ? "join" : "parts") + (phase == Forward ? "" : "_grad"),
              {.op = ops::HeadParts{.parts = 2, .heads = 4, .kv_heads = 2, .dim = 3, .join = join},
               .phase = phase,
               .shapes = {{{samples, queries, 24}}},
               .accumulate = join && phase == InputGrad},
              {240}, {240});
}

}  // namespace

void add_context(Cases& all) {
  add_attention_over_ranks(all);
  add_maps(all);
  add_rows_of_ranks(all);
  add_heads(all);
}

}  // namespace foreshard::gpu
