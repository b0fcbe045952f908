// Where data enters: token rows (of this rank's part of the vocabulary), position and segment rows, pictures.
#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "exec/host/host_kernel.h"

namespace foreshard::host {

namespace {

struct TableSizes {
  std::int64_t h = 0, rows = 0;
  TokenRows tokens = {};
};

// A token outside the rows of this rank gives zeros; the sum over tp puts the row of the rank that has it.
template <class T>
void look_up(const T* table, const std::int64_t* tokens, const TableSizes& sizes, std::int64_t first_row, T* out) {
  for (std::int64_t t = 0; t < sizes.tokens.rows; ++t) {
    const std::int64_t row = tokens[t] - first_row;
    if (row >= 0 && row < sizes.rows)
      std::copy_n(table + row * sizes.h, sizes.h, out + t * sizes.h);
    else
      std::fill_n(out + t * sizes.h, sizes.h, T(0));
  }
}

}  // namespace

template <class T>
Kernel<T> make_token_embedding(const Form& form) {
  expect_weights_phase(form);
  const auto& dims = form.dims(0, 3);
  const auto& op = form.as<ops::TokenEmbedding>();
  const TableSizes sizes{
      .h = dims[1], .rows = dims[2], .tokens = {.rows = dims[0], .vocab = op.vocab, .split = op.split, .ahead = op.ahead}};
  const std::int64_t size = sizes.tokens.rows * sizes.h, table = sizes.rows * sizes.h;
  if (form.forward()) {
    form.expect({table}, {size, sizes.tokens.rows});
    if (form.writes[1].dtype != DType::I64) form.refuse("tokens that are not int64", "int64");
    return {.run = [sizes](const Call<T>& call) {
      FS_ASSERT(call.arguments.source);
      auto* tokens = reinterpret_cast<std::int64_t*>(call.writes[1].data);
      read_tokens(call.arguments, sizes.tokens, tokens);
      look_up(call.in[0], tokens, sizes, call.arguments.tp_rank * sizes.rows, call.out[0]);
    }};
  }
  form.expect({size, sizes.tokens.rows}, {table});
  const bool accumulate = form.what.accumulate;
  return {.run = [sizes, table, accumulate](const Call<T>& call) {
    const auto* tokens = reinterpret_cast<const std::int64_t*>(call.reads[1].data);
    if (!accumulate) std::fill_n(call.out[0], table, T(0));
    for (std::int64_t t = 0; t < sizes.tokens.rows; ++t) {
      const std::int64_t row = tokens[t] - call.arguments.tp_rank * sizes.rows;
      if (row < 0 || row >= sizes.rows) continue;
      add_column_sums(call.in[0] + t * sizes.h, 1, sizes.h, call.out[0] + row * sizes.h);
    }
  }};
}

template Kernel<float> make_token_embedding(const Form&);
template Kernel<double> make_token_embedding(const Form&);

namespace {

struct PositionSizes {
  std::int64_t samples = 1, positions = 0, h = 0;
  std::int64_t table = 0, types = 0;  // rows; 0: not added
  bool sequence_parallel = false;
  SequenceSplit split = {};

