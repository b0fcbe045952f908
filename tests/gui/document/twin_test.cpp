#include "gui/document/twin.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/gui/documents.h"

namespace foreshard::twin_test {
namespace {

TEST(Twin, EveryCellHasItsSignedError) {
  const auto predicted = pipeline_document();
  Result slower = predicted->result;  // everything takes a tenth longer
  for (Span& span : slower.trace.spans) {
    span.ready = {span.ready.value * 11 / 10};
    span.begin = {span.begin.value * 11 / 10};
    span.end = {span.end.value * 11 / 10};
  }
  slower.trace.makespan = {slower.trace.makespan.value * 11 / 10};
  slower.trace.origin = Origin::Measured;
  slower.measured_on = {"unit", "a unit"};
  const auto twin = match_twin(*predicted, make_document(slower, "measured", played::cluster_of(8)));
  EXPECT_NEAR(twin->bias, 0.1, 1e-9);
  EXPECT_NEAR(twin->p95, 0.1, 1e-9);
  ASSERT_EQ(twin->cells.size(), 4u);
  for (const auto& cells : twin->cells) {
    // 8 forwards, 8 backwards, the update, and what the reduction leaves on the compute stream.
    EXPECT_GE(cells.size(), 17u);
    for (const ErrorCell& cell : cells) EXPECT_NEAR(cell.error(), 0.1, 1e-9);
  }
}

TEST(Twin, AFasterPartIsNegative) {
  EXPECT_DOUBLE_EQ((ErrorCell{.predicted = {100}, .measured = {75}}).error(), -0.25);
  EXPECT_EQ((ErrorCell{.predicted = {0}, .measured = {75}}).error(), 0);
}

TEST(Twin, AnotherProgramIsRefused) {
  const auto predicted = pipeline_document();
  const auto other = make_document(played::result_of({.p = 2, .m = 4}), "other.result", played::cluster_of(8));
  try {
    match_twin(*predicted, other);
    FAIL() << "two programs matched";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("other.result: plan"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace foreshard::twin_test
