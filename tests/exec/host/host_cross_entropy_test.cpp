// The sizes of a loss, by hand; its kernels are in host_ends_test.cpp.
#include "exec/host/host_cross_entropy.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace foreshard::host::host_cross_entropy_test {
namespace {

using ops::CrossEntropy;

Compute loss(const CrossEntropy& op, Phase phase = Phase::Forward) {
  return {.op = op, .phase = phase, .shapes = {{{6, 12}, DType::F64}}};
}
LossSizes sizes_of(const Compute& what) { return loss_sizes({.what = what, .reads = {}, .writes = {}}); }

std::string refusal(const Compute& what) {
  try {
    sizes_of(what);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

// Ten classes in two parts of six columns: the second has four, and two that pad.
TEST(LossSizes, ColumnsThatPadAreNoClasses) {
  LossSizes sizes = sizes_of(loss({.classes = 10, .weight = 0.5}));
  EXPECT_EQ(sizes.size(), 72);
  EXPECT_EQ(sizes.used(0), 10);
  sizes.columns = 6;
  const OpArguments second = {.samples = 2, .samples_of_step = 8, .tp = 2, .tp_rank = 1};
  EXPECT_EQ(sizes.first(second, true), 6);
  EXPECT_EQ(sizes.first(second, false), 0);
  EXPECT_EQ(sizes.used(6), 4);
  EXPECT_EQ(sizes.used(12), 0);
  EXPECT_EQ(sizes.weight_of_row(second), 0.5 / (3 * 8));  // three positions of each of eight samples
}

TEST(LossSizes, TheTargetIsTheNextTokenOrTheLabel) {
  const TokenRows next = sizes_of(loss({.classes = 10, .ahead = 2})).targets;
  EXPECT_EQ(next.rows, 6);
  EXPECT_EQ(next.vocab, 10);
  EXPECT_EQ(next.ahead, 3);
  EXPECT_FALSE(next.label);
  EXPECT_TRUE(sizes_of(loss({.target = CrossEntropy::Target::Label, .classes = 10})).targets.label);
}

TEST(LossSizes, PhasesAndClassesAreChecked) {
  using Piece = CrossEntropy::Piece;
  for (const Piece piece : {Piece::Whole, Piece::Max, Piece::Exp, Piece::Loss}) {
    const CrossEntropy op{.piece = piece, .classes = 10};
    EXPECT_EQ(refusal(loss(op)), "none");
    EXPECT_EQ(refusal(loss(op, Phase::InputGrad)) == "none", piece == Piece::Whole || piece == Piece::Exp);
    EXPECT_NE(refusal(loss(op, Phase::WeightGrad)), "none");
  }
  EXPECT_NE(refusal(loss({.classes = 13})).find("found 13 classes, expected at least 1 and at most the columns"),
            std::string::npos);
  EXPECT_EQ(refusal(loss({.piece = Piece::Exp, .classes = 13})), "none");  // of all ranks together
}

}  // namespace foreshard::host::host_cross_entropy_test