  std::int64_t position(std::int64_t row, const OpArguments& arguments) const {
    return held_rows(split, positions, sequence_parallel, arguments).position(row / samples);
  }
  // Segments of equal length.
  std::int64_t type(std::int64_t row, const OpArguments& arguments) const {
    const std::int64_t sequence = positions * (sequence_parallel ? arguments.tp : 1) * split.ranks;
    return position(row, arguments) * types / sequence;
  }
};

template <class T>
Kernel<T> positions_forward(const PositionSizes& sizes) {
  return {.run = [sizes](const Call<T>& call) {
    const T* table = sizes.table > 0 ? call.in[1] : nullptr;
    const T* types = sizes.types > 0 ? call.in[sizes.table > 0 ? 2 : 1] : nullptr;
    for (std::int64_t row = 0; row < sizes.samples * sizes.positions; ++row) {
      T* out = call.out[0] + row * sizes.h;
      std::copy_n(call.in[0] + row * sizes.h, sizes.h, out);
      if (table) add_column_sums(table + sizes.position(row, call.arguments) * sizes.h, 1, sizes.h, out);
      if (types) add_column_sums(types + sizes.type(row, call.arguments) * sizes.h, 1, sizes.h, out);
    }
  }};
}

template <class T>
Kernel<T> positions_weight_grad(const PositionSizes& sizes, bool accumulate) {
  return {.run = [sizes, accumulate](const Call<T>& call) {
    T* table = sizes.table > 0 ? call.out[0] : nullptr;
    T* types = sizes.types > 0 ? call.out[sizes.table > 0 ? 1 : 0] : nullptr;
    if (!accumulate) {
      if (table) std::fill_n(table, sizes.table * sizes.h, T(0));
      if (types) std::fill_n(types, sizes.types * sizes.h, T(0));
    }
    for (std::int64_t row = 0; row < sizes.samples * sizes.positions; ++row) {
      const T* dy = call.in[0] + row * sizes.h;
      if (table) add_column_sums(dy, 1, sizes.h, table + sizes.position(row, call.arguments) * sizes.h);
      if (types) add_column_sums(dy, 1, sizes.h, types + sizes.type(row, call.arguments) * sizes.h);
    }
  }};
}

}  // namespace

template <class T>
Kernel<T> make_position_embedding(const Form& form) {
  expect_weights_phase(form);
  const auto& dims = form.dims(0, 3);
  PositionSizes sizes{.samples = dims[0],
                      .positions = dims[1],
                      .h = dims[2],
                      .sequence_parallel = form.as<ops::PositionEmbedding>().sequence_parallel,
                      .split = form.as<ops::PositionEmbedding>().split};
  const bool table = form.as<ops::PositionEmbedding>().positions, types = form.as<ops::PositionEmbedding>().types;
  const std::int64_t size = size_of_dims(dims);
  const std::span<const Operand> weights = form.forward() && !form.reads.empty() ? form.reads.subspan(1) : form.writes;
  if (weights.size() != static_cast<std::size_t>(table) + static_cast<std::size_t>(types))
    form.refuse(std::to_string(weights.size()) + " tables", "one for positions and one for types, as the settings say");
  if (table) sizes.table = weights[0].elements / sizes.h;
  if (types) sizes.types = weights.back().elements / sizes.h;
  std::vector<std::int64_t> rows;
  if (table) rows.push_back(sizes.positions * sizes.h);
  if (types) rows.push_back(sizes.h);
  if (form.forward()) {
    rows.insert(rows.begin(), size);
    form.expect(rows, {size});
    return positions_forward<T>(sizes);
  }
  form.expect({size}, rows);
  return positions_weight_grad<T>(sizes, form.what.accumulate);
}

template Kernel<float> make_position_embedding(const Form&);
template Kernel<double> make_position_embedding(const Form&);

template <class T>
Kernel<T> make_sample(const Form& form) {
  if (!form.forward()) form.refuse("this phase", "forward or recompute");
  const auto& dims = form.dims(0);
  const std::int64_t samples = dims[0], size = size_of_dims(dims) / samples;
  form.expect({}, {samples * size});
  return {.run = [samples, size](const Call<T>& call) {
    FS_ASSERT(call.arguments.source);
    constexpr std::int64_t chunk = 256;
    std::array<double, chunk> part;
    for (std::int64_t sample = 0; sample < samples; ++sample)
      for (std::int64_t at = 0; at < size; at += chunk) {
        const std::int64_t here = std::min(chunk, size - at);
        call.arguments.source->features(call.arguments.first_sample + sample, at,
                                        std::span(part).first(static_cast<std::size_t>(here)));
        T* out = call.out[0] + sample * size + at;
        for (std::int64_t i = 0; i < here; ++i) out[i] = static_cast<T>(part[static_cast<std::size_t>(i)]);
      }
  }};
}

template Kernel<float> make_sample(const Form&);
template Kernel<double> make_sample(const Form&);

}  // namespace foreshard::host
