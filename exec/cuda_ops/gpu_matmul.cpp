// Makers for linear layers, y [m, n] = x [m, k] w [n, k]^T (+ bias), and for attention in separate operators, as products per head.
#include <array>

#include "exec/cuda_ops/gpu_kernel.h"
#include "exec/host/host_heads.h"
#include "exec/host/host_matmul.h"

namespace foreshard::gpu {

Kernel make_eight_bit_matmul(const host::Form& form, const std::vector<std::int64_t>& parts, Runtime* libraries);

namespace {

using host::LinearSizes;

Matrix matrix(const Operand& operand, std::int64_t at, std::int64_t row, bool transposed = false, std::int64_t step = 0) {
  return {.data = operand.data + at * size_of(operand.dtype).value,
          .row = row,
          .step = step,
          .transposed = transposed,
          .dtype = operand.dtype};
}

Kernel linear_forward(const host::Form& form, const LinearSizes& sizes) {
  const bool bias = host::expect_linear_forward(form, sizes);
  expect_factors(form, form.reads[0], form.reads[1]);
  if (bias && type_of(form.reads[2].dtype) != type_of(form.writes[0].dtype))
    form.refuse(std::string("a bias in ") + name_of(form.reads[2].dtype), name_of(form.writes[0].dtype));
  return {.run =
              [sizes, bias](const Launcher& on, const Call& call) {
                std::int64_t at = 0;
                for (std::size_t part = 0; part < sizes.columns.size(); ++part) {
                  const std::int64_t columns = sizes.columns[part];
                  Multiply product = {.m = sizes.m, .n = columns, .k = sizes.k};
                  product.a = matrix(call.reads[0], 0, sizes.k), product.b = matrix(call.reads[1], at * sizes.k, sizes.k, true);
                  product.c = matrix(call.writes[part], 0, columns);
                  if (bias) product.bias = call.reads[2].data + at * size_of(call.reads[2].dtype).value;
                  on.multiply(product);
                  at += columns;
                }
              },
          .multiplies = true};
}

Kernel linear_input_grad(const host::Form& form, const LinearSizes& sizes) {
  const auto [parts, weight] = host::expect_linear_input_grad(form, sizes);
  expect_factors(form, form.reads[0], form.reads[weight]);
  const bool accumulate = form.what.accumulate, first_token = sizes.first_token;
  return {.run =
              [=, parts = parts, weight = weight](const Launcher& on, const Call& call) {
                if (first_token && !accumulate) on.fill(call.writes[0], std::byte{0});
                std::int64_t at = 0;
                for (std::size_t part = 0; part < parts; ++part) {
                  const std::int64_t columns = sizes.columns[part];
                  Multiply product = {.m = sizes.m, .n = sizes.k, .k = columns};
                  product.a = matrix(call.reads[part], 0, columns);
                  product.b = matrix(call.reads[weight], at * sizes.k, sizes.k);
                  product.c = matrix(call.writes[0], 0, sizes.k);
                  product.beta = accumulate || part > 0 ? 1.0F : 0.0F;
                  on.multiply(product);
                  at += columns;
                }
              },
          .multiplies = true};
}

// The gradients of weight and bias. The product computes the bias gradient in its epilogue if the library supports it.
struct WeightGrad {
  LinearSizes sizes = {};
  bool accumulate = false, bias = false, summed = false;

