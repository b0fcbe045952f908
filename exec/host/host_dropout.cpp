// Dropout, alone or fused with the bias and the residual sum before it: y = skip + keep scale (x + bias).
#include "exec/host/host_dropout.h"

#include <algorithm>
#include <array>

#include "exec/base/philox.h"

namespace foreshard::host {

DropOperands drop_operands(const Form& form, std::int64_t runs, std::int64_t length) {
  const std::int64_t size = runs * length;
  DropOperands operands;
  if (form.forward()) {
    operands = {.skip = form.reads.size() >= 2, .bias = form.reads.size() == 3};
    std::vector<std::int64_t> reads = {size};
    if (operands.skip) reads.push_back(size);
    if (operands.bias) reads.push_back(length);
    form.expect(reads, {size, size});
    return operands;
  }
  operands.bias = form.what.phase == Phase::Backward;
  operands.input = form.writes.size() == (operands.bias ? 2 : 1);
  std::vector<std::int64_t> reads = {size, size}, writes;
  if (operands.input) writes.push_back(size);
  if (operands.bias) reads.push_back(length), writes.push_back(length);
  form.expect(reads, writes);
  return operands;
}

DropRule drop_rule(const Form& form) {
  return std::visit(
      [&](const auto& op) -> DropRule {
        if constexpr (requires { op.p + static_cast<double>(op.site); }) {
          if (!(op.p >= 0 && op.p < 1)) form.refuse("dropout rate " + std::to_string(op.p), "at least 0 and below 1");
          return {.threshold = static_cast<std::uint32_t>(op.p * 0x1p32),
                  .scale = 1 / (1 - op.p),
                  .site = static_cast<std::uint64_t>(op.site)};
        } else {
          form.refuse("no dropout", "an operator that drops");
        }
      },
      form.what.op);
}

std::uint64_t drop_stream(const OpArguments& arguments, const DropRule& rule, std::int64_t sample) {
  return mix_keys(mix_keys(mix_keys(name_key("dropout"), arguments.layer), rule.site), static_cast<std::uint64_t>(sample));
}

void fill_mask(std::uint64_t seed, std::uint64_t stream, std::int64_t first, std::int64_t count, std::uint32_t threshold,
               std::uint8_t* keep) {
  constexpr std::int64_t blocks = 64;
  std::array<PhiloxBlock, blocks> words;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t skip = (first + done) % 4;
    const std::int64_t here = std::min(count - done, 4 * blocks - skip);
    philox_words(seed, stream, static_cast<std::uint64_t>((first + done) / 4),
                 std::span(words).first(static_cast<std::size_t>((skip + here + 3) / 4)));
    const std::uint32_t* word = words[0].data() + skip;
#pragma omp simd
    for (std::int64_t i = 0; i < here; ++i) keep[done + i] = word[i] >= threshold ? 1 : 0;
    done += here;
  }
}

