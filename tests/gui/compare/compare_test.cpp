#include <gtest/gtest.h>

#include <QSignalSpy>
#include <QTableView>
#include <QTableWidget>
#include <QTest>

#include "core/base/error.h"
#include "gui/compare/compare_view.h"
#include "gui/compare/policy_view.h"
#include "gui/document/search_rows.h"
#include "gui/document/twin.h"
#include "gui/timeline/timeline_view.h"
#include "tests/gui/documents.h"
#include "tests/gui/fake_program.h"

namespace foreshard::compare_test {
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

// ---- runtime policies

const char* const kTwoPolicies =
    R"({"policies": [{"policy": "l2l", "of": "L2L", "feasible": true, "live_peak_bytes": 1073741824, "arena_bytes": 2147483648,
    "gathered_bytes": 0, "copied_bytes": 4294967296, "iteration_time_s": 3, "tokens_per_s": 1000, "samples_per_s": 1},
    {"policy": "bmtrain_z2", "of": "BMTrain", "feasible": false, "infeasible_reason": "no room"},
    {"policy": "fsdp", "of": "fsdp2", "feasible": true, "live_peak_bytes": 2147483648, "arena_bytes": 2147483648,
    "gathered_bytes": 1073741824, "copied_bytes": 0, "iteration_time_s": 2, "tokens_per_s": 1500, "samples_per_s": 1}]})";

TEST(PolicyRows, NumbersAndReasons) {
  PolicyRows rows;
  EXPECT_EQ(rows.fastest(), -1);
  rows.set(read_policy_rows(kTwoPolicies));
  ASSERT_EQ(rows.rowCount(), 3);
  EXPECT_EQ(rows.fastest(), 2);
  const auto text = [&](int row, int column) { return rows.data(rows.index(row, column)).toString(); };
  EXPECT_EQ(text(0, PolicyRows::Slower), "+50.0 %");
  EXPECT_EQ(text(2, PolicyRows::Slower), "fastest");
  EXPECT_EQ(text(0, PolicyRows::Copied), memory_text({4294967296}));
  EXPECT_EQ(text(1, PolicyRows::Step), "no room");
  const auto share = [&](int row, int column) { return rows.data(rows.index(row, column), PolicyRows::kShareRole).toDouble(); };
  EXPECT_DOUBLE_EQ(share(0, PolicyRows::Peak), 0.5);
  EXPECT_DOUBLE_EQ(share(2, PolicyRows::Step), 2.0 / 3);
  EXPECT_LT(share(1, PolicyRows::Step), 0);
  for (int column = 0; column < PolicyRows::kColumns; ++column)
    EXPECT_FALSE(rows.headerData(column, Qt::Horizontal, Qt::DisplayRole).toString().isEmpty());
  EXPECT_THROW(read_policy_rows("{}"), Error);
}

TEST(PolicyView, SimulatesTheJobUnderAllPolicies) {
  const FakeProgram program("printf '%s ' \"$@\" >\"$(dirname \"$0\")/words\"\ncat <<'END'\n" + QString(kTwoPolicies) +
                            "\nEND");
  PolicyView view(program.path());
  view.resize(900, 300);
  view.show();
  view.set_choices(
      {.model = "gpt2-124m", .cluster = "dgx-a100", .strategy = {{"zero", "3"}, {"seq", "128"}, {"policy", "fsdp"}}});
  view.start();
  EXPECT_TRUE(view.busy());
  ASSERT_TRUE(QTest::qWaitFor([&] { return !view.busy(); }, 20'000));
  ASSERT_EQ(view.rows().rowCount(), 3);
  QFile words(program.beside("words"));
  ASSERT_TRUE(words.open(QIODevice::ReadOnly));
  EXPECT_EQ(words.readAll(), "simulate --model gpt2-124m --cluster dgx-a100 --set strategy.seq=128 --policy all --json ");
  // By time: fsdp, l2l, and what was not simulated last.
  const QAbstractItemModel* shown = view.table()->model();
  EXPECT_EQ(shown->index(0, PolicyRows::Name).data().toString(), "fsdp");
  EXPECT_EQ(shown->index(2, PolicyRows::Name).data().toString(), "bmtrain_z2");
  EXPECT_GT(view.table()->columnSpan(2, PolicyRows::Step), 1);
  QSignalSpy loads(&view, &PolicyView::load_asked), compares(&view, &PolicyView::compare_asked);
  const auto click = [&](int row, Qt::KeyboardModifiers with) {
    QTest::mouseClick(view.table()->viewport(), Qt::LeftButton, with, view.table()->visualRect(shown->index(row, 0)).center());
  };
  click(2, {});
  EXPECT_EQ(loads.count(), 0);
  click(1, {});
  ASSERT_EQ(loads.count(), 1);
  const auto loaded = loads[0][0].value<Choices>();
  EXPECT_EQ(loaded.strategy.at("policy"), "l2l");
  EXPECT_FALSE(loaded.strategy.contains("zero"));
  EXPECT_EQ(loaded.strategy.at("seq"), "128");
  EXPECT_FALSE(view.grab().isNull());
}

TEST(PolicyView, AnAnswerThatCannotBeReadIsTold) {
  const FakeProgram program("echo '{}'");
  PolicyView view(program.path());
  QSignalSpy said(&view, &PolicyView::said);
  view.start();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !view.busy(); }, 20'000));
  EXPECT_EQ(said.count(), 1);
}

}  // namespace
}  // namespace foreshard::compare_test
