#include <gtest/gtest.h>

#include <QApplication>
#include <QTest>

#include "core/cluster_file/cluster_file.h"
#include "gui/topology/link_load.h"
#include "gui/topology/topology_view.h"
#include "report/words/span_words.h"
#include "sim/simulate.h"
#include "strategy/tune/tune.h"
#include "tests/gui/documents.h"

namespace foreshard::topology_test {
namespace {

TEST(LinkLoad, TheWholeRunCarriesTheBytesOfTheTrace) {
  const auto document = simulated_document();
  const LinkLoad load(*document);
  const std::int64_t end = document->trace().makespan.value;
  ASSERT_GT(document->trace().links.size(), 3u);
  for (std::size_t c = 0; c < document->trace().links.size(); ++c) {
    const double bytes = document->trace().links[c].bytes;
    EXPECT_NEAR(load.bytes(c, {{0}, {end}}), bytes, bytes * 1e-5);
    double parts = 0;
    for (int i = 0; i < 7; ++i) parts += load.bytes(c, {{end * i / 7}, {end * (i + 1) / 7}});
    EXPECT_NEAR(parts, bytes, bytes * 1e-5);
    EXPECT_GE(load.bytes(c, {{end / 3}, {end / 2}}), 0);
  }
}

TEST(LinkLoad, NothingIsCarriedBeforeAnybodyTalks) {
  const auto document = simulated_document();
  Nanoseconds first = document->trace().makespan;
  for (const Span& span : document->trace().spans)
    if (span.begin < span.end &&
        !std::holds_alternative<Compute>(instruction_of(document->plan(), document->trace(), span).what))
      first = std::min(first, span.begin);
  ASSERT_GT(first, Nanoseconds{});
  const LinkLoad load(*document);
  const std::int64_t bin = document->trace().makespan.value / 4096 + 1;
  double before = 0;
  for (std::size_t c = 0; c < document->trace().links.size(); ++c) before += load.bytes(c, {{0}, {first.value - bin}});
  EXPECT_EQ(before, 0);
}

// Two stages on two nodes: what goes forward crosses the NIC while a send of stage 0 runs, and only then.
TEST(LinkLoad, ATransferLoadsItsLinksWhileItRuns) {
  const auto document = simulated_document();
  const LinkLoad load(*document);
  const auto& links = document->trace().links;
  const auto port = std::ranges::find_if(
      links, [](const LinkClass& l) { return l.name.starts_with("node0/nic") && l.name.find("->leaf") != std::string::npos; });
  ASSERT_NE(port, links.end());
  const auto c = static_cast<std::size_t>(port - links.begin());
  for (const Span& span : document->trace().spans) {
    const auto* exchange = std::get_if<Exchange>(&instruction_of(document->plan(), document->trace(), span).what);
    if (exchange == nullptr || !exchange->to || span.who.value != 0 || span.begin == span.end) continue;
    EXPECT_GT(load.utilization(c, {span.begin, span.end}), 0.05) << "at " << span.begin.value;
    return;
  }
  FAIL() << "no send";
}

// Two stages of eight replicas on two nodes: what goes from one to the other leaves through eight NICs, one replica each, or all
// at once through the only one.
TEST(LinkLoad, TransfersThatShareALinkAreCounted) {
  for (const auto& [name, expected] : {std::pair("dgx-a100-x2", 1.0), {"eth25-a100-x2", 8.0}}) {
    const Cluster cluster = load_cluster(name);
    const Strategy strategy{.dp = 8, .pp = 2, .batch = {.global = 32, .seq = 256}};
    Model model = load_model("gpt2-124m");
    std::get<Transformer>(model.shape).tied_embeddings = false;  // whose sum goes through the NICs, too
    auto lowered = tuned_plan(model, cluster, strategy);
    const auto document = make_document(simulate(std::get<Lowered>(std::move(lowered)).plan, cluster, {}), "played");
    const LinkLoad load(*document);
    double most = 0;
    for (std::size_t c = 0; c < document->trace().links.size(); ++c)
      if (document->trace().links[c].name.find("/nic") != std::string::npos)
        most = std::max(most, load.sharers(c, {{0}, document->trace().makespan}));
    EXPECT_NEAR(most, expected, expected * 0.02) << name;
  }
}

TEST(LinkLoad, WithoutAClusterBytesAreSpreadEvenly) {
  Document document = *simulated_document();
  document.cluster.reset();
  const LinkLoad load(document);
  const std::int64_t end = document.trace().makespan.value;
  const double bytes = document.trace().links.front().bytes;
  EXPECT_NEAR(load.bytes(0, {{0}, {end / 4}}), bytes / 4, bytes * 1e-3);
  EXPECT_EQ(load.bytes(999, {{0}, {end}}), 0);
}

TEST(TopologyLayout, EveryGpuAndEveryNodeIsThereAndNothingOverlaps) {
  const auto document = simulated_document();
  const Network network(*document->cluster);
  const auto of_link = classes_of_links(*document, network);
  const TopologyPicture picture = lay_topology(*document, network, of_link, 0, {0, 0, 1000, 500}, {0, 520, 1000, 40});
  EXPECT_EQ(std::ranges::count(picture.parts, PartKind::Gpu, &PartBox::kind), 8);
  EXPECT_EQ(picture.nodes.size(), 2u);
  for (std::size_t a = 0; a < picture.parts.size(); ++a)
    for (std::size_t b = a + 1; b < picture.parts.size(); ++b)
      EXPECT_FALSE(picture.parts[a].box.intersects(picture.parts[b].box)) << a << ", " << b;
  for (const LinkLine& line : picture.lines) EXPECT_EQ(line.link_class, of_link[line.link.index()]);
  // NVLink is twelve times as wide as PCIe: the line is wider.
  double nvlink = 0, pcie = 0;
  for (const LinkLine& line : picture.lines) {
    if (network.link(line.link).kind == LinkKind::NvLink) nvlink = line.width;
    if (network.link(line.link).kind == LinkKind::Pcie) pcie = line.width;
  }
  EXPECT_GT(nvlink, pcie);
}

// Of 128 nodes those from 100 on had none: three digits did not fit where two did.
TEST(TopologyView, EveryNodeHasANumberOrNone) {
  for (const double side : {9.0, 13.0, 17.0, 22.0, 40.0}) {
    std::vector<NodeCell> cells;
    for (std::int32_t node = 0; node < 128; ++node) cells.push_back({.box = {0, 0, side * 1.3, side}, .node = node});
    const auto font = number_font(QApplication::font(), cells);
    if (font) {
      EXPECT_LT(QFontMetricsF(*font).horizontalAdvance("127"), side * 1.3) << side;
    }
    EXPECT_EQ(font.has_value(), side > 10) << side;
  }
}

TEST(TopologyView, AClickPicksALinkOrANode) {
  TimeAxis axis;
  Selection selection;
  TopologyView view(axis, selection);
  view.resize(1100, 600);
  const auto document = simulated_document();
  axis.set_extent({{0}, document->trace().makespan});
  view.set_document(document);
  view.show();
  view.wait_for_load();
  const auto line = std::ranges::find_if(view.picture().lines, [](const LinkLine& l) { return l.link_class >= 0; });
  ASSERT_NE(line, view.picture().lines.end());
  const std::int32_t wanted = line->link_class;
  QTest::mouseClick(&view, Qt::LeftButton, {}, ((line->from + line->to) / 2).toPoint());
  EXPECT_EQ(selection.picked().kind, PickedKind::Link);
  EXPECT_GE(wanted, 0);
  QTest::mouseClick(&view, Qt::LeftButton, {}, view.picture().nodes[1].box.center().toPoint());
  EXPECT_EQ(view.shown_node(), 1);
  selection.pick({PickedKind::Class, 0, {}});
  EXPECT_EQ(view.shown_node(), 0);
  EXPECT_EQ(view.grab().toImage(), view.grab().toImage());
}

TEST(TopologyView, WithoutAClusterItSaysSo) {
  TimeAxis axis;
  Selection selection;
  TopologyView view(axis, selection);
  view.resize(800, 400);
  EXPECT_FALSE(view.grab().isNull());
  auto document = std::make_shared<Document>(*simulated_document());
  document->cluster.reset();
  document->remarks = {"The plan names no cluster."};
  view.set_document(document);
  view.wait_for_load();
  selection.pick({PickedKind::Class, 0, {}});
  QTest::mouseClick(&view, Qt::LeftButton, {}, {300, 200});
  EXPECT_FALSE(view.grab().isNull());
}

}  // namespace
}  // namespace foreshard::topology_test
