#include "gui/inspector/tables.h"

#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QLineEdit>
#include <QTableView>

#include "tests/gui/documents.h"

namespace foreshard::tables_test {
namespace {

std::vector<std::unique_ptr<ResultTable>> all_tables(const std::shared_ptr<const Document>& document) {
  std::vector<std::unique_ptr<ResultTable>> tables;
  tables.push_back(span_table(document, {{0}, document->trace().makespan}));
  tables.push_back(bubble_table(document));
  tables.push_back(stage_table_model(document));
  tables.push_back(link_table(document));
  return tables;
}

TEST(Tables, ModelsKeepTheRulesOfModels) {
  for (const auto& table : all_tables(simulated_document())) {
    const QAbstractItemModelTester tester(table.get(), QAbstractItemModelTester::FailureReportingMode::Fatal);
    EXPECT_GT(table->rowCount(), 0);
  }
}

TEST(Tables, EveryCellHasWordsAndEveryRowIsAboutSomething) {
  for (const auto& table : all_tables(simulated_document()))
    for (int row = 0; row < table->rowCount(); row += 1 + table->rowCount() / 50) {
      for (int column = 0; column < table->columnCount(); ++column) {
        EXPECT_FALSE(table->data(table->index(row, column)).toString().isEmpty());
        EXPECT_TRUE(table->data(table->index(row, column), ResultTable::kSortRole).isValid());
        EXPECT_FALSE(table->headerData(column, Qt::Horizontal).toString().isEmpty());
      }
      EXPECT_EQ(table->about(row).index, row);
    }
}

TEST(Tables, TheTableOutlivesItsDocumentElsewhere) {
  auto document = pipeline_document();
  const auto table = bubble_table(document);
  const auto bubbles = static_cast<int>(document->bubbles.size());
  document.reset();
  EXPECT_EQ(table->rowCount(), bubbles);
  EXPECT_FALSE(table->data(table->index(bubbles - 1, 4)).toString().isEmpty());
}

TEST(CompanionTable, ARowIsPickedSortedAndFiltered) {
  Selection selection;
  CompanionTable companion(selection);
  const auto document = pipeline_document();
  companion.set_table(bubble_table(document));
  companion.view()->sortByColumn(3, Qt::DescendingOrder);  // idle time, by size and not by its text
  companion.view()->setCurrentIndex(companion.view()->model()->index(0, 0));
  Nanoseconds longest = {};
  for (const Bubble& bubble : document->bubbles) longest = std::max(longest, bubble.end - bubble.begin);
  ASSERT_EQ(selection.picked().kind, PickedKind::Bubble);
  const Bubble& picked = document->bubbles[static_cast<std::size_t>(selection.picked().index)];
  EXPECT_EQ(picked.end - picked.begin, longest);
  companion.findChild<QLineEdit*>()->setText("warm");
  const auto warm = std::ranges::count(document->bubbles, BubbleCause::WarmUp, &Bubble::cause);
  EXPECT_EQ(companion.view()->model()->rowCount(), static_cast<int>(warm));
  companion.set_table(nullptr);
  EXPECT_EQ(companion.view()->model()->rowCount(), 0);
}

}  // namespace
}  // namespace foreshard::tables_test