  // Whether the epilogue can write the sums directly to the bias gradient.
  bool straight(const Call& call) const { return !accumulate && call.writes[1].dtype == call.writes[0].dtype; }
  View bias_grad(const Call& call, std::int64_t at) const {
    View out = writes(call.writes[1]);
    out.data = static_cast<std::byte*>(out.data) + at * bytes_of(out.type), out.elements -= at;
    return out;
  }
  // Calls body(product, part of dy, its first column) for each part.
  template <class F>
  void each(const Call& call, F body) const {
    std::int64_t at = 0;
    for (std::size_t part = 0; part < sizes.columns.size(); ++part) {
      const std::int64_t columns = sizes.columns[part];
      Multiply product = {.m = columns, .n = sizes.k, .k = sizes.m};
      product.a = matrix(call.reads[part], 0, columns, true), product.b = matrix(call.reads[sizes.columns.size()], 0, sizes.k);
      product.c = matrix(call.writes[0], at * sizes.k, sizes.k);
      product.beta = accumulate ? 1.0F : 0.0F;
      if (summed) {
        product.sums = Sums::OfFactor;
        product.sums_to = straight(call) ? static_cast<std::byte*>(bias_grad(call, at).data) : call.scratch;
      }
      body(product, part, at);
      at += columns;
    }
  }
  void finish(const Launcher& on, const Call& call, std::size_t part, std::int64_t at) const {
    const std::int64_t columns = sizes.columns[part];
    ColumnSumArgs sum = {.x = reads(call.reads[part]), .out = bias_grad(call, at), .rows = sizes.m, .columns = columns};
    sum.accumulate = accumulate;
    if (!summed) return on.sum_columns(sum, call.scratch);
    if (!straight(call)) on.add_sums(scratch_array(call.scratch, columns, type_of(call.writes[0].dtype)), sum.out, accumulate);
  }
  bool can_be_summed(const host::Form& form, Runtime& library) const {
    alignas(256) static std::byte scratch;  // stands in for the stream's scratch memory, which has the same alignment
    const OpArguments none;
    const Call planned{
        .reads = form.reads, .writes = form.writes, .scratch = &scratch, .staged = {}, .table = {}, .arguments = none};
    bool all = true;
    each(planned, [&](const Multiply& product, std::size_t, std::int64_t) {
      all = all && !library.algorithms(product, kMultiplyWorkspace, 1).empty();
    });
    return all;
  }
};

Kernel linear_weight_grad(const host::Form& form, const LinearSizes& sizes, Runtime* libraries) {
  const std::size_t parts = sizes.columns.size();
  WeightGrad grad{.sizes = sizes, .accumulate = form.what.accumulate, .bias = host::expect_linear_weight_grad(form, sizes)};
  expect_factors(form, form.reads[0], form.reads[parts]);
  if (grad.bias && libraries) {
    grad.summed = true;
    grad.summed = grad.can_be_summed(form, *libraries);
  }
  return {.run =
              [grad](const Launcher& on, const Call& call) {
                grad.each(call, [&](const Multiply& product, std::size_t part, std::int64_t at) {
                  on.multiply(product);
                  if (grad.bias) grad.finish(on, call, part, at);
                });
              },
          .scratch = !grad.bias    ? Bytes{}
                     : grad.summed ? size_of(form.writes[0].dtype) * sizes.n
                                   : column_sum_scratch(sizes.m, sizes.n),
          .multiplies = true};
}

}  // namespace

Kernel make_matmul(const host::Form& form, Runtime* libraries) {
  const LinearSizes sizes = host::linear_sizes(form);
  if (form.what.shapes[0].dtype == DType::F8) {
    const Kernel checked = form.forward()                         ? linear_forward(form, sizes)
                           : form.what.phase == Phase::InputGrad  ? linear_input_grad(form, sizes)
                           : form.what.phase == Phase::WeightGrad ? linear_weight_grad(form, sizes, nullptr)
                                                                  : Kernel{};
    if (checked.run) return make_eight_bit_matmul(form, sizes.columns, libraries);
  }
  if (form.forward()) return linear_forward(form, sizes);
  if (form.what.phase == Phase::InputGrad) return linear_input_grad(form, sizes);
  if (form.what.phase == Phase::WeightGrad) return linear_weight_grad(form, sizes, libraries);
  form.refuse("this phase", "forward, recompute, input gradient or weight gradient");
}

namespace {

// Batches of products: batch j has the j-th query head of every key-value head of a sample. Products that are added to the same keys are in
// different batches, so their order is fixed.
struct HeadBatch {
  const host::HeadLayout& at;
  std::int64_t sample = 0, head = 0;  // the first head of the batch; the next one is `group` heads further

