// Cases of compression and token selection. Numbers are multiples of 1/64 between -8 and 8, so that sums, borders and residuals are exact.
#include "exec/cuda_checks/case_list.h"

namespace foreshard::gpu {

namespace {

StoredArray exact_numbers(std::int64_t size, DType dtype, std::uint64_t seed) {
  return filled(size, dtype, [x = random_array(size, seed, DType::F64)](std::int64_t i) {
    if (i == 1) return 8.0;
    if (i == 2) return -8.0;
    return std::clamp(std::round(x.at(i) * 64) / 64, -7.0, 7.0);
  });
}

const ops::CodeForm kForms[] = {{.code = ops::Code::Signs},
                                {.code = ops::Code::EightBits},
                                {.code = ops::Code::Segments, .bits = 4},
                                {.code = ops::Code::Segments, .bits = 8},
                                {.code = ops::Code::Segments, .bits = 2, .segments = 4},
                                {.code = ops::Code::Segments, .bits = 4, .segments = 8},
                                {.code = ops::Code::Segments, .bits = 8, .segments = 16}};

std::string name_of(const ops::CodeForm& form) {
  return word(form.code) +
         (form.code == ops::Code::Segments ? std::to_string(form.bits) + "x" + std::to_string(form.segments) : std::string());
}

void add_codes(Cases& all) {
  for (ops::CodeForm form : kForms)
    for (const std::int64_t parts : {1, 3}) {
      const std::int64_t size = 2500;
      form.parts = parts;
      // With segments, all is exact but the residual of 8 bits; an error of one element in the histograms must show.
      const bool counts = form.code == ops::Code::Segments;
      const double tolerance = counts ? kExact : kSingle;
      for (const bool feedback : {false, true}) {
        if (feedback && counts && form.bits == 8) continue;
        KernelCase& encode =
            all.add("encode_" + name_of(form) + (parts > 1 ? "_parts" : "") + (feedback ? "_left" : ""),
                    {.op = ops::Encode{.form = form, .feedback = feedback}, .phase = Phase::Other, .shapes = {{{size}}}}, {},
                    {}, DType::F32, tolerance);
        encode.reads = {exact_numbers(size, feedback ? DType::F32 : DType::BF16, 3)};
        encode.writes = {filled(form.payload(size).value, DType::U8, [](std::int64_t) { return 255.0; })};
        if (!feedback) continue;
        const StoredArray left =
            filled(size, DType::F32, [](std::int64_t i) { return i == 1 || i == 2 ? 0.0 : static_cast<double>(i % 7) / 64; });
        encode.reads.push_back(left), encode.writes.push_back(left);
      }
      const std::vector<StoredArray> codes =
          made_on_host({.op = ops::Encode{.form = form}, .phase = Phase::Other, .shapes = {{{size}}}},
                       {exact_numbers(size, DType::F32, 4)}, {StoredArray(form.payload(size).value, DType::U8)});
      for (const DType dtype : {DType::F32, DType::BF16}) {
        KernelCase& decode =
            all.add("decode_" + name_of(form) + (parts > 1 ? "_parts" : "") + (dtype == DType::BF16 ? "_bf16" : ""),
                    {.op = ops::Decode{.form = form}, .phase = Phase::Other, .shapes = {{{size}}}}, {}, {size}, dtype,
                    dtype == DType::BF16 ? kHalf : kSingle);
        decode.reads = codes;
      }
      if (parts == 1) continue;
      KernelCase& add =
          all.add("add_" + name_of(form),
                  {.op = ops::Decode{.form = form, .adds = true}, .phase = Phase::Other, .shapes = {{{size}}}, .slice = {0}},
                  {}, {form.part_elements(size)});
      add.reads = codes, add.arguments.slice = 2;  // the last part, which is shorter
      KernelCase& more = all.add("add_to_slice_" + name_of(form),
                                 {.op = ops::Decode{.form = form, .adds = true},
                                  .phase = Phase::Other,
                                  .shapes = {{{size}}},
                                  .accumulate = true,
                                  .slice = {0}},
                                 {}, {});
      more.reads = codes, more.writes = {exact_numbers(3 * form.part_elements(size), DType::F32, 8)};
      more.arguments.slice = 1;
      KernelCase& own = all.add("encode_own_" + name_of(form),
                                {.op = ops::Encode{.form = form}, .phase = Phase::Other, .shapes = {{{size}}}, .slice = {0}},
                                {}, {}, DType::F32, tolerance);
      own.reads = {exact_numbers(form.part_elements(size), DType::F32, 6)};
      own.writes = {filled(form.part_bytes(form.part_elements(size)).value, DType::U8, [](std::int64_t) { return 255.0; })};
      own.arguments.slice = 2;
    }
}

void add_largest(Cases& all) {
  const std::int64_t size = 40'000;
  for (const std::int64_t kept : {1, 777, 39'999}) {
    const ops::CodeForm form{.code = ops::Code::Largest, .kept = kept};
    KernelCase& encode = all.add("encode_largest_" + std::to_string(kept),
                                 {.op = ops::Encode{.form = form, .feedback = true, .velocity = true, .momentum = 0.5},
                                  .phase = Phase::Other,
                                  .shapes = {{{size}}}},
                                 {}, {}, DType::F32, kExact);
    const StoredArray left = exact_numbers(size, DType::F32, 8), velocity = exact_numbers(size, DType::F32, 9);
    encode.reads = {exact_numbers(size, DType::F32, 7), left, velocity};
    encode.writes = {filled(8 * kept, DType::U8, [](std::int64_t) { return 255.0; }), left, velocity};
  }
  const std::int64_t some = 3000;
  const ops::CodeForm form{.code = ops::Code::Largest, .kept = 200};
  std::vector<StoredArray> of_rank;
  for (std::uint64_t rank = 0; rank < 3; ++rank)
    of_rank.push_back(made_on_host({.op = ops::Encode{.form = form}, .phase = Phase::Other, .shapes = {{{some}}}},
                                   {exact_numbers(some, DType::F32, 20 + rank)}, {StoredArray(1600, DType::U8)})[0]);
  const StoredArray codes = filled(
      3 * 1600, DType::U8, [of_rank](std::int64_t i) { return of_rank[static_cast<std::size_t>(i / 1600)].at(i % 1600); });
  ops::CodeForm of_ranks = form;
  of_ranks.parts = 3;
  for (const DType dtype : {DType::F32, DType::BF16}) {
    KernelCase& add = all.add(std::string("add_largest") + (dtype == DType::BF16 ? "_bf16" : ""),
                              {.op = ops::Decode{.form = of_ranks, .adds = true}, .phase = Phase::Other, .shapes = {{{some}}}},
                              {}, {some}, dtype, dtype == DType::BF16 ? kHalf : kExact);
    add.reads = {codes};
  }
}

void add_moments(Cases& all) {
  const std::int64_t size = 2048;
  const ops::CodeForm form{.code = ops::Code::Signs};
  KernelCase& encode =
      all.add("encode_moment",
              {.op = ops::Encode{.form = form, .feedback = true, .averaging = 4}, .phase = Phase::Other, .shapes = {{{size}}}},
              {}, {}, DType::F32, kSingle);
  const StoredArray left = exact_numbers(size, DType::F32, 31);
  encode.reads = {exact_numbers(size, DType::F32, 30), exact_numbers(size, DType::F32, 32), left};
  encode.writes = {filled(form.payload(size).value, DType::U8, [](std::int64_t) { return 255.0; }), left};
  encode.arguments.optimizer.beta1 = 0.5;  // so that all results are exact
}

void add_tokens(Cases& all) {
  const std::int64_t b = 3, heads = 2, s = 300, h = 5;
  all.add("token_scores", {.op = ops::TokenScores{}, .shapes = {{{b, heads, 40, 60}}}}, {b * heads * 40 * 60}, {b * 60});
  for (const auto& [k, parts] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {100, 1}, {300, 1}, {3, 3}, {90, 3}}) {
    const std::string name = std::to_string(k) + (parts > 1 ? "_of_parts" : "");
    KernelCase& keep = all.add("keep_tokens_" + name, {.op = ops::KeepTokens{.parts = parts}, .shapes = {{{b, s, k}}}}, {}, {},
                               DType::F32, kExact);
    keep.reads = {
        filled(b * s, DType::F32, [](std::int64_t i) { return static_cast<double>(i * 37 % 50); })};  // many scores are equal
    keep.writes = {empty_array(b * k, DType::I64)};
    const std::vector<StoredArray> kept = made_on_host(keep.what, keep.reads, keep.writes);
    using enum Phase;
    for (const Phase phase : {Forward, InputGrad})
      for (const bool takes : {true, false}) {
        const bool out = takes == (phase == Forward);
        const std::int64_t own = k / parts, length = s / parts;  // of the last part
        Compute what{.phase = phase, .shapes = {{{b, length, own, h}}}, .accumulate = phase == InputGrad && k == 100};
        if (takes)
          what.op = ops::TakeRows{.parts = parts};
        else
          what.op = ops::PutRows{.parts = parts};
        KernelCase& rows =
            all.add(std::string(takes ? "take_rows_" : "put_rows_") + name + (phase == Forward ? "" : "_grad"), what,
                    {out ? b * length * h : b * own * h}, {out ? b * own * h : b * length * h}, DType::BF16, kHalf);
        rows.reads.push_back(kept[0]);
        rows.arguments.tp = static_cast<int>(parts), rows.arguments.tp_rank = static_cast<int>(parts) - 1;
      }
  }
}

}  // namespace

void add_codecs(Cases& all) {
  add_codes(all);
  add_largest(all);
  add_moments(all);
  add_tokens(all);
}

}  // namespace foreshard::gpu
