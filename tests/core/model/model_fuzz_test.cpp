// Damaged model files: an Error or a valid model, never anything else.
#include <gtest/gtest.h>

#include <random>

#include "core/base/data_path.h"
#include "core/base/error.h"
#include "core/json/json.h"
#include "core/model/model.h"

namespace foreshard::model_fuzz_test {

using Random = std::mt19937_64;

static std::size_t below(Random& random, std::size_t n) { return n == 0 ? 0 : random() % n; }

static std::string damaged_bytes(std::string text, Random& random) {
  const std::size_t at = below(random, text.size()), length = 1 + below(random, 8);
  switch (below(random, 4)) {
    case 0: return text.erase(at, length);
    case 1: return text.insert(at, text.substr(below(random, text.size()), length));
    case 2: text[at] = static_cast<char>(random() % 256); return text;
    default: return text.substr(0, at);
  }
}

// A value of the file (what stands after a colon or in an array) becomes another one.
static std::string damaged_value(std::string text, Random& random) {
  static const std::vector<std::string> values = {
      "0",    "-1",   "1",  "3",  "1e9",  "1000000000", "9223372036854775807", "1e300",     "0.5",
      "null", "true", "[]", "{}", "\"\"", "\"relu\"",   "\"input\"",           "[1, 1, 1]", "7"};
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i + 1 < text.size(); ++i)
    if ((text[i] == ':' || text[i] == '[' || text[i] == ',') && text[i + 1] == ' ') starts.push_back(i + 2);
  if (starts.empty()) return text;
  const std::size_t at = starts[below(random, starts.size())];
  const std::size_t end = std::min(text.find_first_of(",]}\n", at), text.size());
  return text.replace(at, end - at, values[below(random, values.size())]);
}

TEST(ModelFuzz, DamagedFilesGiveAnErrorOrAValidModel) {
  std::vector<std::string> texts;
  for (const std::string& name : shipped("models")) texts.push_back(read_file(data_directory() + "/models/" + name + ".json"));
  for (const char* name : {"bert-large", "toy-matmul"}) texts.push_back(to_json(load_model(name)));
  Random random(20210823);
  int valid = 0, refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = texts[static_cast<std::size_t>(i) % texts.size()];
    const std::size_t wounds = 1 + below(random, 2);
    for (std::size_t k = 0; k < wounds; ++k)
      text = below(random, 3) == 0 ? damaged_bytes(std::move(text), random) : damaged_value(std::move(text), random);
    try {
      const Model model = parse_model(text, "mutant.json");
      ++valid;
      EXPECT_GT(parameter_count(model), 0) << text;
      EXPECT_GE(parameter_count(model, 1024), parameter_count(model)) << text;
      EXPECT_EQ(parse_model(to_json(model), "again.json"), model) << text;
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(std::string(error.what()).rfind("mutant.json: ", 0), 0u) << error.what();
      EXPECT_LT(std::string(error.what()).size(), 600u) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
  // Both answers are common, so the damage is neither harmless nor only broken JSON.
  EXPECT_GT(valid, 100);
  EXPECT_GT(refused, 500);
}

}  // namespace foreshard::model_fuzz_test
