// What the views say, in words and numbers.
#include <gtest/gtest.h>

#include <QTextDocument>
#include <algorithm>
#include <set>

#include "core/strategy/strategy_options.h"
#include "gui/document/binding_arrows.h"
#include "gui/document/delta.h"
#include "gui/document/export.h"
#include "gui/document/facts.h"
#include "gui/document/find_hits.h"
#include "gui/document/picked_range.h"
#include "gui/document/search_rows.h"
#include "gui/document/words.h"
#include "gui/inspector/kpi_strip.h"
#include "gui/inspector/tables.h"
#include "gui/memory/memory_view.h"
#include "gui/strategy/option_field.h"
#include "gui/timeline/timeline_view.h"
#include "gui/widgets/language.h"
#include "report/summary/memory_rows.h"
#include "tests/gui/documents.h"

namespace foreshard::views_test {
namespace {

const FactSection* section(const Facts& facts, const QString& title) {
  for (const FactSection& one : facts.sections)
    if (one.title == title) return &one;
  return nullptr;
}

// ---- one wait, one bubble

TEST(Views, ABubbleIsAWholeWaitAndItsPartsAreListed) {
  const auto document = pipeline_document();
  int of_several = 0;
  for (std::size_t b = 0; b < document->bubbles.size(); ++b) {
    const Bubble& bubble = document->bubbles[b];
    Nanoseconds parts = {};
    for (const Bubble& piece : document->pieces_of(bubble)) parts += piece.end - piece.begin;
    EXPECT_EQ(parts, bubble.end - bubble.begin);
    if (b > 0 && document->bubbles[b - 1].who == bubble.who) {
      EXPECT_LT(document->bubbles[b - 1].end, bubble.begin) << "work lies between two bubbles";
    }
    const Facts facts = facts_of(*document, {PickedKind::Bubble, static_cast<std::int32_t>(b), {}, {}}, nullptr);
    const FactSection* made_of = section(facts, "Made of");
    std::set<BubbleCause> causes;
    for (const Bubble& piece : document->pieces_of(bubble)) causes.insert(piece.cause);
    EXPECT_EQ(made_of != nullptr, causes.size() > 1);
    if (made_of == nullptr) continue;
    ++of_several;
    EXPECT_EQ(made_of->facts.size(), causes.size());
  }
  EXPECT_GT(of_several, 0);
  EXPECT_LT(document->bubbles.size(), document->pieces.size());
}

// ---- the critical path

TEST(Views, TheCriticalPathIsWholeAtEveryZoom) {
  const auto document = single_operations_document();
  const Nanoseconds makespan = document->trace().makespan;
  ASSERT_GT(document->critical.size(), 401u);  // more than one picture could ever draw as arrows
  for (const int pixels : {10, 300, 2000}) {
    const Nanoseconds pixel = {makespan.value / pixels};
    const auto path = critical_stretches(*document, {{0}, makespan}, pixel);
    ASSERT_FALSE(path.empty());
    EXPECT_EQ(path.front().begin, Nanoseconds{});
    EXPECT_EQ(path.back().end, makespan);
    for (std::size_t i = 1; i < path.size(); ++i) {
      EXPECT_EQ(path[i].begin, path[i - 1].end);
      EXPECT_NE(path[i].who, path[i - 1].who);
    }
    EXPECT_LE(path.size(), static_cast<std::size_t>(2 * pixels + 2));
  }
  const TimeRange middle = {{makespan.value / 2}, {makespan.value / 2 + makespan.value / 100}};
  const auto close = critical_stretches(*document, middle, {1});
  ASSERT_FALSE(close.empty());
  EXPECT_LE(close.front().begin, middle.begin);
  EXPECT_GE(close.back().end, middle.end);
}

TEST(Views, TheCriticalPathSaysWhatItIsMadeOf) {
  const auto document = pipeline_document();
  Nanoseconds sum = {};
  for (const Nanoseconds part : document->critical_times) sum += part;
  EXPECT_EQ(sum, document->trace().makespan);
  const Facts facts = facts_of(*document, {}, nullptr);
  const FactSection* path = section(facts, "Critical path of the run");
  ASSERT_NE(path, nullptr);
  EXPECT_EQ(path->facts.front().label, "compute");
  TimeAxis axis;
  Selection selection;
  TimelineView view(axis, selection);
  view.set_document(document);
  EXPECT_TRUE(view.critical_words().startsWith("critical path: ")) << view.critical_words().toStdString();
  EXPECT_TRUE(view.critical_words().contains("% compute"));
}

// ---- memory: one definition of peak

TEST(Views, ThePeakIsOneNumberEverywhereAndItsPartsSumToIt) {
  auto changed = std::make_shared<Document>(*simulated_document());
  changed->summary.fit.framework = {763'101'184};
  for (StageMemory& stage : changed->summary.memory) stage.with_framework = stage.arena + changed->summary.fit.framework;
  const std::shared_ptr<const Document> document = changed;
  const Summary& summary = document->summary;
  const auto table = stage_table_model(document);
  for (std::size_t c = 0; c < document->trace().classes.size(); ++c) {
    const StageMemory& stage = summary.memory[document->trace().classes[c].role.index()];
    EXPECT_EQ(sum(peak_parts(summary, stage)), peak_of(summary, stage));
    const Facts facts = facts_of(*document, {PickedKind::Class, static_cast<std::int32_t>(c), {}, {}}, nullptr);
    const FactSection* memory = section(facts, "Memory");
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(memory->facts.front().value, peak_words(summary, stage));
    EXPECT_TRUE(std::ranges::any_of(memory->facts, [](const Fact& fact) { return fact.label.contains("framework"); }));
    EXPECT_EQ(memory->facts.back().value, bytes_words(stage.with_framework));
    // The table has the same: its columns are stage, busy, seven categories, peak.
    EXPECT_EQ(table->data(table->index(static_cast<int>(c), 2 + kCategories)).toString(), bytes_words(peak_of(summary, stage)));
  }
  const StageMemory* fullest = fullest_stage(summary);
  ASSERT_NE(fullest, nullptr);
  const std::vector<Kpi> kpis = kpis_of(*document, nullptr);
  const auto card = std::ranges::find_if(kpis, [&](const Kpi& kpi) { return kpi.name.startsWith("peak memory"); });
  ASSERT_NE(card, kpis.end());
  EXPECT_EQ(card->value, memory_text(peak_of(summary, *fullest)));
}

TEST(Views, TheExportedCategoriesSumToTheExportedPeak) {
  auto changed = std::make_shared<Document>(*simulated_document());
  changed->summary.fit.framework = {763'101'184};
  const QStringList lines = QString::fromStdString(stages_csv(*changed)).split('\n', Qt::SkipEmptyParts);
  const QStringList head = lines.front().split(',');
  ASSERT_GT(head.indexOf("peak_bytes"), 0);
  for (const QString& line : lines.mid(1)) {
    const QStringList cells = line.split(',');
    ASSERT_EQ(cells.size(), head.size());
    EXPECT_EQ(cells[head.indexOf("framework_bytes")].toLongLong(), 763'101'184);
    std::int64_t sum = 0;
    const auto first = head.indexOf("peak_bytes") - kCategories;
    for (int c = 0; c < kCategories; ++c) sum += cells[first + c].toLongLong();
    EXPECT_EQ(sum, cells[head.indexOf("peak_bytes")].toLongLong());
  }
}

TEST(Views, APlanThatDoesNotFitSaysBySoMuchAndNotMinusToSpare) {
  auto document = std::make_shared<Document>(*simulated_document());
  document->summary.fit.capacity = {std::int64_t{1} << 30};
  document->summary.fit.reserve = {};
  document->summary.fit.margin = {-(std::int64_t{2} << 30)};
  document->summary.feasible = false;
  const Facts facts = facts_of(*document, {}, nullptr);
  const FactSection* memory = section(facts, "Memory of a device");
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(memory->facts.back(), (Fact{"over by", "2.00 GiB", {}}));
  EXPECT_TRUE(facts.explained.contains("does not fit")) << facts.explained.toStdString();
  EXPECT_TRUE(facts.explained.contains("(2.0 GiB too much)"));
}

TEST(Views, ThePeakOfTheMemoryViewHasRoomAboveIt) {
  TimeAxis axis;
  Selection selection;
  MemoryView view(axis, selection);
  view.resize(kHeaderWidth + 600 + kGutterWidth, 320);
  auto document = std::make_shared<Document>(*simulated_document());
  document->summary.fit.capacity = {};
  axis.set_extent({{0}, document->trace().makespan});
  view.set_document(document);
  ASSERT_NE(view.series(), nullptr);
  const double most = static_cast<double>(std::max(sum(view.series()->peak), view.series()->arena).value);
  EXPECT_GE(static_cast<double>(view.top().value), 1.11 * (most + static_cast<double>(document->summary.fit.framework.value)));
}

// ---- communication: two quantities, two names

TEST(Views, CommunicationThatIsNotHiddenIsNotCalledLikeTheIdleTime) {
  const auto document = pipeline_document();
  std::set<QString> labels;
  const auto rows = delta_rows(*document, *document);
  for (const DeltaRow& row : rows) EXPECT_TRUE(labels.insert(row.label.trimmed()).second) << row.label.toStdString();
  EXPECT_TRUE(labels.contains("communication not hidden"));
  std::set<QString> facts;
  for (const FactSection& one : facts_of(*document, {}, nullptr).sections)
    if (one.title == "Time") {
      for (const Fact& fact : one.facts) EXPECT_TRUE(facts.insert(fact.label.trimmed()).second) << fact.label.toStdString();
    }
  EXPECT_TRUE(facts.contains("communication not hidden"));
}

// ---- the chain

// Hundreds of operations are a few lines, and what the list has no room for is counted.
TEST(Views, TheChainIsGroupedByActionBeforeItIsCut) {
  int counted = 0, whole = 0;
  for (const auto& document : {single_operations_document(), pipeline_document()})
    for (std::size_t b = 0; b < document->bubbles.size(); ++b) {
      const Facts facts = facts_of(*document, {PickedKind::Bubble, static_cast<std::int32_t>(b), {}, {}}, nullptr);
      const FactSection* chain = section(facts, "What it waited for, latest first");
      if (chain == nullptr) continue;
      const Fact& last = chain->facts.back();
      if (chain->facts.size() > kChainShown) {
        EXPECT_TRUE(last.label.endsWith(" more")) << last.label.toStdString();
        ++counted;
        continue;
      }
      // All of it is there: the last line is the action in which the chain begins.
      std::int32_t span = last.leads_to.index;
      ASSERT_EQ(last.leads_to.kind, PickedKind::Span);
      const Span& from = document->trace().spans[static_cast<std::size_t>(span)];
      while (document->bindings[static_cast<std::size_t>(span)].before >= 0)
        span = document->bindings[static_cast<std::size_t>(span)].before;
      const Span& start = document->trace().spans[static_cast<std::size_t>(span)];
      EXPECT_EQ(start.who, from.who);
      EXPECT_EQ(start.action, from.action);
      ++whole;
    }
  EXPECT_GT(counted, 0);
  EXPECT_GT(whole, 0);
}

// ---- find

TEST(Views, AnActionIsFoundAsAWhole) {
  const auto document = single_operations_document();
  const auto hits = find_hits(*document, "B3");
  ASSERT_FALSE(hits.empty());
  const FindHit& hit = hits.front();
  EXPECT_EQ(hit.picked.kind, PickedKind::Action);
  const auto range = range_of(*document, hit.picked);
  ASSERT_TRUE(range);
  EXPECT_EQ(hit.range, *range);
  // All operations of the action on its stream lie in the range, and it is longer than any of them.
  const Span& first = document->trace().spans[static_cast<std::size_t>(hit.picked.index)];
  int operations = 0;
  for (const Span& span : document->trace().spans) {
    if (span.who != first.who || span.stream != first.stream || span.action != first.action) continue;
    ++operations;
    EXPECT_GE(span.begin, range->begin);
    EXPECT_LE(span.end, range->end);
  }
  EXPECT_GT(operations, 10);
  const Facts facts = facts_of(*document, hit.picked, nullptr);
  EXPECT_EQ(facts.title, "B3");
  EXPECT_FALSE(facts.roofline);
}

// ---- the ruler

TEST(Views, EveryMarkOfTheRulerIsNamedInOneUnit) {
  const TextWidth width_of = [](const QString& text) { return 7.0 * static_cast<double>(text.size()); };
  for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>(0, 20'000'000'000),
                                   {0, 10'000'000},
                                   {700'000'000, 1'100'000'000},
                                   {0, 1'000},
                                   {0, 1'100'000'000}})
    for (const double width : {330.0, 700.0, 1201.0}) {
      std::set<QString> units;
      double free_from = -1;
      int named = 0, major = 0;
      for (const RulerMark& mark : ruler_marks({{begin}, {end}}, width, width_of)) {
        if (!mark.major) continue;
        ++major;
        if (mark.text.isEmpty()) continue;
        ++named;
        units.insert(mark.text.section(' ', -1));
        EXPECT_GE(mark.text_x, free_from) << mark.text.toStdString();
        free_from = mark.text_x + width_of(mark.text);
        EXPECT_LE(free_from, width);
      }
      EXPECT_EQ(units.size(), 1u) << begin << " " << end;
      EXPECT_EQ(named, major) << begin << " " << end << " " << width;
    }
}

// ---- numbers and words

TEST(Views, NumbersReadAsNumbers) {
  const QString thin = QString(QChar(0x202f));
  EXPECT_EQ(count_words(999), "999");
  EXPECT_EQ(count_words(26215), "26" + thin + "215");
  EXPECT_EQ(count_words(-128'000'000), "-128" + thin + "000" + thin + "000");
  EXPECT_EQ(number_words(1370.2), "1" + thin + "370");
  EXPECT_EQ(number_words(0.137), "0.14");
  EXPECT_EQ(time_text(Nanoseconds{12'300}), QString::fromUtf8("12.3 µs"));
  EXPECT_EQ(time_text(Nanoseconds{12'061'000'000'000}), "12" + thin + "061 s");
  EXPECT_EQ(tick_text({12'500}, {500}), QString::fromUtf8("12.5 µs"));
}

// A card of 1226 GiB beside a chart of 1.20 TiB is a puzzle.
TEST(Views, MemoryHasOneUnit) {
  const Bytes large{1226LL << 30};
  EXPECT_EQ(bytes_words(large), count_words(1226) + " GiB");
  EXPECT_EQ(memory_text(large), bytes_words(large));
  EXPECT_EQ(bytes_words({12LL << 40}), "12.0 TiB");
  EXPECT_EQ(memory_text({12LL << 40}), "12.0 TiB");
  EXPECT_EQ(bytes_words({1226LL << 20}), "1.20 GiB");
}

TEST(Views, ANumberStaysInOnePieceInRichText) {
  QTextDocument page;
  page.setHtml("<p>" + rich_words(count_words(1226) + " < " + count_words(2000)) + "</p>");
  const QString nbsp = QString(QChar(QChar::Nbsp));
  EXPECT_EQ(page.toRawText(), "1" + nbsp + "226 < 2" + nbsp + "000");
}

TEST(Views, WhatHasNoTokensIsCountedInSamples) {
  auto document = std::make_shared<Document>(*simulated_document());
  document->workload.tokens_per_sample = 0;
  const auto says = [&](const QString& words) {
    bool said =
        std::ranges::any_of(delta_rows(*document, *document), [&](const DeltaRow& row) { return row.label.contains(words); });
    for (const FactSection& one : facts_of(*document, {}, nullptr).sections)
      said |= std::ranges::any_of(one.facts, [&](const Fact& fact) { return fact.label.contains(words); });
    return said;
  };
  EXPECT_TRUE(says("samples per second"));
  EXPECT_FALSE(says("token"));
}

TEST(Views, ChineseReachesEveryRowOfACompareAndOfTheRun) {
  const auto document = simulated_document();
  const auto labels = [&] {
    std::vector<QString> all;
    for (const DeltaRow& row : delta_rows(*document, *document)) all.push_back(row.label);
    for (const FactSection& one : facts_of(*document, {}, nullptr).sections) {
      all.push_back(one.title);
      for (const Fact& fact : one.facts) all.push_back(fact.label);
    }
    return all;
  };
  const std::vector<QString> english = labels();
  const Language language("zh_CN");
  const std::vector<QString> chinese = labels();
  ASSERT_EQ(english.size(), chinese.size());
  for (std::size_t i = 0; i < english.size(); ++i) EXPECT_NE(english[i], chinese[i]) << english[i].toStdString();
}

TEST(Views, WhatIsNothingIsNotSaid) {
  const auto document = single_operations_document();
  for (std::size_t s = 0; s < document->trace().spans.size(); s += 3)
    for (const FactSection& one :
         facts_of(*document, {PickedKind::Span, static_cast<std::int32_t>(s), {}, {}}, nullptr).sections)
      for (const Fact& fact : one.facts)
        EXPECT_FALSE(fact.value.startsWith("0.00 FLOP")) << fact.label.toStdString() << " of " << s;
}

TEST(Views, ChineseReachesRolesInstructionsAndReasons) {
  std::vector<QString> english;
  for (const StrategyOption& option : strategy_options()) english.push_back(option_label(option.path));
  const Language chinese("zh_CN");
  for (std::size_t i = 0; i < english.size(); ++i) EXPECT_NE(option_label(strategy_options()[i].path), english[i]);
  EXPECT_FALSE(role_words("stages 0,8,16,24,...,72").contains("stage"));
  EXPECT_FALSE(instruction_words("receive gradient").contains("receive"));
  auto document = std::make_shared<Document>(*simulated_document());
  document->summary.fit.capacity = {std::int64_t{1} << 30};
  document->summary.fit.margin = {-(std::int64_t{2} << 30)};
  document->summary.feasible = false;
  const QString reason = facts_of(*document, {}, nullptr).explained;
  EXPECT_FALSE(reason.contains("does not fit")) << reason.toStdString();
  EXPECT_TRUE(reason.contains("GiB"));
}

}  // namespace
}  // namespace foreshard::views_test
