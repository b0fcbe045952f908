#include "core/profile/learned_costs.h"

#include <algorithm>

#include "core/json/json.h"

namespace foreshard {

namespace {

constexpr double kMostScale = 100;  // bound on standard deviations of logarithms, far above any machine
constexpr double kMostPull = 1e12;  // of a posterior, in units of its data
constexpr std::size_t kMostShapes = 10'000;

double scale(const JsonReader& json, const char* key) {
  const double value = json.at(key).as_double(0, kMostScale);
  if (value <= 0) json.at(key).fail("more than 0");
  return value;
}

LearnedShape read_shape(const JsonReader& json) {
  json.only({"part", "words", "place", "runs", "pull"});
  LearnedShape shape;
  const std::vector<std::string>& known = cost_part_words();
  shape.shape.part =
      static_cast<CostPart>(std::find(known.begin(), known.end(), json.at("part").as_choice(known)) - known.begin());
  for (const JsonReader& word : json.at("words").elements()) shape.shape.words.push_back(word.as_string());
  for (const JsonReader& place : json.at("place").elements())
    shape.shape.place.push_back(place.as_double(-kMostScale, kMostScale));
  shape.runs = static_cast<int>(json.at("runs").as_int(1, 1'000'000'000));
  shape.pull = json.at("pull").as_double(-kMostPull, kMostPull);
  return shape;
}

// Distances are between shapes of one part only, which have equally many words and places.
void refuse_unlike(const JsonReader& json, const std::vector<LearnedShape>& shapes) {
  const PartShape& last = shapes.back().shape;
  for (const LearnedShape& other : shapes) {
    if (&other == &shapes.back() || other.shape.part != last.part) continue;
    if (other.shape == last) json.fail("a shape that is not listed yet");
    if (other.shape.words.size() != last.words.size()) json.at("words").fail("as many words as the part's first shape has");
    if (other.shape.place.size() != last.place.size()) json.at("place").fail("as many sizes as the part's first shape has");
  }
}

}  // namespace

const std::vector<std::string>& cost_part_words() {
  static const std::vector<std::string> list = {"layer", "ends", "update", "tensor", "gradients", "transfer"};
  return list;
}

void write_learned(JsonWriter& json, const LearnedCosts& learned) {
  json.key("learned").begin_object().field("cluster", learned.cluster).field("runs", learned.runs);
  json.key("scales").begin_object().field("machine", learned.scales.machine).field("compute", learned.scales.compute);
  json.field("communication", learned.scales.communication)
      .field("reach", learned.scales.reach)
      .field("noise", learned.scales.noise)
      .end_object();
  json.key("shapes").begin_array();
  for (const LearnedShape& shape : learned.shapes) {
    JsonWriter line(0);
    line.begin_object().field("part", cost_part_words()[static_cast<std::size_t>(shape.shape.part)]).key("words").begin_array();
    for (const std::string& word : shape.shape.words) line.value(word);
    line.end_array().key("place").begin_array();
    for (const double place : shape.shape.place) line.value(place);
    json.raw(line.end_array().field("runs", shape.runs).field("pull", shape.pull).end_object().text());
  }
  json.end_array().key("doubt").begin_array();
  for (const std::vector<double>& row : learned.doubt) {
    json.begin_line_array();
    for (const double value : row) json.value(value);
    json.end_array();
  }
  json.end_array().end_object();
}

LearnedCosts read_learned(const JsonReader& json) {
  json.only({"cluster", "runs", "scales", "shapes", "doubt"});
  LearnedCosts learned{.cluster = json.at("cluster").as_string(),
                       .runs = static_cast<int>(json.at("runs").as_int(1, 1'000'000'000))};
  const JsonReader scales = json.at("scales");
  scales.only({"machine", "compute", "communication", "talk", "reach", "noise"});
  learned.scales = {.machine = scale(scales, "machine"),
                    .compute = scale(scales, "compute"),
                    .communication = scale(scales, scales.has("talk") ? "talk" : "communication"),
                    .reach = scale(scales, "reach"),
                    .noise = scale(scales, "noise")};
  const JsonReader shapes = json.at("shapes");
  if (shapes.size() == 0 || shapes.size() > kMostShapes) shapes.fail("1 to 10000 shapes");
  for (const JsonReader& entry : shapes.elements()) {
    learned.shapes.push_back(read_shape(entry));
    refuse_unlike(entry, learned.shapes);
  }
  const JsonReader doubt = json.at("doubt");
  if (doubt.size() != learned.shapes.size())
    doubt.fail("a row for each of " + std::to_string(learned.shapes.size()) + " shapes");
  for (const JsonReader& row : doubt.elements()) {
    if (row.size() != learned.doubt.size() + 1) row.fail("the lower triangle of a matrix: a value more than the row before");
    std::vector<double>& values = learned.doubt.emplace_back();
    for (const JsonReader& value : row.elements()) values.push_back(value.as_double(-kMostPull, kMostPull));
  }
  return learned;
}

}  // namespace foreshard
