#include <gtest/gtest.h>

#include <QTableWidget>
#include <QTest>

#include "gui/compare/compare_view.h"
#include "gui/document/twin.h"
#include "gui/timeline/timeline_view.h"
#include "tests/gui/documents.h"

namespace foreshard {
namespace {

std::shared_ptr<const Document> of(const played::Pipeline& pipeline, const char* name) {
  return make_document(played::result_of(pipeline), name, played::cluster_of(8));
}

TEST(Delta, ARowOfEachKind) {
  const DeltaRow time{"", DeltaUnit::Time, 2, 3, true}, share{"", DeltaUnit::Share, 0.2, 0.15, true},
      none{"", DeltaUnit::Bytes, 0, 0, true};
  EXPECT_DOUBLE_EQ(time.change(), 0.5);
  EXPECT_EQ(change_text(time), "+50.0 %");
  EXPECT_EQ(change_text(share), QString::fromUtf8("\u22125.0 points"));
  EXPECT_EQ(change_text(none), "=");
  EXPECT_EQ(delta_text(share, 0.15), "15.0 %");
}

TEST(Delta, TheRowsAreTheSummaries) {
  const auto a = of({.p = 4, .m = 8}, "a"), b = of({.p = 4, .m = 16}, "b");
  const std::vector<DeltaRow> rows = delta_rows(*a, *b);
  ASSERT_FALSE(rows.empty());
  EXPECT_DOUBLE_EQ(rows.front().a, a->summary.iteration_time.value);
  EXPECT_DOUBLE_EQ(rows.front().b, b->summary.iteration_time.value);
  for (const DeltaRow& row : delta_rows(*a, *a)) EXPECT_EQ(change_text(row), "=") << row.label.toStdString();
}

TEST(Delta, TheFirstMomentAtWhichTwoResultsPart) {
  const auto a = of({.p = 2, .m = 4}, "a"), same = of({.p = 2, .m = 4}, "same");
  EXPECT_FALSE(first_divergence(*a, *same));
  // Backwards of stage 1 take longer: what comes after its first backward is late. Stage 1: F0 at 1 ms, B0 at 2 ms, and its next
  // forward at 4 ms in a.
  const auto slower = of({.p = 2, .m = 4, .backward = {2, 3}}, "slower");
  EXPECT_EQ(first_divergence(*a, *slower), Nanoseconds{4'000'000});
  EXPECT_FALSE(first_divergence(*a, *slower, {1'000'000'000}));
}

TEST(Twin, TwoProgramsBesideEachOther) {
  const auto a = of({.p = 4, .m = 8}, "a"), b = of({.p = 2, .m = 8}, "b");
  const auto twin = lay_beside(*a, b);
  ASSERT_EQ(twin->of_class.size(), 4u);
  EXPECT_EQ(twin->of_class[1], ClassId{1});
  EXPECT_FALSE(twin->of_class[3].valid());
  EXPECT_EQ(twin->cells.size(), 4u);
}

TEST(CompareView, BothOnOneAxisInEveryMode) {
  TimeAxis axis;
  Selection selection;
  CompareView view(axis, selection);
  view.resize(900, 500);
  view.show();
  EXPECT_FALSE(view.jump_to_divergence());
  const auto a = of({.p = 4, .m = 8}, "a"), b = of({.p = 4, .m = 16}, "b");
  view.set_documents(a, b);
  EXPECT_EQ(axis.extent().end, b->trace().makespan);
  for (const CompareMode mode : {CompareMode::Stacked, CompareMode::Overlaid, CompareMode::Delta, CompareMode::Stacked}) {
    view.set_mode(mode);
    EXPECT_EQ(axis.extent().end, b->trace().makespan);
    EXPECT_EQ(view.first()->twin() != nullptr, mode == CompareMode::Overlaid);
    EXPECT_EQ(view.findChild<QTableWidget*>()->isVisible(), mode == CompareMode::Delta);
    EXPECT_FALSE(view.grab().isNull());
  }
  EXPECT_EQ(view.findChild<QTableWidget*>()->rowCount(), static_cast<int>(delta_rows(*a, *b).size()));
  EXPECT_TRUE(view.jump_to_divergence());
  EXPECT_TRUE(axis.cursor());
  view.set_documents(nullptr, nullptr);
  EXPECT_FALSE(view.grab().isNull());
}

}  // namespace
}  // namespace foreshard
