// Makers for compression (Encode, Decode) and for token selection; on the host exec/host/host_encode.cpp, host_token_rows.cpp.
#include <algorithm>

#include "exec/cuda_ops/gpu_kernel.h"

namespace foreshard::gpu {

namespace {

constexpr std::int64_t kMostParts = 256, kFewestNumbers = 16384, kBinsOfPart = 4096;

std::int64_t chunks_of(std::int64_t elements) {
  return std::clamp<std::int64_t>(ceil_div(elements, kFewestNumbers), 1, kMostParts);
}

// The parts that an instruction encodes or decodes: all, or the one of the rank's slice.
struct Parts {
  ops::CodeForm form = {};
  std::int64_t elements = 0, length = 0;
  bool sliced = false;

  Parts(const host::Form& of, const ops::CodeForm& how) : form(how), elements(of.dims(0, 1)[0]), sliced(of.what.slice.valid()) {
    length = form.part_elements(elements);
    if (elements >= INT32_MAX) of.refuse(std::to_string(elements) + " elements", "places in 32 bits");
  }
  std::int64_t used(std::int64_t part) const { return std::clamp<std::int64_t>(elements - part * length, 0, length); }
  std::int64_t own() const { return sliced ? length : elements; }
  std::int64_t count() const { return sliced ? 1 : form.parts; }
};

View words(const Operand& bytes, bool writes) {
  return {.data = bytes.data, .elements = bytes.elements / 4, .type = Type::F32, .writes = writes};
}

struct Encoding {
  ops::Encode op;
  Parts parts;

  std::int64_t chunks() const { return chunks_of(op.form.code == ops::Code::Largest ? parts.elements : parts.length); }
  std::int64_t per_chunk() const {
    return ceil_div(op.form.code == ops::Code::Largest ? parts.elements : parts.length, chunks());
  }
  bool added() const { return op.feedback || op.averaging > 0; }  // the encoded array is not the array that is read
  // Layout of scratch memory: counts, then `ranges` or `found`, then the array to encode if no operand holds it.
  std::int64_t counts() const {
    if (op.form.code == ops::Code::Largest) return 256 * chunks();
    return op.form.code == ops::Code::Segments ? kBinsOfPart * chunks() * parts.count() : 0;
  }
  std::int64_t ranges() const { return std::max<std::int64_t>(2, 2 * chunks() * parts.count()); }
  Bytes scratch() const { return {4 * (counts() + ranges() + (added() && !op.feedback ? parts.own() : 0))}; }

  void operator()(const Launcher& on, const Call& call) const {
    std::size_t read = 1, write = 1;
    const View moment = op.averaging > 0 ? reads(call.reads[read++]) : View{};
    View left = op.feedback ? writes(call.writes[write++]) : View{};
    const View velocity = op.velocity ? writes(call.writes[write++]) : View{};
    View x = reads(call.reads[0]);
    if (added()) {
      x = op.feedback ? left : scratch_array(call.scratch + 4 * (counts() + ranges()), parts.own(), Type::F32);
      const double beta = call.arguments.optimizer.beta1;
      CodeSourceArgs args = {
          .x = reads(call.reads[0]), .moment = moment, .velocity = velocity, .left = x, .count = parts.own()};
      args.rest = op.averaging > 0 ? static_cast<float>(1 - beta) : 1.0f;
      args.beta =
          op.averaging > 0 ? static_cast<float>(beta * call.arguments.loss_scale / static_cast<double>(op.averaging)) : 0.0f;
      args.momentum = static_cast<float>(op.momentum), args.adds = op.feedback;
      on.elements(KernelId::code_source, 4 * parts.own(), args);
    }
    const View codes = words(call.writes[0], true);
    const View counts = scratch_array(call.scratch, this->counts(), Type::F32);
    const View rest = scratch_array(call.scratch + 4 * this->counts(), ranges(), Type::F32);
    if (op.form.code == ops::Code::Largest) return largest(on, x, codes, left, velocity, counts, rest);
    CodeArgs args = {.x = x, .codes = codes, .left = left};
    args.elements = parts.sliced ? parts.used(call.arguments.slice) : parts.elements;
    args.length = parts.length, args.part_words = parts.form.part_bytes(parts.length).value / 4;
    args.per_chunk = per_chunk(), args.segments = op.form.segments, args.bits = static_cast<int>(op.form.bits);
    if (op.form.code == ops::Code::Signs)
      return on.launch(KernelId::code_signs, ceil_div(parts.length, ops::CodeForm::kSignBlock), parts.count(), 256, args);
    if (op.form.code == ops::Code::EightBits)
      return on.launch(KernelId::code_bytes, ceil_div(parts.length, ops::CodeForm::kByteBlock), parts.count(), 256, args);
    const CodeArgs last = args;
    args.codes = args.left = {}, args.ranges = rest;
    on.launch(KernelId::code_range, chunks(), parts.count(), 256, args);
    args.counts = counts;
    on.launch(KernelId::code_bins, chunks(), parts.count(), 256, args);
    args.x = {}, args.codes = codes, args.per_chunk = chunks();
    on.launch(KernelId::code_borders, 1, parts.count(), 256, args);
    args = last;
    on.launch(KernelId::code_segments, std::min<std::int64_t>(ceil_div(parts.length, 1024), 4096), parts.count(), 256, args);
  }

