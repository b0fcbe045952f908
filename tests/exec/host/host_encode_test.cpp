// Encode and decode as instructions: states, parts, slices, moments; and sums of several ranks over several steps.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/words.h"
#include "tests/exec/host_arrays.h"

namespace foreshard::host_encode_test {
namespace {

using ops::Code;
using ops::CodeForm;
using Numbers = std::vector<double>;

Compute instruction(const Operation& op, std::int64_t elements, bool sliced = false) {
  return {.op = op, .phase = Phase::Other, .shapes = {{{elements}, DType::F64}}, .slice = sliced ? GroupId{0} : GroupId{}};
}

Numbers whole_numbers(std::int64_t size, std::uint64_t seed) {
  Numbers x = random_array(size, seed).values();
  for (double& value : x) value = std::round(value * 20);
  return x;
}

void run_in_place(const Compute& what, std::vector<Array*> reads, std::vector<Array*> writes,
                  const OpArguments& arguments = {}) {
  std::vector<Operand> from, to;
  for (Array* array : reads) from.push_back(array->operand());
  for (Array* array : writes) to.push_back(array->operand());
  run_compute(what, from, to, arguments);
}

// The sum of what three ranks sent in five steps, and of what they kept, is the sum of their gradients: to the last bit.
TEST(HostEncode, SentAndLeftOutAreTheSumOfAllSteps) {
  constexpr std::int64_t kSize = 300, kRanks = 3, kKept = 7;
  const CodeForm form{.code = Code::Largest, .kept = kKept};
  CodeForm of_ranks = form;
  of_ranks.parts = kRanks;
  std::vector<Array> left(kRanks, Array(Numbers(kSize, 0), DType::F32));
  Numbers sent(kSize, 0), wanted(kSize, 0);
  for (std::uint64_t step = 0; step < 5; ++step) {
    Array all(8 * kKept * kRanks, DType::U8);
    for (std::int64_t rank = 0; rank < kRanks; ++rank) {
      const Numbers g = whole_numbers(kSize, 10 * step + static_cast<std::uint64_t>(rank));
      for (std::size_t i = 0; i < g.size(); ++i) wanted[i] += g[i];
      Array gradient(g, DType::F32), codes(8 * kKept, DType::U8);
      Array& kept = left[static_cast<std::size_t>(rank)];
      run_in_place(instruction(ops::Encode{.form = form, .feedback = true}, kSize), {&gradient, &kept}, {&codes, &kept});
      for (std::int64_t i = 0; i < codes.size(); ++i) all.set(rank * codes.size() + i, codes.at(i));
    }
    Array sum(kSize, DType::F32);
    run_in_place(instruction(ops::Decode{.form = of_ranks, .adds = true}, kSize), {&all}, {&sum});
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] += sum.at(static_cast<std::int64_t>(i));
  }
  for (std::size_t i = 0; i < sent.size(); ++i) {
    for (const Array& rank : left) sent[i] += rank.at(static_cast<std::int64_t>(i));
    ASSERT_EQ(sent[i], wanted[i]) << i;
  }
}

// With momentum: what was sent and what is left is the sum of all velocities; places that were sent begin at 0 again.
TEST(HostEncode, TheVelocityIsAccumulatedAndMasked) {
  const CodeForm form{.code = Code::Largest, .kept = 1};
  Array left(Numbers(3, 0), DType::F32), velocity(Numbers(3, 0), DType::F32), codes(8, DType::U8), sum(3, DType::F32);
  const ops::Encode op{.form = form, .feedback = true, .velocity = true, .momentum = 0.5};
  const auto step = [&](const Numbers& g) {
    Array gradient(g, DType::F32);
    run_in_place(instruction(op, 3), {&gradient, &left, &velocity}, {&codes, &left, &velocity});
    run_in_place(instruction(ops::Decode{.form = form, .adds = true}, 3), {&codes}, {&sum});
  };
  step({4, 2, 1});  // u = (4, 2, 1), v = (4, 2, 1): 4 is sent
  EXPECT_EQ(sum.values(), (Numbers{4, 0, 0}));
  EXPECT_EQ(left.values(), (Numbers{0, 2, 1}));
  EXPECT_EQ(velocity.values(), (Numbers{0, 2, 1}));
  step({1, 1, 1});  // u = (1, 2, 1.5), v = (1, 4, 2.5): 4 is sent
  EXPECT_EQ(sum.values(), (Numbers{0, 4, 0}));
  EXPECT_EQ(left.values(), (Numbers{1, 0, 2.5}));
  EXPECT_EQ(velocity.values(), (Numbers{1, 0, 1.5}));
}

// Three ranks exchange parts of 1000 elements, add them and exchange the sums: within what both encodings leave out, and what is left out says
// exactly how much that is. The last part is shorter, and its padding stays 0.
TEST(HostEncode, ExchangedPartsAddUp) {
  constexpr std::int64_t kSize = 1000, kRanks = 3;
  for (const CodeForm& of :
       {CodeForm{.code = Code::Signs}, CodeForm{.code = Code::EightBits}, CodeForm{.code = Code::Segments, .bits = 4},
        CodeForm{.code = Code::Segments, .bits = 8, .segments = 8}}) {
    CodeForm form = of;
    form.parts = kRanks;
    const std::int64_t length = form.part_elements(kSize), bytes = form.part_bytes(length).value;
    ASSERT_EQ(length, 352);
    Numbers wanted(kSize, 0), left_out(kSize, 0);
    std::vector<Array> codes;
    for (std::int64_t rank = 0; rank < kRanks; ++rank) {
      Array x = random_array(kSize, 40 + static_cast<std::uint64_t>(rank)), left(Numbers(kSize, 0), DType::F64);
      codes.emplace_back(form.payload(kSize).value, DType::U8);
      run_in_place(instruction(ops::Encode{.form = form, .feedback = true}, kSize), {&x, &left}, {&codes.back(), &left});
      for (std::int64_t i = 0; i < kSize; ++i)
        wanted[static_cast<std::size_t>(i)] += x.at(i), left_out[static_cast<std::size_t>(i)] += left.at(i);
    }
    Array gathered(bytes * kRanks, DType::U8);
    for (std::int64_t rank = 0; rank < kRanks; ++rank) {
      Array received(bytes * kRanks, DType::U8), sum(Numbers(static_cast<std::size_t>(length), 7), DType::F64);
      for (std::int64_t from = 0; from < kRanks; ++from)
        for (std::int64_t i = 0; i < bytes; ++i)
          received.set(from * bytes + i, codes[static_cast<std::size_t>(from)].at(rank * bytes + i));
      run_in_place(instruction(ops::Decode{.form = form, .adds = true}, kSize, true), {&received}, {&sum}, {.slice = rank});
      const std::int64_t used = std::min(length, kSize - rank * length);
      for (std::int64_t i = used; i < length; ++i) EXPECT_EQ(sum.at(i), 0);
      Array left(Numbers(static_cast<std::size_t>(length), 0), DType::F64), own(bytes, DType::U8);
      run_in_place(instruction(ops::Encode{.form = form, .feedback = true}, kSize, true), {&sum, &left}, {&own, &left},
                   {.slice = rank});
      for (std::int64_t i = 0; i < used; ++i) left_out[static_cast<std::size_t>(rank * length + i)] += left.at(i);
      for (std::int64_t i = 0; i < bytes; ++i) gathered.set(rank * bytes + i, own.at(i));
    }
    Array y(kSize, DType::F64);
    run_in_place(instruction(ops::Decode{.form = form}, kSize), {&gathered}, {&y});
    double largest = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_NEAR(y.at(static_cast<std::int64_t>(i)) + left_out[i], wanted[i], 1e-12) << word(form.code) << i;
      largest = std::max(largest, std::abs(left_out[i]));
    }
    EXPECT_GT(largest, 1e-4);
  }
}

