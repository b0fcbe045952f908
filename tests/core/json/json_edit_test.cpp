#include "core/json/json_edit.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/json/json.h"

namespace foreshard::json_edit_test {

static std::string refusal(const std::string& text, const std::string& path) {
  try {
    with_json_value(text, path, "1", "command line");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(JsonEdit, ReplacesAndAddsValues) {
  const std::string text = R"({"a": {"b": 1}, "list": [{"n": 1}, {"n": 2}]})";
  const auto read = [&](const std::string& path, const std::string& value) {
    return JsonReader::parse(with_json_value(text, path, value, "x"), "f");
  };
  EXPECT_EQ(read("a.b", "7").at("a").at("b").as_int(), 7);
  EXPECT_EQ(read("a.c", "true").at("a").at("c").as_bool(), true);
  EXPECT_EQ(read("a.b", "80 GiB").at("a").at("b").as_string(), "80 GiB");
  EXPECT_EQ(read("list[1].n", "2.5").at("list").at(1).at("n").as_double(), 2.5);
  EXPECT_EQ(read("list[1].n", "2.5").at("list").at(0).at("n").as_int(), 1);
  EXPECT_EQ(read("new.deep", "1").at("new").at("deep").as_int(), 1);
  EXPECT_EQ(read("a", "[1, 2]").at("a").size(), 2u);
}

TEST(JsonEdit, ReadsValues) {
  const std::string text = R"({"a": {"b": 1}, "list": [{"n": "x"}]})";
  EXPECT_EQ(json_value(text, "a.b", "x"), "1");
  EXPECT_EQ(json_value(text, "list[0].n", "x"), "\"x\"");
  EXPECT_EQ(json_value(text, "list[1]", "x"), "");
  EXPECT_EQ(json_value(text, "a.b.c", "x"), "");
}

TEST(JsonEdit, RefusesPathsThatLeadNowhere) {
  const std::string shape = "\", expected keys joined by dots, such as fabric.levels or nodes[0].count";
  const std::string text = R"({"a": 1, "list": [1]})";
  for (const std::string path : {"", ".", "a.", "a..b", "list[", "list[x]", "list[0"})
    EXPECT_EQ(refusal(text, path), "command line: --set: found the path \"" + path + shape) << path;
  EXPECT_EQ(refusal(text, "list[1]"), "command line: list[1]: found position 1, expected less than 1");
  EXPECT_EQ(refusal(text, "a[0]"), "command line: a[0]: found position 0, expected a key: this is no array");
  EXPECT_EQ(refusal(text, "a.b"), "command line: a.b: found the key b, expected no key there: it is 1");
}

// A file that is being written: an Error as for any other file, not an exception of the JSON library.
TEST(JsonEdit, RefusesATextThatIsNoJson) {
  const std::string broken = R"({"architectures": ["LlamaForCausalLM", "hidden_size": })";
  EXPECT_TRUE(refusal(broken, "a").starts_with("command line: line 1, column "));
  EXPECT_THROW(json_value(broken, "a", "x"), Error);
}

}  // namespace foreshard::json_edit_test
