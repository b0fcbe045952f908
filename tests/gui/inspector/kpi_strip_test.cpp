#include "gui/inspector/kpi_strip.h"

#include <gtest/gtest.h>

#include "gui/document/search_rows.h"
#include "gui/document/words.h"
#include "tests/gui/documents.h"

namespace foreshard::kpi_strip_test {

static Kpi kpi(const std::vector<Kpi>& kpis, const QString& name) {
  for (const Kpi& one : kpis)
    if (one.name == name) return one;
  return {};
}

// 16 GPUs of two nodes, of which a plan uses 8: half of its utilisation is the cluster's.
TEST(KpiStrip, AClusterThatIsPartlyIdleIsSaid) {
  const auto whole = simulated_document();
  ASSERT_EQ(whole->summary.gpus, 16);
  EXPECT_FALSE(kpi(kpis_of(*whole, nullptr), "GPUs").alarming);
  Document half = *whole;
  half.summary.gpus = 8;
  half.summary.flops.model_utilization = 0.4;
  const Kpi gpus = kpi(kpis_of(half, nullptr), "GPUs"), mfu = kpi(kpis_of(half, nullptr), "MFU");
  EXPECT_TRUE(gpus.alarming);
  EXPECT_EQ(gpus.aside, "of 16 used");
  EXPECT_TRUE(mfu.alarming);
  EXPECT_TRUE(mfu.aside.startsWith("20.0 %")) << mfu.aside.toStdString();
}

TEST(KpiStrip, ThousandsAreApartAsInTheViews) {
  Document large = *simulated_document();
  large.summary.gpus = 3072;
  EXPECT_EQ(kpi(kpis_of(large, nullptr), "GPUs").value, count_words(3072));
  EXPECT_EQ(memory_text({3072LL << 30}), count_words(3072) + " GiB");
}

TEST(KpiStrip, TheBaselineIsNamedAndOneOfAnotherModelIsNoMeasure) {
  const auto document = simulated_document();
  Document slower = *document;
  slower.summary.iteration_time.value *= 2;
  const Kpi step = kpis_of(*document, &slower)[0];
  EXPECT_TRUE(step.aside.contains("50.0 %")) << step.aside.toStdString();
  EXPECT_TRUE(step.aside.contains("A ")) << step.aside.toStdString();
  slower.model = "another";
  for (const Kpi& one : kpis_of(*document, &slower)) EXPECT_FALSE(one.aside.contains("50.0 %")) << one.name.toStdString();
  EXPECT_TRUE(kpis_of(*document, &slower)[0].aside.contains("another"));
}

TEST(KpiStrip, DigitsGoBeforeTheUnit) {
  const auto room_for = [](qsizetype letters) { return [letters](const QString& text) { return text.size() <= letters; }; };
  EXPECT_EQ(with_fewer_digits("615.69 ms", room_for(9)), "615.69 ms");
  EXPECT_EQ(with_fewer_digits("615.69 ms", room_for(8)), "615.7 ms");
  EXPECT_EQ(with_fewer_digits("615.69 ms", room_for(6)), "616 ms");
  EXPECT_EQ(with_fewer_digits("223.0 GiB", room_for(7)), "223 GiB");
  EXPECT_EQ(with_fewer_digits("1024", room_for(2)), "1024");  // nothing to leave out
}

}  // namespace foreshard::kpi_strip_test