  void largest(const Launcher& on, const View& x, const View& codes, const View& left, const View& velocity, const View& counts,
               const View& found) const {
    TopMagnitudesArgs args = {.x = x, .counts = counts, .found = found};
    args.elements = parts.elements, args.kept = op.form.kept;
    for (args.shift = 24; args.shift >= 0; args.shift -= 8) {
      args.per_chunk = per_chunk();
      on.launch(KernelId::top_digits, chunks(), 1, 256, args);
      args.x = {}, args.per_chunk = chunks();
      on.launch(KernelId::top_next_digit, 1, 1, 256, args);
      args.x = x;
    }
    args.per_chunk = per_chunk();
    on.launch(KernelId::top_tally, chunks(), 1, 256, args);
    args.codes = codes, args.left = left, args.velocity = velocity;
    on.launch(KernelId::top_pairs, chunks(), 1, 256, args);
  }
};

struct Decoding {
  ops::Decode op;
  Parts parts;
  bool narrow;  // y is not in fp32
  bool accumulates;

  void operator()(const Launcher& on, const Call& call) const {
    const View codes = words(call.reads[0], false);
    if (op.form.code == ops::Code::Largest) return pairs(on, call, codes);
    Operand y = call.writes[0];
    // only this rank's slice of y
    if (const Bytes each = size_of(y.dtype); op.adds && parts.sliced && y.elements > parts.own())
      y.data += each.value * parts.own() * call.arguments.slice, y.elements = parts.own();
    DecodeArgs args = {.codes = codes, .y = writes(y)};
    args.accumulates = accumulates;
    args.length = op.adds ? parts.own() : parts.length, args.count = op.adds ? args.length : parts.elements;
    args.used = parts.sliced ? parts.used(call.arguments.slice) : parts.elements;
    args.parts = op.form.parts, args.part_words = parts.form.part_bytes(args.length).value / 4;
    args.segments = op.form.segments, args.bits = static_cast<int>(op.form.bits), args.adds = op.adds;
    args.how = op.form.code == ops::Code::Signs       ? CodeHow::Signs
               : op.form.code == ops::Code::EightBits ? CodeHow::Bytes
                                                      : CodeHow::Segments;
    on.elements(KernelId::decode_array, 4 * args.count, args);
  }

