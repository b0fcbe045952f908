// Codes of core/op/codec.h on stored operands: what is added before encoding, what is kept for the next time.
#include <algorithm>
#include <cstring>

#include "exec/arithmetic/host_codec.h"
#include "exec/arithmetic/host_convert.h"
#include "exec/host/host_kernel.h"

namespace foreshard::host {

namespace {

// Which parts an instruction works on: all, or the one of the rank's slice, of which the operands are.
struct PartsOf {
  ops::CodeForm form = {};
  std::int64_t elements = 0, length = 0;  // of the array, of a part
  bool sliced = false;

  PartsOf(const Form& of, const ops::CodeForm& how) : form(how), elements(of.dims(0, 1)[0]), sliced(of.what.slice.valid()) {
    const bool quarters = form.segments == 0 || (form.segments >= 4 && form.segments <= kMostSegments);
    if (form.code == ops::Code::Segments && form.bits != 2 && form.bits != 4 && form.bits != 8)
      of.refuse(std::to_string(form.bits) + " bits", "2, 4 or 8");
    if (form.code == ops::Code::Segments && (!quarters || form.levels() < 1 || (1 << form.bits) % form.equal_segments() != 0))
      of.refuse(std::to_string(form.segments) + " segments", "0, 4, 8 or 16, a level in each");
    if (form.parts < 1) of.refuse(std::to_string(form.parts) + " parts", "at least 1");
    length = form.part_elements(elements);
  }
  // Of a part, those that are no padding.
  std::int64_t used(std::int64_t part) const { return std::clamp<std::int64_t>(elements - part * length, 0, length); }
  std::int64_t own_elements() const { return sliced ? length : elements; }
};

template <class T>
void multiply_add(T* to, T factor, const T* from, T other, std::int64_t count) {  // to = factor from + other to
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) to[i] = factor * from[i] + other * to[i];
}

template <class T>
struct EncodeRun {
  ops::Encode op;
  PartsOf parts;

  void operator()(const Call<T>& call) const {
    const std::int64_t bytes = parts.form.part_bytes(parts.length).value;
    if (parts.sliced) return part(call, 0, parts.used(call.arguments.slice), call.writes[0].data);
    for (std::int64_t p = 0; p < parts.form.parts; ++p)
      part(call, p * parts.length, parts.used(p), call.writes[0].data + p * bytes);
  }

  void part(const Call<T>& call, std::int64_t first, std::int64_t count, std::byte* codes) const {
    T *x = call.scratch, *other = x + parts.length;
    std::size_t read = 0, write = 1;
    load(call.reads[read++], first, count, x);
    if (op.averaging > 0) {
      const double beta1 = call.arguments.optimizer.beta1;
      load(call.reads[read++], first, count, other);
      multiply_add(x, static_cast<T>(beta1 * call.arguments.loss_scale / static_cast<double>(op.averaging)), other,
                   static_cast<T>(1 - beta1), count);
    }
    const Operand* left = op.feedback ? &call.writes[write++] : nullptr;
    const Operand* velocity = op.velocity ? &call.writes[write++] : nullptr;
    if (velocity) {
      load(*velocity, first, count, other);
      multiply_add(x, static_cast<T>(op.momentum), other, T(1), count);
      store<T>(x, count, *velocity, first);
    }
    if (left) {
      load(*left, first, count, other);
      multiply_add(x, T(1), other, T(1), count);
    }
    encode_part<T>(parts.form, {x, static_cast<std::size_t>(count)}, parts.length, codes, left ? other : nullptr);
    if (left) store<T>(other, count, *left, first);
    if (!velocity) return;
    const T none = 0;
    for (std::int64_t i = 0; i < parts.form.kept; ++i) {
      std::int32_t place = 0;
      std::memcpy(&place, codes + 4 * (parts.form.kept + i), sizeof place);
      store<T>(&none, 1, *velocity, first + place);
    }
  }
};

template <class T>
struct DecodeRun {
  bool adds = false, accumulates = false;
  PartsOf parts;

  void operator()(const Call<T>& call) const {
    const std::int64_t length = adds ? parts.own_elements() : parts.length, bytes = parts.form.part_bytes(length).value;
    for (std::int64_t p = 0; p < parts.form.parts; ++p) {
      const std::byte* codes = call.reads[0].data + p * bytes;
      if (!adds) {
        decode_part<T>(parts.form, codes, length, false, {call.scratch, static_cast<std::size_t>(parts.used(p))});
        store<T>(call.scratch, parts.used(p), call.writes[0], p * length);
      } else {
        decode_part<T>(parts.form, codes, length, p > 0, {call.scratch, static_cast<std::size_t>(length)});
      }
    }
    if (!adds) return;
    const std::int64_t used = parts.sliced ? parts.used(call.arguments.slice) : length;
    const std::int64_t first = parts.sliced && call.writes[0].elements > length ? call.arguments.slice * length : 0;
    std::fill(call.scratch + used, call.scratch + length, T(0));
    if (accumulates) {
      load(call.writes[0], first, length, call.scratch + length);
      multiply_add(call.scratch, T(1), call.scratch + length, T(1), length);
    }
    store<T>(call.scratch, length, call.writes[0], first);
  }
};

}  // namespace

template <class T>
Kernel<T> make_encode(const Form& form) {
  const auto& op = form.as<ops::Encode>();
  const PartsOf parts(form, op.form);
  const bool largest = op.form.code == ops::Code::Largest;
  if (largest && (op.form.parts != 1 || op.form.kept < 1 || op.form.kept > parts.elements))
    form.refuse(std::to_string(op.form.kept) + " numbers kept of " + std::to_string(parts.elements),
                "between 1 and all of one part");
  if (op.velocity && !(largest && op.feedback)) form.refuse("a velocity", "one of the largest numbers, with feedback");
  const std::int64_t own = parts.own_elements();
  std::vector<std::int64_t> reads = {own};
  const Bytes payload = parts.form.part_bytes(parts.length) * (parts.sliced ? 1 : parts.form.parts);
  std::vector<std::int64_t> writes = {payload.value};
  if (op.averaging > 0) reads.push_back(own);
  for (const bool state : {op.feedback, op.velocity})
    if (state) reads.push_back(own), writes.push_back(own);
  form.expect(reads, writes);
  if (form.writes[0].dtype != DType::U8) form.refuse("codes that are no bytes", "uint8");
  return {.run = EncodeRun<T>{op, parts}, .scratch = 2 * parts.length, .raw = true};
}

template <class T>
Kernel<T> make_decode(const Form& form) {
  const auto& op = form.as<ops::Decode>();
  const PartsOf parts(form, op.form);
  const std::int64_t own = op.adds ? parts.own_elements() : parts.elements;
  const std::int64_t length = op.adds ? own : parts.length;
  const bool accumulates = form.what.accumulate;
  if (accumulates && !op.adds) form.refuse("codes of one array that are added to it", "codes of several parts");
  const bool whole = op.adds && parts.sliced && !form.writes.empty() && form.writes[0].elements > own;  // the slice of it
  form.expect({(parts.form.part_bytes(length) * parts.form.parts).value}, {whole ? own * parts.form.parts : own});
  return {.run = DecodeRun<T>{op.adds, accumulates, parts}, .scratch = accumulates ? 2 * length : length, .raw = true};
}

template Kernel<float> make_encode(const Form&);
template Kernel<double> make_encode(const Form&);
template Kernel<float> make_decode(const Form&);
template Kernel<double> make_decode(const Form&);

}  // namespace foreshard::host
