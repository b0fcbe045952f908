// Makers for embeddings, samples and losses. Tokens, targets and images are prepared by the host and copied to the GPU once per run.
#include <array>

#include "core/base/error.h"
#include "exec/arithmetic/host_convert.h"
#include "exec/cuda_ops/gpu_kernel.h"
#include "exec/host/host_cross_entropy.h"

namespace foreshard::gpu {

Kernel make_token_embedding(const host::Form& form) {
  host::expect_weights_phase(form);
  const auto& dims = form.dims(0, 3);
  const std::int64_t count = dims[0], h = dims[1], rows = dims[2], size = count * h, table = rows * h;
  const auto& op = form.as<ops::TokenEmbedding>();
  const host::TokenRows tokens{.rows = count, .vocab = op.vocab, .split = op.split, .ahead = op.ahead};
  if (form.forward()) {
    form.expect({table}, {size, count});
    if (form.writes[1].dtype != DType::I64) form.refuse("tokens that are not int64", "int64");
    return {
        .run =
            [=](const Launcher& on, const Call& call) {
              on.copy(call.writes[1].data, call.staged, {8 * count});
              LookupArgs args = {
                  .table = reads(call.reads[0]), .tokens = reads(call.writes[1]), .rows = writes(call.writes[0])};
              args.count = count, args.h = h, args.table_rows = rows, args.first_row = call.arguments.tp_rank * rows;
              on.launch(KernelId::token_rows, count, 1, 128, args);
            },
        .staged = {8 * count},
        .prepare = [=](std::byte* to,
                       const OpArguments& given) { host::read_tokens(given, tokens, reinterpret_cast<std::int64_t*>(to)); }};
  }
  form.expect({size, count}, {table});
  const bool accumulate = form.what.accumulate;
  return {.run = [=](const Launcher& on, const Call& call) {
    if (!accumulate) on.fill(call.writes[0], std::byte{0});
    LookupArgs args = {.table = writes(call.writes[0]), .tokens = reads(call.reads[1]), .rows = reads(call.reads[0])};
    args.count = count, args.h = h, args.table_rows = rows, args.first_row = call.arguments.tp_rank * rows;
    on.launch(KernelId::token_grad, count, 1, 256, args);
  }};
}

// The positions of a token type are consecutive: type t begins at position ceil(t sequence / types).
static void type_gradients(const Launcher& on, const PositionArgs& args, std::byte* scratch) {
  const auto begin = [&](std::int64_t type) {
    return args.held.below(ceil_div(type * args.sequence, args.type_rows), args.positions);
  };
  const auto part = [&](const View& of, std::int64_t row, std::int64_t rows) {
    View array = of;
    array.data = static_cast<std::byte*>(of.data) + row * args.h * bytes_of(of.type);
    array.elements = rows * args.h;
    return array;
  };
  for (std::int64_t type = 0; type < args.type_rows; ++type) {
    const std::int64_t first = begin(type) * args.samples, rows = begin(type + 1) * args.samples - first;
    if (rows == 0) continue;
    on.sum_columns(
        {.x = part(args.x, first, rows), .out = part(args.types, type, 1), .rows = rows, .columns = args.h, .accumulate = true},
        scratch);
  }
}

Kernel make_position_embedding(const host::Form& form) {
  host::expect_weights_phase(form);
  const auto& dims = form.dims(0, 3);
  const std::int64_t samples = dims[0], positions = dims[1], h = dims[2], size = host::size_of_dims(dims);
  const auto& op = form.as<ops::PositionEmbedding>();
  const bool table = op.positions, types = op.types, forward = form.forward();
  const SequenceSplit split = op.split;
  const bool sequence_parallel = op.sequence_parallel, accumulate = form.what.accumulate;
  const std::span<const Operand> weights = forward && !form.reads.empty() ? form.reads.subspan(1) : form.writes;
  if (weights.size() != static_cast<std::size_t>(table) + static_cast<std::size_t>(types))
    form.refuse(std::to_string(weights.size()) + " tables", "one for positions and one for types, as the settings say");
  std::vector<std::int64_t> rows;
  if (table) rows.push_back(positions * h);
  if (types) rows.push_back(h);
  if (forward) rows.insert(rows.begin(), size);
  form.expect(forward ? rows : std::vector{size}, forward ? std::vector{size} : rows);
  return {.run =
              [=](const Launcher& on, const Call& call) {
                PositionArgs args = {.x = reads(call.reads[0]), .samples = samples, .positions = positions, .h = h};
                args.sequence = positions * (sequence_parallel ? call.arguments.tp : 1) * split.ranks;
                args.held = positions_of(host::held_rows(split, positions, sequence_parallel, call.arguments));
                const std::span<const Operand> given = forward ? call.reads.subspan(1) : call.writes;
                if (table) args.table = forward ? reads(given[0]) : writes(given[0]);
                if (types) args.types = forward ? reads(given.back()) : writes(given.back());
                if (types) args.type_rows = given.back().elements / h;
                if (forward) {
                  args.y = writes(call.writes[0]);
                  return on.launch(KernelId::position_rows, positions * samples, 1, 128, args);
                }
                if (!accumulate)
                  for (const Operand& operand : call.writes) on.fill(operand, std::byte{0});
                if (table) {
                  PositionArgs positions_only = args;
                  positions_only.types = {};
                  on.launch(KernelId::position_grad, positions, 1, 128, positions_only);
                }
                if (types) type_gradients(on, args, call.scratch);
              },
          .scratch = types && !forward ? column_sum_scratch(positions * samples, h) : Bytes{}};
}

Kernel make_sample(const host::Form& form) {
  if (!form.forward()) form.refuse("this phase", "forward or recompute");
  const auto& dims = form.dims(0);
  const std::int64_t samples = dims[0], size = host::size_of_dims(dims) / samples;
  form.expect({}, {samples * size});
  const DType dtype = form.writes[0].dtype;
  const Bytes bytes = size_of(dtype) * (samples * size);
  return {.run = [=](const Launcher& on, const Call& call) { on.copy(call.writes[0].data, call.staged, bytes); },
          .staged = bytes,
          .prepare =
              [=](std::byte* to, const OpArguments& given) {
                FS_ASSERT(given.source);
                std::array<double, 256> part;
                const auto chunk = static_cast<std::int64_t>(part.size());
                for (std::int64_t sample = 0; sample < samples; ++sample)
                  for (std::int64_t at = 0; at < size; at += chunk) {
                    const std::int64_t here = std::min(chunk, size - at);
                    given.source->features(given.first_sample + sample, at,
                                           std::span(part).first(static_cast<std::size_t>(here)));
                    host::store(part.data(), here, {to, samples * size, dtype}, sample * size + at);
                  }
              }};
}

namespace {

// two rows of this size per multiprocessor stay in the L2 cache until they are read again
constexpr std::int64_t kWideRow = 8192;

using host::LossSizes;

CrossEntropyArgs numbers_of(const LossSizes& loss, const OpArguments& given, bool split) {
  CrossEntropyArgs args = {};
  args.rows = loss.rows, args.columns = loss.columns, args.first = loss.first(given, split);
  args.used = loss.used(args.first);
  args.weight = static_cast<float>(loss.weight_of_row(given) * given.loss_scale);
  return args;
}
void launch(const Launcher& on, KernelId kernel, const LossSizes& loss, const CrossEntropyArgs& args) {
  on.launch(kernel, loss.rows, 1, loss.columns < kWideRow ? 256 : 1024, args);
}

// A kernel whose targets are prepared by the host.
Kernel with_targets(const LossSizes& loss, std::function<void(const Launcher&, const Call&)> run, Bytes scratch) {
  return {.run = std::move(run),
          .scratch = scratch,
          .staged = {8 * loss.rows},
          .prepare = [tokens = loss.targets](std::byte* to, const OpArguments& given) {
            host::read_tokens(given, tokens, reinterpret_cast<std::int64_t*>(to));
          }};
}

Kernel whole_forward(const host::Form& form, const LossSizes& loss) {
  form.expect({loss.size()}, {loss.size(), loss.rows, 1});
  const Bytes terms = {round_up(4 * loss.rows, 256)};
  return with_targets(
      loss,
      [=](const Launcher& on, const Call& call) {
        on.copy(call.writes[1].data, call.staged, {8 * loss.rows});
        CrossEntropyArgs args = numbers_of(loss, call.arguments, false);
        args.x = reads(call.reads[0]), args.targets = reads(call.writes[1]), args.y = writes(call.writes[0]);
        args.terms = scratch_array(call.scratch, loss.rows, Type::F32);
        launch(on, KernelId::cross_entropy_forward, loss, args);
        TermSumArgs sum = {.x = args.terms, .out = writes(call.writes[2]), .count = loss.rows};
        sum.x.writes = false;
        sum.terms = Terms::Given, sum.weight = loss.weight_of_row(call.arguments);
        on.sum_terms(sum, call.scratch + terms.value);
      },
      terms + term_sum_scratch(loss.rows));
}

Kernel backward(const host::Form& form, const LossSizes& loss, bool staged) {
  const std::vector<std::int64_t> in =
      staged ? std::vector{loss.size(), 2 * loss.rows, loss.rows} : std::vector{loss.size(), loss.rows};
  form.expect(in, {loss.size()});
  const bool accumulate = form.what.accumulate;
  return {.run = [=](const Launcher& on, const Call& call) {
    CrossEntropyArgs args = numbers_of(loss, call.arguments, staged);
    args.accumulate = accumulate;
    args.x = reads(call.reads[0]), args.targets = reads(call.reads[staged ? 2 : 1]), args.y = writes(call.writes[0]);
    if (staged) args.sums = reads(call.reads[1]);
    args.state = call.state;
    launch(on, KernelId::cross_entropy_backward, loss, args);
  }};
}

Kernel stage_max(const host::Form& form, const LossSizes& loss) {
  form.expect({loss.size()}, {loss.rows});
  return {.run = [=](const Launcher& on, const Call& call) {
    CrossEntropyArgs args = numbers_of(loss, call.arguments, true);
    args.x = reads(call.reads[0]), args.maxima = writes(call.writes[0]);
    launch(on, KernelId::cross_entropy_maximum, loss, args);
  }};
}

Kernel stage_exp(const host::Form& form, const LossSizes& loss) {
  form.expect({loss.size(), loss.rows}, {loss.size(), 2 * loss.rows, loss.rows});
  return with_targets(loss,
                      [=](const Launcher& on, const Call& call) {
                        on.copy(call.writes[2].data, call.staged, {8 * loss.rows});
                        CrossEntropyArgs args = numbers_of(loss, call.arguments, true);
                        args.x = reads(call.reads[0]), args.maxima = reads(call.reads[1]), args.targets = reads(call.writes[2]);
                        args.y = writes(call.writes[0]), args.sums = writes(call.writes[1]);
                        launch(on, KernelId::cross_entropy_exponentials, loss, args);
                      },
                      {});
}

Kernel stage_loss(const host::Form& form, const LossSizes& loss) {
  form.expect({2 * loss.rows, loss.rows}, {1});
  return {.run =
              [=](const Launcher& on, const Call& call) {
                TermSumArgs sum = {.x = reads(call.reads[0]), .maxima = reads(call.reads[1]), .out = writes(call.writes[0])};
                sum.count = loss.rows, sum.terms = Terms::Staged, sum.weight = loss.weight_of_row(call.arguments);
                on.sum_terms(sum, call.scratch);
              },
          .scratch = term_sum_scratch(loss.rows)};
}

}  // namespace

Kernel make_cross_entropy(const host::Form& form) {
  using Piece = ops::CrossEntropy::Piece;
  const LossSizes loss = host::loss_sizes(form);
  const bool gradient = form.what.phase == Phase::InputGrad;
  switch (form.as<ops::CrossEntropy>().piece) {
    case Piece::Whole: return gradient ? backward(form, loss, false) : whole_forward(form, loss);
    case Piece::Max: return stage_max(form, loss);
    case Piece::Exp: return gradient ? backward(form, loss, true) : stage_exp(form, loss);
    case Piece::Loss: return stage_loss(form, loss);
  }
  return {};
}

// loss = sum of y^2 over the samples of the step, divided by their number.
Kernel make_sum_of_squares(const host::Form& form) {
  const std::int64_t size = host::size_of_dims(form.dims(0));
  if (form.forward()) {
    form.expect({size}, {1});
    return {.run =
                [=](const Launcher& on, const Call& call) {
                  TermSumArgs sum = {.x = reads(call.reads[0]), .out = writes(call.writes[0]), .count = size};
                  sum.terms = Terms::Squares, sum.weight = 1 / static_cast<double>(call.arguments.samples_of_step);
                  on.sum_terms(sum, call.scratch);
                },
            .scratch = term_sum_scratch(size)};
  }
  form.expect({size}, {size});
  const bool accumulate = form.what.accumulate;
  return {.run = [=](const Launcher& on, const Call& call) {
    AddArgs args = {.y = writes(call.writes[0]), .rows = 1, .columns = size, .count = 1, .accumulate = accumulate};
    args.inputs[0] = reads(call.reads[0]), args.state = call.state;
    args.scale = static_cast<float>(2 * call.arguments.loss_scale / static_cast<double>(call.arguments.samples_of_step));
    on.elements(KernelId::add_arrays, size, args);
  }};
}

}  // namespace foreshard::gpu