// n shares beta1 m / n + (1 - beta1) g are the next first moment of the summed gradients.
TEST(HostEncode, SharesOfTheMomentAddUpToIt) {
  constexpr std::int64_t kSize = 1024;
  const OpArguments arguments{.loss_scale = 4, .optimizer = {.beta1 = 0.75}};
  const CodeForm form{.code = Code::EightBits};
  Numbers sum(kSize, 0), gradients(kSize, 0);
  Array moment(whole_numbers(kSize, 1), DType::F64);
  for (std::uint64_t rank = 0; rank < 2; ++rank) {
    Array g(whole_numbers(kSize, 2 + rank), DType::F64), left(Numbers(kSize, 0), DType::F64),
        codes(form.payload(kSize).value, DType::U8);
    run_in_place(instruction(ops::Encode{.form = form, .feedback = true, .averaging = 2}, kSize), {&g, &moment, &left},
                 {&codes, &left}, arguments);
    Array y(kSize, DType::F64);
    run_in_place(instruction(ops::Decode{.form = form}, kSize), {&codes}, {&y});
    for (std::int64_t i = 0; i < kSize; ++i)
      sum[static_cast<std::size_t>(i)] += y.at(i) + left.at(i), gradients[static_cast<std::size_t>(i)] += g.at(i);
  }
  for (std::int64_t i = 0; i < kSize; ++i)  // gradients carry the loss scale, the moment does not
    ASSERT_NEAR(sum[static_cast<std::size_t>(i)], 0.75 * 4 * moment.at(i) + 0.25 * gradients[static_cast<std::size_t>(i)],
                1e-12);
}