  void pairs(const Launcher& on, const Call& call, const View& codes) const {
    Operand sum = call.writes[0];
    if (narrow) sum = {call.scratch, parts.elements, DType::F32};
    sum.elements = parts.elements;
    on.fill(sum, std::byte{0});
    for (std::int64_t p = 0; p < op.form.parts; ++p) {
      PairsArgs args = {.codes = codes, .y = writes(sum), .kept = op.form.kept};
      args.codes.data = static_cast<std::byte*>(codes.data) + 8 * op.form.kept * p, args.codes.elements = 2 * op.form.kept;
      on.elements(KernelId::scatter_pairs, 4 * op.form.kept, args);
    }
    if (narrow)
      on.elements(KernelId::cast_array, 4 * parts.elements,
                  CastArgs{.x = reads(sum), .y = writes(call.writes[0]), .count = parts.elements});
  }
};

}  // namespace

static void refuse_floats(const host::Form& form, ops::Code code) {
  if (code == ops::Code::Floats)
    form.refuse("codes of 8-bit floats", "a code that GPUs have a kernel for: 8-bit integers (eight-bit)");
}

Kernel make_encode(const host::Form& form) {
  refuse_floats(form, form.as<ops::Encode>().form.code);
  const Encoding run{form.as<ops::Encode>(), Parts(form, form.as<ops::Encode>().form)};
  std::vector<std::int64_t> reads = {run.parts.own()};
  std::vector<std::int64_t> writes = {(run.parts.form.part_bytes(run.parts.length) * run.parts.count()).value};
  if (run.op.averaging > 0) reads.push_back(run.parts.own());
  for (const bool state : {run.op.feedback, run.op.velocity})
    if (state) reads.push_back(run.parts.own()), writes.push_back(run.parts.own());
  form.expect(reads, writes);
  if (form.writes[0].dtype != DType::U8) form.refuse("codes that are no bytes", "uint8");
  if (run.op.form.code == ops::Code::Largest &&
      (run.op.form.parts != 1 || run.op.form.kept < 1 || run.op.form.kept > run.parts.elements))
    form.refuse(std::to_string(run.op.form.kept) + " numbers kept", "between 1 and all of one part");
  return {.run = run, .scratch = run.scratch()};
}

Kernel make_decode(const host::Form& form) {
  const auto& op = form.as<ops::Decode>();
  refuse_floats(form, op.form.code);
  const Decoding run{op, Parts(form, op.form), form.writes.empty() || form.writes[0].dtype != DType::F32, form.what.accumulate};
  if (run.accumulates && (!op.adds || op.form.code == ops::Code::Largest))
    form.refuse("codes that are added to what is there", "codes of parts, not of the largest numbers");
  const std::int64_t own = op.adds ? run.parts.own() : run.parts.elements, length = op.adds ? own : run.parts.length;
  const bool whole = op.adds && run.parts.sliced && !form.writes.empty() && form.writes[0].elements > own;
  form.expect({(run.parts.form.part_bytes(length) * op.form.parts).value}, {whole ? own * op.form.parts : own});
  const bool sums = op.form.code == ops::Code::Largest && run.narrow;
  return {.run = run, .scratch = sums ? Bytes{4 * run.parts.elements} : Bytes{}};
}

Kernel make_token_scores(const host::Form& form) {
  const auto& dims = form.dims(0, 4);
  const std::int64_t b = dims[0], maps = dims[1] * dims[2], keys = dims[3];
  form.expect({b * maps * keys}, {b * keys});
  return {.run =
              [b, maps, keys](const Launcher& on, const Call& call) {
                for (std::int64_t sample = 0; sample < b; ++sample) {
                  Operand from = call.reads[0], to = call.writes[0];
                  from.data += size_of(from.dtype).value * sample * maps * keys, from.elements = maps * keys;
                  to.data += size_of(to.dtype).value * sample * keys, to.elements = keys;
                  on.sum_columns({.x = reads(from), .out = writes(to), .rows = maps, .columns = keys}, call.scratch);
                }
              },
          .scratch = column_sum_scratch(maps, keys)};
}

Kernel make_keep_tokens(const host::Form& form) {
  const auto& dims = form.dims(0, 3);
  const std::int64_t b = dims[0], parts = form.as<ops::KeepTokens>().parts, s = dims[1] / parts, k = dims[2] / parts;
  form.expect({b * dims[1]}, {b * dims[2]});
  if (k > s) form.refuse(std::to_string(k) + " tokens kept", "at most " + std::to_string(s));
  return {.run = [b, parts, s, k](const Launcher& on, const Call& call) {
    KeepTokensArgs args{.scores = reads(call.reads[0]), .tokens_kept = writes(call.writes[0])};
    args.tokens = s, args.kept = k, args.parts = parts;
    on.launch(KernelId::keep_tokens, b * parts, 1, 256, args);
  }};
}

Kernel make_kept_rows(const host::Form& form, bool takes, std::int64_t parts) {
  const auto& dims = form.dims(0, 4);
  const std::int64_t b = dims[0], s = dims[1], k = dims[2], h = dims[3];
  form.expect({takes ? b * s * h : b * k * h, b * k * parts}, {takes ? b * k * h : b * s * h});
  const bool add = form.what.accumulate;
  return {.run = [=](const Launcher& on, const Call& call) {
    if (!takes && !add) {
      Operand all = call.writes[0];
      all.elements = b * s * h;
      on.fill(all, std::byte{0});
    }
    KeptRowsArgs args = {.x = reads(call.reads[0]), .tokens = reads(call.reads[1]), .y = writes(call.writes[0])};
    args.samples = b, args.kept = k, args.h = h, args.takes = takes, args.accumulate = add;
    args.parts = parts, args.part = parts == 1 ? 0 : call.arguments.tp_rank, args.first = args.part * s;
    on.elements(KernelId::kept_rows, 4 * b * k * h, args);
  }};
}

}  // namespace foreshard::gpu