  std::int64_t group() const { return at.heads / at.kv_heads; }
  Matrix query(const Operand& o, bool transposed = false) const {
    return matrix(o, at.query_at(sample, head), at.query_stride(), transposed, group() * at.dim);
  }
  Matrix key(const Operand& o, bool transposed = false) const {
    return matrix(o, at.key_at(sample, head), at.key_stride(), transposed, at.dim);
  }
  Matrix value(const Operand& o, bool transposed = false) const {
    return matrix(o, at.value_at(sample, head), at.key_stride(), transposed, at.dim);
  }
  Matrix context(const Operand& o) const {
    return matrix(o, at.context_at(sample, head), at.context_stride(), false, group() * at.dim);
  }
  Matrix map(const Operand& o, bool transposed = false) const {
    const std::int64_t size = at.queries * at.keys;
    return matrix(o, (sample * at.heads + head) * size, at.keys, transposed, group() * size);
  }
};

// A kernel of products for each batch of heads, after `begin`.
template <class Begin, class Products>
Kernel batched(const host::HeadLayout& at, Begin begin, Products products) {
  return {.run =
              [=](const Launcher& on, const Call& call) {
                begin(on, call);
                for (std::int64_t sample = 0; sample < at.samples; ++sample)
                  for (std::int64_t j = 0; j < at.heads / at.kv_heads; ++j)
                    products(on, call, HeadBatch{.at = at, .sample = sample, .head = j});
              },
          .multiplies = true};
}
void nothing(const Launcher&, const Call&) {}

// c [m, n] = a b + beta c, for each head of a batch.
Multiply product_of(const HeadBatch& batch, std::array<std::int64_t, 3> m_n_k, const Matrix& a, const Matrix& b,
                    const Matrix& c, float beta = 0) {
  return {.m = m_n_k[0], .n = m_n_k[1], .k = m_n_k[2], .count = batch.at.kv_heads, .a = a, .b = b, .c = c, .beta = beta};
}

Kernel scores_grad(const host::Form& form, const host::HeadLayout& at, std::int64_t maps) {
  const bool apart = at.apart, accumulate = form.what.accumulate;
  form.expect(apart ? std::vector{maps, at.query_size(), at.key_size()} : std::vector{maps, at.query_size()},
              apart ? std::vector{at.query_size(), at.key_size()} : std::vector{at.query_size()});
  const auto clear = [=](const Launcher& on, const Call& call) {
    if (accumulate) return;
    on.fill(call.writes[0], std::byte{0});
    if (apart) on.fill(call.writes[1], std::byte{0});
  };
  return batched(at, clear, [=](const Launcher& on, const Call& call, const HeadBatch& b) {
    const Operand &q = call.reads[1], &k = call.reads[apart ? 2 : 1];
    const Operand &dq = call.writes[0], &dk = call.writes[apart ? 1 : 0];
    on.multiply(product_of(b, {at.queries, at.dim, at.keys}, b.map(call.reads[0]), b.key(k), b.query(dq), 1));
    on.multiply(product_of(b, {at.keys, at.dim, at.queries}, b.map(call.reads[0], true), b.query(q), b.key(dk), 1));
  });
}

Kernel weighted_values_grad(const host::Form& form, const host::HeadLayout& at, std::int64_t maps) {
  form.expect({at.samples * at.queries * at.heads * at.dim, maps, at.key_size()}, {maps, at.key_size()});
  const bool accumulate = form.what.accumulate;
  const auto clear = [=](const Launcher& on, const Call& call) {
    if (!accumulate) on.fill(call.writes[1], std::byte{0});
  };
  return batched(at, clear, [at, beta = accumulate ? 1.0F : 0.0F](const Launcher& on, const Call& call, const HeadBatch& b) {
    const Operand &dy = call.reads[0], &p = call.reads[1], &v = call.reads[2];
    on.multiply(product_of(b, {at.queries, at.keys, at.dim}, b.context(dy), b.value(v, true), b.map(call.writes[0]), beta));
    on.multiply(product_of(b, {at.keys, at.dim, at.queries}, b.map(p, true), b.context(dy), b.value(call.writes[1]), 1));
  });
}

}  // namespace

Kernel make_scores(const host::Form& form) {
  const auto& dims = form.dims(0, 4);
  const std::size_t operands = form.forward() ? form.reads.size() : form.writes.size();
  const host::HeadLayout at = host::head_layout(form, host::samples_of(form), dims[1], dims[2], operands == 2);
  const std::int64_t maps = dims[0] * dims[1] * dims[2];
  if (form.what.phase == Phase::InputGrad) return scores_grad(form, at, maps);
  if (!form.forward()) form.refuse("this phase", "forward, recompute or input gradient");
  form.expect(at.apart ? std::vector{at.query_size(), at.key_size()} : std::vector{at.query_size()}, {maps});
  return batched(at, nothing, [at](const Launcher& on, const Call& call, const HeadBatch& b) {
    on.multiply(product_of(b, {at.queries, at.keys, at.dim}, b.query(call.reads[0]), b.key(call.reads[at.apart ? 1 : 0], true),
                           b.map(call.writes[0])));
  });
}

Kernel make_weighted_values(const host::Form& form) {
  const auto& dims = form.dims(0, 4);
  host::HeadLayout at = host::head_layout(form, host::samples_of(form), dims[1], dims[3], false);
  const std::int64_t maps = dims[0] * dims[1] * dims[3];
  const std::size_t key = form.forward() ? 1 : 2;
  at.apart = form.reads.size() > key && form.reads[key].elements < at.key_size();
  if (form.what.phase == Phase::InputGrad) return weighted_values_grad(form, at, maps);
  if (!form.forward()) form.refuse("this phase", "forward, recompute or input gradient");
  form.expect({maps, at.key_size()}, {at.samples * at.queries * at.heads * at.dim});
  return batched(at, nothing, [at](const Launcher& on, const Call& call, const HeadBatch& b) {
    on.multiply(
        product_of(b, {at.queries, at.dim, at.keys}, b.map(call.reads[0]), b.value(call.reads[1]), b.context(call.writes[0])));
  });
}

}  // namespace foreshard::gpu