// Adam on its next first moment is Adam on the gradient until the second moment stays; then that and its bias correction do.
TEST(HostEncode, AdamOnMomentsIsAdam) {
  const OptimizerSettings settings{.learning_rate = 0.1, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8};
  Array m(Numbers{0}, DType::F64), v(Numbers{0}, DType::F64), p(Numbers{1}, DType::F64);
  Array m2 = m, v2 = v, p2 = p;
  double next = 0;
  const auto step = [&](std::int64_t step, double g) {
    Array gradient(Numbers{g}, DType::F64);
    run_in_place({.op = ops::Adam{}, .phase = Phase::Update, .shapes = {{{1}}}}, {&gradient, &m, &v, &p}, {&m, &v, &p},
                 {.step = step, .optimizer = settings});
    next = 0.9 * m2.at(0) + (1 - 0.9) * g;
    Array moment(Numbers{next}, DType::F64);
    run_in_place({.op = ops::Adam{.frozen_after = 3}, .phase = Phase::Update, .shapes = {{{1}}}}, {&moment, &m2, &v2, &p2},
                 {&m2, &v2, &p2}, {.step = step, .optimizer = settings});
  };
  for (std::int64_t i = 1; i <= 3; ++i) {
    step(i, static_cast<double>(i));
    EXPECT_NEAR(p2.at(0), p.at(0), 1e-12) << i;
    EXPECT_NEAR(v2.at(0), v.at(0), 1e-12) << i;
  }
  const double frozen = v2.at(0), before = p2.at(0);
  step(4, 50);
  EXPECT_EQ(v2.at(0), frozen);
  EXPECT_NEAR(p2.at(0), before - 0.1 * (next / (1 - std::pow(0.9, 4))) / (std::sqrt(frozen / (1 - std::pow(0.99, 3))) + 1e-8),
              1e-12);
}

std::string message_of(const Compute& what, std::vector<Array> reads, std::vector<Array> writes) {
  try {
    run_on(what, reads, writes);
  } catch (const std::exception& refused) {
    return refused.what();
  }
  return "";
}

TEST(HostEncode, FormsThatMeanNothingAreRefused) {
  const std::vector<Array> x = {random_array(10, 1)}, codes = {Array(100, DType::U8)};
  const auto encode = [&](const CodeForm& form) { return message_of(instruction(ops::Encode{.form = form}, 10), x, codes); };
  EXPECT_EQ(encode({.bits = 3}), "plan: compute encode, other: found 3 bits, expected 2, 4 or 8");
  EXPECT_EQ(encode({.bits = 2, .segments = 8}),
            "plan: compute encode, other: found 8 segments, expected 0, 4, 8 or 16, a level in each");
  EXPECT_EQ(encode({.code = Code::Largest, .kept = 11}),
            "plan: compute encode, other: found 11 numbers kept of 10, expected between 1 and all of one part");
  EXPECT_NE(message_of(instruction(ops::Encode{.form = {.code = Code::Signs}, .velocity = true}, 10), x, codes), "");
}

}  // namespace
}  // namespace foreshard::host_encode_test