namespace {

// Runs of contiguous elements of one sample: rows [position, sample] of h columns, or maps [sample, head, query * key].
struct MaskLayout {
  std::int64_t runs = 0, length = 0, samples = 1;
  bool maps = false;
  std::int64_t heads = 0;              // of this rank
  std::int64_t queries = 0, keys = 0;  // of a map
  bool sequence_parallel = false;      // positions start at tp_rank * positions
  SequenceSplit split = {};
};

MaskLayout mask_layout(const Form& form) {
  const auto& dims = form.dims(0);
  if (dims.size() == 4)
    return {.runs = dims[0] * dims[1],
            .length = dims[2] * dims[3],
            .samples = dims[0],
            .maps = true,
            .heads = dims[1],
            .queries = dims[2],
            .keys = dims[3],
            .split = form.as<ops::Dropout>().split};
  if (dims.size() != 3) form.refuse(std::to_string(dims.size()) + " dimensions", "3 (rows) or 4 (attention maps)");
  return {.runs = dims[0] * dims[1],
          .length = dims[2],
          .samples = dims[0],
          .sequence_parallel = form.as<ops::Dropout>().sequence_parallel,
          .split = form.as<ops::Dropout>().split};
}

// Of a map whose queries are those of one context-parallel rank and whose keys come from all.
void make_map_mask(const MaskLayout& layout, const DropRule& rule, const OpArguments& arguments, std::uint64_t stream,
                   std::int64_t head, std::uint8_t* mask) {
  const RowPositions queries = layout.split.rows_of(arguments.cp_rank, layout.queries);
  const std::int64_t rows = layout.keys / layout.split.parts();  // of a rank
  for (std::int64_t q = 0; q < layout.queries; ++q) {
    const std::int64_t row = head * layout.queries * layout.split.parts() + queries.position(q);
    for (int rank = 0; rank < layout.split.parts(); ++rank)
      for_each_stretch(layout.split.rows_of(rank, rows), rows, rows,
                       [&](std::int64_t key, std::int64_t position, std::int64_t count) {
                         fill_mask(arguments.seed, stream, row * layout.keys + position, count, rule.threshold,
                                   mask + q * layout.keys + rank * rows + key);
                       });
  }
}

void make_mask(const MaskLayout& layout, const DropRule& rule, const OpArguments& arguments, std::uint8_t* mask) {
  const RowPositions held =
      layout.maps ? RowPositions{} : held_rows(layout.split, layout.runs / layout.samples, layout.sequence_parallel, arguments);
  for (std::int64_t run = 0; run < layout.runs; ++run) {
    const std::int64_t sample = layout.maps ? run / layout.heads : run % layout.samples;
    const std::int64_t place = layout.maps ? first_head(layout.split, layout.heads, arguments) + run % layout.heads
                                           : held.position(run / layout.samples);
    const std::uint64_t stream = drop_stream(arguments, rule, arguments.first_sample + sample);
    if (layout.maps && layout.split.parts() > 1)
      make_map_mask(layout, rule, arguments, stream, place, mask + run * layout.length);
    else
      fill_mask(arguments.seed, stream, place * layout.length, layout.length, rule.threshold, mask + run * layout.length);
  }
}

template <class T>
void drop_run(const T* x, const T* skip, const T* bias, const std::uint8_t* keep, T scale, std::int64_t length, T* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < length; ++i) {
    const T sum = bias ? x[i] + bias[i] : x[i];
    y[i] = (skip ? skip[i] : T(0)) + (keep[i] ? sum * scale : T(0));
  }
}

template <class T>
Kernel<T> dropout_forward(const Form& form, MaskLayout layout, DropRule rule) {
  const DropOperands operands = drop_operands(form, layout.runs, layout.length);
  return {.run = [layout, rule, operands](const Call<T>& call) {
    auto* mask = reinterpret_cast<std::uint8_t*>(call.writes[1].data);
    make_mask(layout, rule, call.arguments, mask);
    for (std::int64_t run = 0; run < layout.runs; ++run) {
      const std::int64_t at = run * layout.length;
      drop_run(call.in[0] + at, operands.skip ? call.in[1] + at : nullptr, operands.bias ? call.in[2] : nullptr, mask + at,
               static_cast<T>(rule.scale), layout.length, call.out[0] + at);
    }
  }};
}

// dx = dy keep scale; with a bias its gradient is the column sum of the same.
template <class T>
Kernel<T> dropout_backward(const Form& form, MaskLayout layout, DropRule rule) {
  const auto [skip, bias, input] = drop_operands(form, layout.runs, layout.length);
  const bool add = form.what.accumulate, add_weights = form.what.accumulate_weights;
  return {.run = [layout, rule, bias = bias, input = input, add, add_weights](const Call<T>& call) {
    const auto* mask = reinterpret_cast<const std::uint8_t*>(call.reads[1].data);
    T* dx = input ? call.out[0] : nullptr;
    T* db = bias ? call.out[input ? 1 : 0] : nullptr;
    if (db && !add_weights) std::fill_n(db, layout.length, T(0));
    const T scale = static_cast<T>(rule.scale);
    for (std::int64_t run = 0; run < layout.runs; ++run) {
      const T* dy = call.in[0] + run * layout.length;
      const std::uint8_t* keep = mask + run * layout.length;
#pragma omp simd
      for (std::int64_t i = 0; i < layout.length; ++i) {
        const T g = keep[i] ? dy[i] * scale : T(0);
        if (dx) dx[run * layout.length + i] = (add ? dx[run * layout.length + i] : T(0)) + g;
        if (db) db[i] += g;
      }
    }
  }};
}

}  // namespace

template <class T>
Kernel<T> make_dropout(const Form& form) {
  const MaskLayout layout = mask_layout(form);
  const DropRule rule = drop_rule(form);
  const std::size_t mask = 1;
  const std::span<const Operand> side = form.forward() ? form.writes : form.reads;
  if (side.size() <= mask || side[mask].dtype != DType::U8) form.refuse("no uint8 mask", "a mask as second operand");
  if (form.forward()) return dropout_forward<T>(form, layout, rule);
  return dropout_backward<T>(form, layout, rule);
}

template Kernel<float> make_dropout(const Form&);
template Kernel<double> make_dropout(const Form&);

}  // namespace foreshard::host
