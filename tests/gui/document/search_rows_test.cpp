#include "gui/document/search_rows.h"

#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QSignalSpy>
#include <QTest>

#include "core/base/error.h"
#include "gui/search/pareto_view.h"
#include "gui/widgets/round_ticks.h"

namespace foreshard::search_rows_test {

static SearchRow row(double seconds, std::int64_t gib, int tp) {
  SearchRow made{.estimate = {seconds}, .peak = {gib << 30}, .margin = {(80 - gib) << 30}, .bound_by = "compute"};
  made.strategy.tp = tp;
  return made;
}

TEST(SearchRows, ReadsWhatTheProgramWrites) {
  const SearchRow read = parse_search_row(R"({"strategy": )" + to_json(Strategy{.tp = 4}) +
                                              R"(, "estimate": {"time_s": 2.5}, "simulated": 2.75, "interval": null,
                                              "peak_memory_bytes": 1073741824, "margin_bytes": 5, "bound_by": "compute"})",
                                          "test");
  EXPECT_EQ(read.strategy.tp, 4);
  EXPECT_EQ(read.seconds(), 2.75);
  EXPECT_EQ(read.peak.value, 1 << 30);
  EXPECT_THROW(parse_search_row("{}", "test"), Error);
  EXPECT_THROW(parse_search_row("nonsense", "test"), Error);
}

TEST(SearchRows, IsAProperModelThatKeepsOneRowPerStrategy) {
  SearchRows rows;
  QAbstractItemModelTester tester(&rows, QAbstractItemModelTester::FailureReportingMode::Fatal);
  QSignalSpy inserted(&rows, &QAbstractItemModel::rowsInserted), changed(&rows, &QAbstractItemModel::dataChanged);
  rows.add(row(2, 40, 1));
  rows.add(row(3, 30, 2));
  SearchRow simulated = row(2, 40, 1);
  simulated.simulated = 2.25;
  rows.add(simulated);
  rows.add(row(2, 40, 1));  // told again without its simulation: it keeps it
  EXPECT_EQ(inserted.count(), 2);
  EXPECT_EQ(changed.count(), 1);
  ASSERT_EQ(rows.rowCount(), 2);
  EXPECT_EQ(rows.rows()[0].seconds(), 2.25);
  EXPECT_EQ(rows.data(rows.index(0, SearchRows::Simulated)).toString(), "2.25 s");
  EXPECT_EQ(rows.data(rows.index(1, SearchRows::Peak)).toString(), "30.0 GiB");
  EXPECT_GT(rows.data(rows.index(1, SearchRows::Simulated), Qt::UserRole).toDouble(), 1e9);  // sorts last
  rows.clear();
  EXPECT_EQ(rows.rowCount(), 0);
}

// Against the definition: on the front is who is not beaten in both by any other.
TEST(SearchRows, TheFrontIsWhatNothingBeats) {
  std::uint32_t seed = 3;
  const auto number = [&](int most) { return static_cast<int>((seed = seed * 1664525u + 1013904223u) >> 16) % most; };
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<SearchRow> rows;
    for (int i = 0, n = 1 + number(12); i < n; ++i) rows.push_back(row(1 + number(8), 1 + number(8), i + 1));
    const std::vector<int> front = pareto_front(rows);
    for (int i = 0; i < static_cast<int>(rows.size()); ++i) {
      bool beaten = false;
      for (int j = 0; j < static_cast<int>(rows.size()); ++j) {
        const auto &a = rows[static_cast<std::size_t>(i)], &b = rows[static_cast<std::size_t>(j)];
        const bool no_worse = b.seconds() <= a.seconds() && b.peak.value <= a.peak.value;
        const bool better = b.seconds() < a.seconds() || b.peak.value < a.peak.value;
        beaten |= no_worse && (better || j < i);  // of equals the first stands for all
      }
      EXPECT_EQ(std::find(front.begin(), front.end(), i) != front.end(), !beaten) << trial << " " << i;
    }
  }
}

TEST(SearchRows, ChoicesTakeWhatTheSearchVaried) {
  Choices base{.model = "m", .cluster = "c", .strategy = {{"tp", "8"}, {"global_batch", "64"}, {"zero", "1"}}};
  Strategy found;
  found.pp = 4, found.batch.global = 64, found.dp = 2;
  const Choices next = choices_with(base, found);
  EXPECT_EQ(next.strategy, (std::map<std::string, std::string>{{"pp", "4"}, {"dp", "2"}, {"global_batch", "64"}}));
}

TEST(ParetoView, AClickPicksThePointUnderIt) {
  SearchRows rows;
  ParetoView view(rows);
  view.resize(400, 300);
  rows.add(row(2, 40, 1));
  rows.add(row(4, 20, 2));
  const QPointF first = view.place_of(0), second = view.place_of(1);
  EXPECT_LT(first.x(), second.x());  // faster is left, more memory is up
  EXPECT_LT(first.y(), second.y());
  EXPECT_EQ(view.row_at(first + QPointF(3, -3)), 0);
  EXPECT_EQ(view.row_at((first + second) / 2), -1);
  QSignalSpy picked(&view, &ParetoView::picked);
  QTest::mouseClick(&view, Qt::LeftButton, Qt::ControlModifier, second.toPoint());
  ASSERT_EQ(picked.count(), 1);
  EXPECT_EQ(picked[0][0].toInt(), 1);
  EXPECT_TRUE(picked[0][1].toBool());
  view.grab();  // paints without a complaint
}

TEST(ParetoView, TicksAreRound) {
  EXPECT_EQ(round_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_TRUE(round_ticks(1, 1, 5).empty());
}

}  // namespace foreshard::search_rows_test
