#include "core/profile/profile_collectives.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/base/count_text.h"
#include "core/json/json.h"
#include "core/network/network.h"
#include "core/plan/plan_words.h"

namespace foreshard {

namespace {

constexpr double kLongestMeasure = 1e6;
constexpr double kRounded = 1e-3;  // a bandwidth written with three digits is accepted as that of its bytes and seconds

template <class Enum>
Enum choice_of(const JsonReader& json, const std::vector<std::string>& known) {
  return static_cast<Enum>(std::find(known.begin(), known.end(), json.as_choice(known)) - known.begin());
}

void expect_rate(const JsonReader& entry, const char* name, BytesPerSecond rate) {
  const auto found = entry.find(name);
  if (!found || std::abs(found->as_double(0, 1e18) - rate.value) <= kRounded * rate.value) return;
  found->fail(std::to_string(std::llround(rate.value)) + ", which follows from bytes, ranks and seconds (or no " + name + ")");
}

CollectiveMeasure read_measure(const JsonReader& entry) {
  entry.only({"collective", "algorithm", "link", "ranks", "nodes", "bytes", "seconds", "algbw", "busbw"});
  CollectiveMeasure at{.kind = choice_of<CollectiveKind>(entry.at("collective"), words<CollectiveKind>()),
                       .algorithm = choice_of<MeasuredAlgorithm>(entry.at("algorithm"), measured_algorithms()),
                       .link = choice_of<MeasuredLink>(entry.at("link"), measured_links()),
                       .ranks = static_cast<int>(entry.at("ranks").as_int(2, 1'000'000)),
                       .nodes = static_cast<int>(entry.at("nodes").as_int(1, 1'000'000)),
                       .bytes = {entry.at("bytes").as_int(1, std::int64_t{1} << 50U)},
                       .time = {entry.at("seconds").as_double(0, kLongestMeasure)}};
  if (at.time.value <= 0) entry.at("seconds").fail("more than 0 seconds");
  if (at.link != MeasuredLink::Network && at.nodes != 1) entry.at("nodes").fail("1, the link being " + word_of(at.link));
  if (at.link == MeasuredLink::Network && (at.nodes < 2 || at.ranks % at.nodes != 0))
    entry.at("nodes").fail("2 or more, the link being the network, and equally many of the " + counted(at.ranks, "rank") +
                           " on each");
  expect_rate(entry, "algbw", at.algorithm_bandwidth());
  expect_rate(entry, "busbw", at.bus_bandwidth());
  return at;
}

}  // namespace

BytesPerSecond CollectiveMeasure::bus_bandwidth() const {
  return {collective_volume(kind, Algorithm::Ring, bytes, ranks).bytes / time.value};
}

bool comes_before(const CollectiveMeasure& a, const CollectiveMeasure& b) {
  return std::tuple(a.kind, a.algorithm, a.link, a.nodes, a.ranks, a.bytes) <
         std::tuple(b.kind, b.algorithm, b.link, b.nodes, b.ranks, b.bytes);
}

std::optional<FittedLink> fitted_link(const std::vector<CollectiveMeasure>& measures, MeasuredLink link) {
  double aa = 0, ab = 0, bb = 0, a = 0, b = 0;
  for (const CollectiveMeasure& at : measures) {
    if (at.kind != CollectiveKind::AllReduce || at.link != link) continue;
    const CollectiveVolume volume = collective_volume(at.kind, Algorithm::Ring, at.bytes, at.ranks);
    const double x = volume.steps / at.time.value, y = volume.bytes / at.time.value;
    aa += x * x, ab += x * y, bb += y * y, a += x, b += y;
  }
  const double determinant = aa * bb - ab * ab;
  if (determinant <= 1e-12 * aa * bb) return {};
  return FittedLink{.latency = {std::max((a * bb - b * ab) / determinant, 1e-9)},
                    .bandwidth = {1 / std::max((b * aa - a * ab) / determinant, 1e-13)}};
}

const std::vector<std::string>& measured_links() {
  static const std::vector<std::string> list = {"process", "node", "nvlink", "pcie", "network"};
  return list;
}
const std::string& word_of(MeasuredLink link) { return measured_links()[static_cast<std::size_t>(link)]; }

const std::vector<std::string>& measured_algorithms() {
  static const std::vector<std::string> list = {"automatic",     "direct", "ring",      "tree", "collnet_direct",
                                                "collnet_chain", "nvls",   "nvls_tree", "pat"};
  return list;
}
const std::string& word_of(MeasuredAlgorithm algorithm) { return measured_algorithms()[static_cast<std::size_t>(algorithm)]; }

void write_collectives(JsonWriter& json, const std::vector<CollectiveMeasure>& measures) {
  json.key("collectives").begin_array();
  for (const CollectiveMeasure& at : measures) {
    JsonWriter line(0);
    line.begin_object().field("collective", word(at.kind)).field("algorithm", word_of(at.algorithm));
    line.field("link", word_of(at.link)).field("ranks", at.ranks).field("nodes", at.nodes).field("bytes", at.bytes.value);
    line.field("seconds", at.time.value).field("algbw", at.algorithm_bandwidth().value);
    json.raw(line.field("busbw", at.bus_bandwidth().value).end_object().text());
  }
  json.end_array();
}

std::vector<CollectiveMeasure> read_collectives(const JsonReader& json) {
  std::vector<CollectiveMeasure> all;
  for (const JsonReader& entry : json.elements()) {
    all.push_back(read_measure(entry));
    if (all.size() > 1 && !comes_before(all[all.size() - 2], all.back()))
      entry.fail("an entry that comes after the one before, by collective, algorithm, link, nodes, ranks and bytes");
  }
  return all;
}

}  // namespace foreshard
