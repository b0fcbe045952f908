// Attention over context-parallel ranks against attention of the whole sequence, dropout and gradients included.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/exec/host_arrays.h"

namespace foreshard::host_context_parallel_test {
namespace {

struct Job {
  std::int64_t samples = 2, sequence = 24, heads = 4, kv = 2, dim = 6;
  bool causal = true;
  double p = 0;
  int ranks = 2;

  SequenceSplit split() const { return {.ranks = ranks, .chunks = causal ? 2 : 1}; }
  std::int64_t rows() const { return sequence / ranks; }
  std::int64_t q_width() const { return samples * heads * dim; }
  std::int64_t kv_width() const { return samples * 2 * kv * dim; }
  ops::Attention op() const {
    return {.causal = causal, .heads = heads, .kv_heads = kv, .dim = dim, .p = p, .site = p > 0 ? 3 : 0};
  }
};

Compute compute(const Job& job, const ops::Attention& op, std::int64_t queries, std::int64_t keys, Phase phase) {
  return {.op = op,
          .phase = phase,
          .shapes = {{{job.samples, queries, op.heads, job.dim}, DType::F64},
                     {{job.samples, keys, op.kv_heads, job.dim}, DType::F64}}};
}

// The rows of a rank out of those of the sequence.
Array rows_of(const Job& job, const Array& all, std::int64_t width, int rank) {
  Array part(job.rows() * width, DType::F64);
  const RowPositions held = job.split().rows_of(rank, job.rows());
  for (std::int64_t row = 0; row < job.rows(); ++row)
    for (std::int64_t i = 0; i < width; ++i) part.set(row * width + i, all.at(held.position(row) * width + i));
  return part;
}
// Adds the rows of a rank to those of the sequence.
void add_rows(const Job& job, const Array& part, std::int64_t from, std::int64_t width, int rank, Array& all) {
  const RowPositions held = job.split().rows_of(rank, job.rows());
  for (std::int64_t row = 0; row < job.rows(); ++row)
    for (std::int64_t i = 0; i < width; ++i) {
      const std::int64_t at = held.position(row) * width + i;
      all.set(at, all.at(at) + part.at(from + row * width + i));
    }
}
Array numbers(std::vector<double> values) { return {std::move(values), DType::F64}; }
Array zeros(std::int64_t size) { return {std::vector<double>(static_cast<std::size_t>(size)), DType::F64}; }

struct Whole {
  Array q, kv, dcontext, context, dq, dkv;
};

Whole whole(const Job& job, const OpArguments& arguments) {
  const std::int64_t q = job.sequence * job.q_width(), kv = job.sequence * job.kv_width();
  Whole all{.q = random_array(q, 1), .kv = random_array(kv, 2), .dcontext = random_array(q, 3)};
  const auto made = outputs_of(compute(job, job.op(), job.sequence, job.sequence, Phase::Forward), {all.q, all.kv},
                               {q, job.samples * job.heads * job.sequence}, arguments);
  const auto grads = outputs_of(compute(job, job.op(), job.sequence, job.sequence, Phase::InputGrad),
                                {all.dcontext, all.q, all.kv, made[0], made[1]}, {q, kv}, arguments);
  all.context = made[0], all.dq = grads[0], all.dkv = grads[1];
  return all;
}

// What the ranks make of it: context, dq and dkv in the order of the sequence.
struct Made {
  Array context, dq, dkv;
};

Made gathered(const Job& job, const Whole& all, OpArguments arguments) {
  ops::Attention op = job.op();
  op.split = job.split();
  const std::int64_t q = job.rows() * job.q_width(), lse = job.samples * job.heads * job.rows(),
                     part = job.rows() * job.kv_width();
  Array kv = zeros(job.sequence * job.kv_width());
  for (int rank = 0; rank < job.ranks; ++rank) {
    const Array own = rows_of(job, all.kv, job.kv_width(), rank);
    for (std::int64_t i = 0; i < part; ++i) kv.set(rank * part + i, own.at(i));
  }
  Made made{zeros(all.q.size()), zeros(all.q.size()), zeros(all.kv.size())};
  for (int rank = 0; rank < job.ranks; ++rank) {
    arguments.cp = job.ranks, arguments.cp_rank = rank;
    const Array queries = rows_of(job, all.q, job.q_width(), rank), grad = rows_of(job, all.dcontext, job.q_width(), rank);
    const auto out = outputs_of(compute(job, op, job.rows(), job.sequence, Phase::Forward), {queries, kv}, {q, lse}, arguments);
    const auto grads = outputs_of(compute(job, op, job.rows(), job.sequence, Phase::InputGrad),
                                  {grad, queries, kv, out[0], out[1]}, {q, kv.size()}, arguments);
    add_rows(job, out[0], 0, job.q_width(), rank, made.context);
    add_rows(job, grads[0], 0, job.q_width(), rank, made.dq);
    for (int of = 0; of < job.ranks; ++of) add_rows(job, grads[1], of * part, job.kv_width(), of, made.dkv);
  }
  return made;
}

Made ring(const Job& job, const Whole& all, OpArguments arguments, bool merges = true) {
  ops::Attention op = job.op();
  op.split = job.split(), op.blocks = job.ranks;
  const std::int64_t q = job.rows() * job.q_width(), lse = job.samples * job.heads * job.rows(),
                     kv = job.rows() * job.kv_width();
  Made made{zeros(all.q.size()), zeros(all.q.size()), zeros(all.kv.size())};
  for (int rank = 0; rank < job.ranks; ++rank) {
    arguments.cp = job.ranks, arguments.cp_rank = rank;
    const Array queries = rows_of(job, all.q, job.q_width(), rank), grad = rows_of(job, all.dcontext, job.q_width(), rank);
    std::vector<Array> sum;
    for (op.block = 0; op.block < job.ranks; ++op.block) {
      const Array keys = rows_of(job, all.kv, job.kv_width(), (rank + job.ranks - op.block) % job.ranks);
      auto out = outputs_of(compute(job, op, job.rows(), job.rows(), Phase::Forward), {queries, keys}, {q, lse}, arguments);
      if (op.block > 0)
        out = outputs_of({.op = ops::MergeAttention{}, .shapes = {{{job.samples, job.rows(), job.heads, job.dim}, DType::F64}}},
                         {sum[0], merges ? sum[1] : out[1], out[0], out[1]}, {q, lse}, arguments);
      sum = out;
    }
    add_rows(job, sum[0], 0, job.q_width(), rank, made.context);
    for (op.block = 0; op.block < job.ranks; ++op.block) {
      const int owner = (rank + job.ranks - op.block) % job.ranks;
      const Array keys = rows_of(job, all.kv, job.kv_width(), owner);
      const auto grads = outputs_of(compute(job, op, job.rows(), job.rows(), Phase::InputGrad),
                                    {grad, queries, keys, sum[0], sum[1]}, {q, kv}, arguments);
      add_rows(job, grads[0], 0, job.q_width(), rank, made.dq);
      add_rows(job, grads[1], 0, job.kv_width(), owner, made.dkv);
    }
  }
  return made;
}

double apart(const Made& made, const Whole& all) {
  return std::max(
      {relative_error(made.context, all.context), relative_error(made.dq, all.dq), relative_error(made.dkv, all.dkv)});
}

std::vector<Job> jobs() {
  std::vector<Job> list;
  for (const int ranks : {2, 3, 4})
    for (const bool causal : {true, false})
      for (const double p : {0.0, 0.3}) list.push_back({.causal = causal, .p = p, .ranks = ranks});
  list.push_back({.samples = 1, .sequence = 560, .heads = 1, .kv = 1, .dim = 4, .p = 0.2, .ranks = 2});  // more than one tile
  return list;
}

const OpArguments kArguments = {.seed = 5, .layer = 9, .first_sample = 3, .samples = 2, .tp = 2, .tp_rank = 1};

TEST(HostContext, GatheredKeysAreAttentionOfTheSequence) {
  for (const Job& job : jobs())
    EXPECT_LE(apart(gathered(job, whole(job, kArguments), kArguments), whole(job, kArguments)), 1e-13)
        << job.ranks << " causal " << job.causal << " p " << job.p;
}

TEST(HostContext, ARingIsAttentionOfTheSequence) {
  for (const Job& job : jobs())
    EXPECT_LE(apart(ring(job, whole(job, kArguments), kArguments), whole(job, kArguments)), 1e-13)
        << job.ranks << " causal " << job.causal << " p " << job.p;
}

TEST(HostContext, APartThatSeesNothingWeighsNothing) {
  const std::vector<Array> merged =
      outputs_of({.op = ops::MergeAttention{}, .shapes = {{{1, 1, 1, 2}, DType::F64}}},
                 {numbers({3, 4}), numbers({0.5}), numbers({0, 0}), numbers({-INFINITY})}, {2, 1});
  EXPECT_EQ(merged[0].values(), (std::vector<double>{3, 4}));
  EXPECT_EQ(merged[1].at(0), 0.5);
}

// e^0 = 1 and e^log(3) = 3 weigh 1/4 and 3/4; the new lse is log(4).
TEST(HostContext, PartsWeighAsTheirSumsOfExponentials) {
  const std::vector<Array> merged = outputs_of({.op = ops::MergeAttention{}, .shapes = {{{1, 1, 1, 1}, DType::F64}}},
                                               {numbers({8}), numbers({0}), numbers({4}), numbers({std::log(3.0)})}, {1, 1});
  EXPECT_DOUBLE_EQ(merged[0].at(0), 5);
  EXPECT_DOUBLE_EQ(merged[1].at(0), std::log(4.0));
}

// The comparison sees each of these mistakes by far.
TEST(HostContext, MistakesAreSeen) {
  const Job job = {.ranks = 2};
  const Whole all = whole(job, kArguments);
  EXPECT_GT(apart(ring(job, all, kArguments, false), all), 1e-2) << "statistics not merged";
  Job shifted = job;
  shifted.causal = false;  // as if a rank held one chunk ...
  Whole other = whole(shifted, kArguments);
  other.context = all.context, other.dq = all.dq, other.dkv = all.dkv;
  EXPECT_GT(apart(gathered(shifted, other, kArguments), all), 1e-2) << "no mask";
}

// Rows [q of 2 heads | k | v] of numbers that tell where they are: part 0 gets the first head of each.
TEST(HostContext, HeadsAreDealtOut) {
  const Compute what{.op = ops::HeadParts{.parts = 2, .heads = 2, .kv_heads = 2, .dim = 1},
                     .shapes = {{{1, 2, 6}, DType::F64}}};
  const Array rows = numbers({11, 12, 13, 14, 15, 16, 21, 22, 23, 24, 25, 26});
  const std::vector<Array> parts = outputs_of(what, {rows}, {12});
  EXPECT_EQ(parts[0].values(), (std::vector<double>{11, 13, 15, 21, 23, 25, 12, 14, 16, 22, 24, 26}));
  Compute back = what;
  back.phase = Phase::InputGrad;
  EXPECT_EQ(outputs_of(back, {parts[0]}, {12})[0].values(), rows.values());
  Compute join = what;
  std::get<ops::HeadParts>(join.op).join = true;
  EXPECT_EQ(outputs_of(join, {parts[0]}, {12})[0].values(), rows.values());
}

// R = 2 with two chunks each: the picture of core/op/sequence_part.h.
TEST(HostContext, PositionsOfTwoChunks) {
  const SequenceSplit split = {.ranks = 2, .chunks = 2};
  std::vector<std::int64_t> held;
  for (int rank = 0; rank < 2; ++rank)
    for (std::int64_t row = 0; row < 4; ++row) held.push_back(split.rows_of(rank, 4).position(row));
  EXPECT_EQ(held, (std::vector<std::int64_t>{0, 1, 6, 7, 2, 3, 4, 5}));
  for (std::int64_t p = 0; p < 8; ++p) EXPECT_EQ(held[static_cast<std::size_t>(split.gathered_row(p, 4))], p);
  const RowPositions first = split.rows_of(0, 4);
  EXPECT_EQ(first.below(1, 4), 1);
  EXPECT_EQ(first.below(6, 4), 2);
  EXPECT_EQ(first.below(8, 4), 4);
  EXPECT_EQ(first.from(1).position(0), 1);
  EXPECT_EQ(first.from(1).position(1), 6);
  EXPECT_EQ(first.from(3).position(0), 7);
}

}  // namespace
}  // namespace foreshard::host_context_parallel_test
