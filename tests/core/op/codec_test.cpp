// Sizes of compressed arrays, from the format in the header's picture, and the work of coding them.
#include "core/op/codec.h"

#include <gtest/gtest.h>

#include <random>

namespace foreshard::ops::codec_test {
namespace {

// Bytes of the codes of `elements`, counted element by element.
std::int64_t counted_bytes(const CodeForm& form, std::int64_t elements) {
  std::int64_t bits = 0, heads = 0;
  for (std::int64_t i = 0; i < elements; ++i) {
    if (form.code == Code::Signs) heads += i % 1024 == 0, bits += 1;
    if (form.code == Code::EightBits) heads += i % 256 == 0, bits += 8;
    if (form.code == Code::Floats) heads += i % 128 == 0, bits += 8;
    if (form.code == Code::Segments) bits += form.bits;
  }
  if (form.code == Code::Segments) heads = (form.segments == 0 ? 4 : form.segments) + 1;
  if (form.code == Code::Largest) heads = 2 * form.kept;
  while (bits % 32 != 0) ++bits;  // whole words
  return 4 * heads + bits / 8;
}

}  // namespace

// 1000 elements in three parts: 1000 / 3 rounded up to a multiple of 32 is 352; the last part has 1000 - 704 = 296.
TEST(CodeForm, PartsAreWholeWordsAndTheLastIsShorter) {
  const CodeForm form{.code = Code::Signs, .parts = 3};
  EXPECT_EQ(form.part_elements(1000), 352);
  EXPECT_EQ(form.first_of(2, 1000), 704);
  EXPECT_EQ(form.first_of(3, 1000), 1000);
  // 352 signs: one mean (4 bytes) and 11 words.
  EXPECT_EQ(form.part_bytes(352), (Bytes{4 + 44}));
  EXPECT_EQ(form.payload(1000), (Bytes{3 * 48}));
  EXPECT_EQ((CodeForm{.code = Code::Signs}).part_elements(1000), 1000);  // a single part is the array
}

// 8 bits give 256 levels: 64 for each quarter. 2 bits in one segment: 4.
TEST(CodeForm, LevelsAreSharedBySegments) {
  EXPECT_EQ((CodeForm{.bits = 8}).levels(), 64);
  EXPECT_EQ((CodeForm{.bits = 2, .segments = 1}).levels(), 4);
}

TEST(CodeForm, BytesAreThoseOfTheFormat) {
  std::mt19937 random(11);
  const auto draw = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int trial = 0; trial < 400; ++trial) {
    const CodeForm form{.code = static_cast<Code>(draw(0, 3)),
                        .kept = draw(1, 50),
                        .bits = 1 << draw(1, 3),
                        .segments = draw(0, 4),
                        .parts = draw(1, 9)};
    const std::int64_t elements = draw(1, 5000), part = form.part_elements(elements);
    EXPECT_EQ(form.part_bytes(part).value, counted_bytes(form, part)) << static_cast<int>(form.code) << " " << part;
    EXPECT_EQ(form.payload(elements).value, form.parts * counted_bytes(form, part));
    // The parts cover the array once, in order.
    EXPECT_EQ(form.first_of(0, elements), 0);
    EXPECT_EQ(form.first_of(form.parts, elements), elements);
    for (std::int64_t p = 0; p < form.parts; ++p) {
      const std::int64_t length = form.first_of(p + 1, elements) - form.first_of(p, elements);
      EXPECT_GE(length, 0);
      EXPECT_LE(length, part);
    }
  }
}

// Top-k of 100 bf16 elements with feedback: reads x (2 bytes) and the residual, writes the residual (8), reads the sum in four passes of
// fp32 (16): 26 bytes an element, and writes the payload of 80. Without feedback the passes read x: 2 + 4 * 2.
TEST(Codec, WorkOfEncoding) {
  Encode encode;
  encode.form = {.code = Code::Largest, .kept = 10};
  EXPECT_EQ(encode.work(100, {2}, {80}), (OpWork{{600}, {10 * 100 + 80}}));
  encode.feedback = true;
  EXPECT_EQ(encode.work(100, {2}, {80}), (OpWork{{600}, {26 * 100 + 80}}));
}

// Two operations an element for each part that is added; writes y in fp32 once, reads the payload once.
TEST(Codec, WorkOfDecoding) {
  Decode decode;
  decode.form.parts = 4;
  EXPECT_EQ(decode.work(100, {4}, {80}), (OpWork{{200}, {480}}));
  decode.adds = true;
  EXPECT_EQ(decode.work(100, {4}, {80}), (OpWork{{800}, {480}}));
  EXPECT_TRUE(decode.adds_parts());
}

}  // namespace foreshard::ops::codec_test
