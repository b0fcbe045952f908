#include "gui/document/facts.h"

#include <gtest/gtest.h>

#include <QTest>
#include <QTextBrowser>

#include "core/json/json_edit.h"
#include "gui/document/span_facts.h"
#include "gui/document/timeline_labels.h"
#include "gui/inspector/inspector_view.h"
#include "tests/gui/documents.h"

namespace foreshard::facts_test {
namespace {

QString value_of(const Facts& facts, const QString& label) {
  for (const FactSection& section : facts.sections)
    for (const Fact& fact : section.facts)
      if (fact.label == label) return fact.value;
  return "(none)";
}

TEST(Facts, ABubbleSaysWhyAndWhatItWaitedFor) {
  const auto document = pipeline_document();
  for (std::size_t b = 0; b < document->bubbles.size(); ++b) {
    const Bubble& bubble = document->bubbles[b];
    const Facts facts = facts_of(*document, {PickedKind::Bubble, static_cast<std::int32_t>(b), {}}, nullptr);
    EXPECT_TRUE(facts.title.startsWith("Idle "));
    EXPECT_FALSE(facts.explained.isEmpty());
    if (bubble.before < 0 || document->bindings[static_cast<std::size_t>(bubble.before)].before < 0) continue;
    // The last section is the chain; its first link is the binding predecessor of the span that ends the bubble.
    const Fact& first = facts.sections.back().facts.front();
    EXPECT_EQ(first.leads_to,
              (Picked{PickedKind::Span, document->bindings[static_cast<std::size_t>(bubble.before)].before, {}}));
    EXPECT_LE(facts.sections.back().facts.size(), kChainShown + 1);  // the last one counts what is left out
  }
}

TEST(Facts, TheSharesOfAClassAddUp) {
  // Stage 3 of the pipeline: 8 forwards of 1 ms, 8 backwards of 2 ms, an update of 0.5 ms are busy.
  const auto document = pipeline_document();
  const Facts facts = facts_of(*document, {PickedKind::Class, 3, {}}, nullptr);
  EXPECT_TRUE(value_of(facts, "busy").startsWith("24.5 ms")) << value_of(facts, "busy").toStdString();
  EXPECT_TRUE(facts.explained.startsWith("2 rank"));
}

// A file of a prediction says how far it may be off and what was said of it; a run of that plan, whose file has them too, does not.
TEST(Facts, APredictionHasItsIntervalAndItsNotes) {
  Result result = simulated_document()->result;
  result.plan.origin = with_json_value(
      with_json_value(result.plan.origin.empty() ? "{}" : result.plan.origin, "prediction_interval",
                      R"({"low_s": 1.5, "high_s": 2.25, "rows": 7, "extrapolated": true, "basis": "compared with 4 sources"})",
                      "origin"),
      "notes", R"(["no --seq was given"])", "origin");
  const auto prediction = make_document(result);
  const Facts facts = facts_of(*prediction, {}, nullptr);
  EXPECT_EQ(value_of(facts, "90 % interval"), "1.50-2.25 s");
  EXPECT_EQ(value_of(facts, "  rests on"), "compared with 4 sources");
  EXPECT_EQ(value_of(facts, "no --seq was given"), "");
  result.trace.origin = Origin::Measured;
  const auto run = make_document(result);
  EXPECT_EQ(value_of(facts_of(*run, {}, nullptr), "90 % interval"), "(none)");
  EXPECT_EQ(value_of(facts_of(*run, {}, nullptr), "no --seq was given"), "(none)");
}

// Of a schedule whose runs overlap the iteration is the steady period, as on the card; the timeline shows one by itself.
TEST(Facts, AnIterationIsTheSteadyPeriod) {
  Result result = simulated_document()->result;
  EXPECT_EQ(value_of(facts_of(*make_document(result), {}, nullptr), "  one by itself, filled and drained"), "(none)");
  const double makespan = to_seconds(result.trace.makespan).value;
  result.period_s = makespan / 2;
  const Facts facts = facts_of(*make_document(result), {}, nullptr);
  EXPECT_EQ(value_of(facts, "iteration"), time_text(to_nanoseconds({makespan / 2})));
  EXPECT_EQ(value_of(facts, "  one by itself, filled and drained"), time_text(result.trace.makespan));
}

TEST(Facts, TheRooflineOfAnOperation) {
  const auto document = simulated_document();
  const Gpu& gpu = document->cluster->gpus.front();
  int points = 0;
  for (std::size_t s = 0; s < document->trace().spans.size(); ++s) {
    const Span& span = document->trace().spans[s];
    const auto point = roofline_of(*document, span);
    if (!point) continue;
    ++points;
    EXPECT_EQ(point->bandwidth, gpu.memory_bandwidth.value);
    EXPECT_DOUBLE_EQ(point->roof(), std::min(point->peak, point->intensity * point->bandwidth));
    EXPECT_LE(point->attained, point->peak * 1.0001);
  }
  EXPECT_GT(points, 100);
  EXPECT_FALSE(roofline_of(*pipeline_document(), pipeline_document()->trace().spans.front()));
}

TEST(Facts, EverythingThatCanBePickedHasATitle) {
  const auto document = simulated_document();
  for (std::size_t s = 0; s < document->trace().spans.size(); s += 7) {
    const Facts facts = facts_of(*document, {PickedKind::Span, static_cast<std::int32_t>(s), {}}, nullptr);
    EXPECT_FALSE(facts.title.isEmpty());
    EXPECT_NE(value_of(facts, "duration"), "(none)");
  }
  for (std::size_t l = 0; l < document->trace().links.size(); ++l)
    EXPECT_NE(value_of(facts_of(*document, {PickedKind::Link, static_cast<std::int32_t>(l), {}}, nullptr), "used"), "(none)");
  const Facts whole = facts_of(*document, {}, nullptr);
  EXPECT_NE(value_of(whole, "iteration"), "(none)");
  for (const PickedKind kind : {PickedKind::Span, PickedKind::Bubble, PickedKind::Class, PickedKind::Link})
    for (const std::int32_t index : {-1, 10'000'000}) EXPECT_EQ(facts_of(*document, {kind, index, {}}, nullptr), whole);
}

TEST(Facts, TheMeasuredActionIsBesideThePredicted) {
  const auto document = pipeline_document();
  Result twice = document->result;
  for (Span& span : twice.trace.spans) span.begin.value *= 2, span.end.value *= 2, span.ready.value *= 2;
  twice.trace.makespan.value *= 2;
  const auto twin = match_twin(*document, make_document(twice, "m", played::cluster_of(8)));
  const std::int32_t span = document->lanes.find({2}, LaneKind::Compute)->span.front();
  EXPECT_EQ(value_of(facts_of(*document, {PickedKind::Span, span, {}}, twin.get()), "error"), "+100.0 %");
}

TEST(Facts, RatesInPowersOfAThousand) {
  EXPECT_EQ(rate_words(312e12, "FLOP/s"), "312 TFLOP/s");
  EXPECT_EQ(rate_words(1.5e9, "B/s"), "1.50 GB/s");
  EXPECT_EQ(rate_words(0, "B/s"), "0.00 B/s");
}

TEST(InspectorView, ALinkOfTheChainIsPicked) {
  TimeAxis axis;
  Selection selection;
  InspectorView view(axis, selection);
  const auto document = pipeline_document();
  view.set_document(document);
  selection.pick({PickedKind::Bubble, 2, {}});
  EXPECT_TRUE(view.text().contains("Idle"));
  auto* page = view.findChild<QTextBrowser*>();
  ASSERT_NE(page, nullptr);
  Q_EMIT page->anchorClicked(QUrl(QString("pick:%1/%2").arg(static_cast<int>(PickedKind::Span)).arg(5)));
  EXPECT_EQ(selection.picked(), (Picked{PickedKind::Span, 5, {}}));
  Q_EMIT page->anchorClicked(QUrl("pick:99"));
  EXPECT_EQ(selection.picked(), (Picked{PickedKind::Span, 5, {}}));
  view.set_document(nullptr);
  EXPECT_TRUE(view.text().isEmpty());
}

}  // namespace
}  // namespace foreshard::facts_test
