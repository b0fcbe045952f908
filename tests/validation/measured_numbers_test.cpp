#include "validation/measured_numbers.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "validation/measured.h"
#include "validation/measured_case.h"
#include "validation/measured_words.h"

namespace foreshard::measured_numbers_test {

TEST(MeasuredNumbers, ACellIsANumberToItsEnd) {
  const NumberColumn& hidden = number_column("hidden");
  EXPECT_EQ(number_in("6144", hidden), 6144.0);
  EXPECT_EQ(number_in("6.144e3", hidden), 6144.0);
  for (const char* wrong :
       {"", "6,144", "6144x", "6144 ", " 6144", "0.5", "0", "-1", "nan", "inf", "1e9", "1e308", "0x10", "six"})
    EXPECT_EQ(number_in(wrong, hidden), std::nullopt) << wrong;
  EXPECT_EQ(number_in("0.5", number_column("params_b")), 0.5);
  EXPECT_EQ(range_text(hidden), "a whole number from 1 to 2,097,152");
  EXPECT_THROW((void)number_column("notes"), Bug);
}

TEST(MeasuredNumbers, DigitsAtTheBeginning) {
  EXPECT_EQ(leading_int("26.02"), 26);
  EXPECT_EQ(leading_int("layers"), 0);
  EXPECT_EQ(leading_int("-5"), 0);
  EXPECT_EQ(leading_int("99999999999999999999"), 1'000'000'000);
}

// "unknown" is no number, and anything else that is none is refused with row, column, found and expected.
TEST(MeasuredNumbers, OfARow) {
  MeasuredRow row{.file = "t.csv", .line = 7, .cells = {{"tp", "8"}, {"pp", "unknown"}, {"dp", "1,100"}}};
  EXPECT_EQ(row.whole("tp"), 8);
  EXPECT_EQ(row.whole("pp"), std::nullopt);
  EXPECT_EQ(row.whole("cp"), std::nullopt);
  try {
    (void)row.whole("dp");
    FAIL();
  } catch (const Error& wrong) {
    EXPECT_STREQ(wrong.what(), "t.csv:7: dp: found \"1,100\", expected a whole number from 1 to 1,048,576");
  }
  row.cells["framework_flags"] = "--num-experts 8x --moe-router-topk 2";
  EXPECT_EQ(flag_number(row, "moe-router-topk"), 2);
  EXPECT_THROW((void)flag_number(row, "num-experts"), Error);
}

// Each cell alone at the end of its range, and all at once: a row is predicted, left out with a reason, or refused; it neither overflows
// nor divides by zero nor takes for ever.
TEST(MeasuredNumbers, TheEndsOfTheRangesAreHarmless) {
  const MeasuredRow usual{.file = "t.csv",
                          .line = 2,
                          .cells = {{"source", "s"},
                                    {"row_id", "r"},
                                    {"model_name", "m"},
                                    {"layers", "4"},
                                    {"hidden", "64"},
                                    {"ffn_hidden", "256"},
                                    {"heads", "4"},
                                    {"kv_heads", "4"},
                                    {"seq_len", "32"},
                                    {"vocab", "128"},
                                    {"precision", "bf16"},
                                    {"gpu", "A100-80GB"},
                                    {"gpus_per_node", "8"},
                                    {"num_gpus", "8"},
                                    {"tp", "1"},
                                    {"pp", "2"},
                                    {"vpp", "2"},
                                    {"dp", "4"},
                                    {"cp", "1"},
                                    {"micro_batch", "1"},
                                    {"global_batch", "64"},
                                    {"zero_stage_or_fsdp", "zero1 group 99999999999"},
                                    {"measured_quantity", "iter_time_s"},
                                    {"measured_value", "1"}}};
  const auto asked = [](const MeasuredRow& row) {
    try {
      (void)measured_case(row);
    } catch (const Error&) {
    }
  };
  MeasuredRow all = usual;
  for (const char* column : {"layers", "hidden", "ffn_hidden", "heads", "kv_heads", "head_dim", "seq_len", "vocab",
                             "gpus_per_node", "num_gpus", "tp", "pp", "vpp", "dp", "cp", "micro_batch", "global_batch"})
    for (const double end : {number_column(column).least, number_column(column).most}) {
      MeasuredRow one = usual;
      one.cells[column] = all.cells[column] = std::to_string(static_cast<std::int64_t>(end));
      asked(one), asked(all);
    }
}

}  // namespace foreshard::measured_numbers_test
