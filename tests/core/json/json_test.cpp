#include "core/json/json.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <random>

#include "core/base/error.h"

namespace foreshard::json_test {

namespace fs = std::filesystem;

static JsonReader read(const std::string& text) { return JsonReader::parse(text, "f.json"); }

template <class Action>
static std::string message(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(JsonReader, ReadsEveryKindOfValue) {
  const JsonReader json = read(R"({"n": null, "b": true, "i": -3, "d": 0.5, "s": "x", "a": [1, [2]], "o": {"k": 4}})");
  EXPECT_TRUE(json.at("n").is_null());
  EXPECT_TRUE(json.at("b").as_bool());
  EXPECT_EQ(json.at("i").as_int(), -3);
  EXPECT_EQ(json.at("d").as_double(), 0.5);
  EXPECT_EQ(json.at("s").as_string(), "x");
  EXPECT_EQ(json.at("a").size(), 2u);
  EXPECT_EQ(json.at("a").at(1).at(0).path(), "a[1][0]");
  EXPECT_EQ(json.at("o").at("k").path(), "o.k");
  EXPECT_EQ(json.at("o").at("k").as_double(), 4);
  EXPECT_FALSE(json.find("missing"));
  EXPECT_EQ(json.file(), "f.json");
  EXPECT_EQ(json.path(), "");
}

TEST(JsonReader, KeepsTheOrderOfKeysAndFindsThemInLargeObjects) {
  std::string text = "{";
  for (int i = 99; i >= 0; --i) text += "\"k" + std::to_string(i) + "\": " + std::to_string(i) + (i ? "," : "}");
  const JsonReader json = read(text);
  const auto members = json.members();
  ASSERT_EQ(members.size(), 100u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(members[i].first, "k" + std::to_string(99 - i));
    EXPECT_EQ(json.at("k" + std::to_string(i)).as_int(), i);
  }
  EXPECT_FALSE(json.has("k100"));
  EXPECT_FALSE(json.has(""));
}

// Long arrays of integers are kept as columns: nothing that can be asked of an array may tell the difference, whatever stands
// where. 300 is longer than the limit, 200 is not.
TEST(JsonReader, ColumnsOfIntegersReadAsArrays) {
  for (const int length : {0, 1, 200, 255, 256, 300, 5000})
    for (const std::string odd : {"", "2.5", "\"x\"", "[7]", "18446744073709551615", "null"}) {
      for (const int place : {0, 1, length / 2, length}) {
        if (place > length || (odd.empty() && place > 0)) continue;
        std::string text;
        for (int i = 0; i <= length; ++i) {
          if (i == place && !odd.empty()) text += (text.empty() ? "" : ",") + odd;
          if (i < length) text += (text.empty() ? "" : ",") + std::to_string(i - 3);
        }
        const JsonReader json = read("{\"a\": [" + text + "], \"after\": 4}").at("a");
        const auto size = static_cast<std::size_t>(length) + (odd.empty() ? 0 : 1);
        ASSERT_TRUE(json.is_array() && !json.is_number() && !json.is_object());
        ASSERT_EQ(json.size(), size);
        EXPECT_EQ(json.found(), "an array of " + std::to_string(size));
        EXPECT_EQ(json.elements().size(), size);
        for (std::size_t i = 0; i < size; i += std::max<std::size_t>(size / 7, 1)) {
          const auto at = static_cast<std::int64_t>(i);
          if (!odd.empty() && at == place) continue;
          EXPECT_EQ(json.at(i).as_int(), at - 3 - (!odd.empty() && at > place ? 1 : 0)) << length << odd << place;
          EXPECT_EQ(json.at(i).path(), "a[" + std::to_string(i) + "]");
        }
        if (odd.empty()) {
          EXPECT_EQ(json.as_ints().size(), size);
        }
        if (odd == "null") {
          EXPECT_EQ(json.at(static_cast<std::size_t>(place)).found(), "null");
        }
      }
    }
}

TEST(JsonReader, AColumnNamesTheElementThatIsWrong) {
  std::string text = "[0";
  for (int i = 1; i < 1000; ++i) text += "," + std::to_string(i);
  const JsonReader json = read(text + "]");
  EXPECT_EQ(json.as_ints(0, 999).back(), 999);
  EXPECT_EQ(message([&] { json.as_ints(0, 700); }), "f.json: [701]: found 701, expected an integer from 0 to 700");
  EXPECT_EQ(message([&] { json.as_ints(1); }), "f.json: [0]: found 0, expected an integer of at least 1");
  EXPECT_EQ(message([&] { json.at(1000); }), "f.json: found an array of 1000, expected an array of at least 1001");
  EXPECT_EQ(message([&] { json.at(5).as_string(); }), "f.json: [5]: found 5, expected a text");
}

TEST(JsonReader, AllowsComments) { EXPECT_EQ(read("// head\n{\"a\": 1 /* one */ } // tail\n").at("a").as_int(), 1); }

TEST(JsonReader, ParseErrorsNameLineAndColumn) {
  EXPECT_EQ(message([] { read("{\n  \"a\": 1,\n  \"b\" 2\n}"); }), "f.json: line 3, column 7: found \"2\", expected ':'");
  EXPECT_EQ(message([] { read(""); }).substr(0, 55), "f.json: line 1, column 1: found the end of the text, ex");
  EXPECT_NE(message([] { read("[1, 2"); }).find("line 1, column 6: found the end of the text"), std::string::npos);
  EXPECT_NE(message([] { read("[1] x"); }).find("line 1, column 5"), std::string::npos);
  EXPECT_NE(message([] { read("[\"\xff\"]"); }).find("(invalid string: ill-formed UTF-8 byte)"), std::string::npos);
  EXPECT_NE(message([] { read("[NaN]"); }).find("line 1, column 2"), std::string::npos);
  EXPECT_NE(message([] { read("[1e999]"); }).find("number overflow"), std::string::npos);
}

TEST(JsonReader, ADuplicateKeyIsAnError) {
  EXPECT_EQ(message([] { read(R"({"a": [0, {"b": 1, "c": 2, "b": 1}]})"); }),
            "f.json: a[1].b: found the key a second time, expected each key once");
}

TEST(JsonReader, DeepNestingIsRefusedBeforeTheStackIs) {
  EXPECT_NO_THROW(read(std::string(200, '[') + std::string(200, ']')));
  EXPECT_EQ(message([] { read(std::string(1'000'000, '[')); }),
            "f.json: found values nested deeper than 200 levels, expected a flatter document");
}

TEST(JsonReader, ComplaintsSayPathFoundAndExpected) {
  const JsonReader json = read(R"({"a": {"b": [1, "two", 9223372036854775808, 1.5, null, {}]}})");
  const JsonReader list = json.at("a").at("b");
  EXPECT_EQ(message([&] { list.at(1).as_int(); }), "f.json: a.b[1]: found \"two\", expected an integer");
  EXPECT_EQ(message([&] { list.at(0).as_int(2); }), "f.json: a.b[0]: found 1, expected an integer of at least 2");
  EXPECT_EQ(message([&] { list.at(0).as_int(2, 3); }), "f.json: a.b[0]: found 1, expected an integer from 2 to 3");
  EXPECT_EQ(message([&] { list.at(2).as_int(); }),
            "f.json: a.b[2]: found 9223372036854775808, expected an integer that fits 64 bits");
  EXPECT_EQ(message([&] { list.at(3).as_int(); }), "f.json: a.b[3]: found 1.5, expected an integer");
  EXPECT_EQ(message([&] { list.at(3).as_double(0, 1); }), "f.json: a.b[3]: found 1.5, expected a number from 0 to 1");
  EXPECT_EQ(message([&] { list.at(4).as_bool(); }), "f.json: a.b[4]: found null, expected true or false");
  EXPECT_EQ(message([&] { list.at(5).as_string(); }), "f.json: a.b[5]: found an object of 0, expected a text");
  EXPECT_EQ(message([&] { list.at("x"); }), "f.json: a.b: found an array of 6, expected an object");
  EXPECT_EQ(message([&] { json.elements(); }), "f.json: found an object of 1, expected an array");
  EXPECT_EQ(message([&] { list.at(6); }), "f.json: a.b: found an array of 6, expected an array of at least 7");
  EXPECT_EQ(message([&] { json.at("a").at("c"); }), "f.json: a.c: found nothing, expected a value for this key");
  EXPECT_EQ(message([&] {
              list.at(1).as_choice({"one", "tow"});
            }),
            "f.json: a.b[1]: found \"two\", expected one of \"one\", \"tow\" (nearest: \"tow\")");
}

TEST(JsonReader, UnknownKeysNameTheNearestKnownOne) {
  const JsonReader json = read(R"({"o": {"levles": 3}})");
  EXPECT_EQ(message([&] {
              json.at("o").only({"levels", "links"});
            }),
            "f.json: o.levles: found an unknown key with value 3, expected \"levels\" (known keys: levels, links)");
  EXPECT_NO_THROW(json.only({"o"}));
}

TEST(JsonReader, IntegersMayBeWrittenAsDoubles) {
  EXPECT_EQ(read("1e9").as_int(), 1'000'000'000);
  EXPECT_EQ(read("-9223372036854775808").as_int(), INT64_MIN);
  EXPECT_THROW(read("1e16").as_int(), Error);  // above 2^53 a double may stand for several integers
}

TEST(JsonReader, QuantitiesWithUnits) {
  const JsonReader json = read(R"(["80 GiB", "1.5 kB", 7, "450 GB/s", "200 Gb/s", "3 us", "250ns", 0.5, "312 TFLOP/s"])");
  EXPECT_EQ(json.at(0).as_bytes(), Bytes{80LL << 30});
  EXPECT_EQ(json.at(1).as_bytes(), Bytes{1500});
  EXPECT_EQ(json.at(2).as_bytes(), Bytes{7});
  EXPECT_EQ(json.at(3).as_bandwidth(), BytesPerSecond{450e9});
  EXPECT_EQ(json.at(4).as_bandwidth(), BytesPerSecond{25e9});  // bits: 200e9 / 8
  EXPECT_EQ(json.at(5).as_seconds(), Seconds{3e-6});
  EXPECT_EQ(json.at(6).as_seconds(), Seconds{250e-9});
  EXPECT_EQ(json.at(7).as_seconds(), Seconds{0.5});
  EXPECT_EQ(json.at(8).as_flops(), FlopsPerSecond{312e12});
}

TEST(JsonReader, WrongQuantities) {
  EXPECT_EQ(message([] { read(R"({"t": "3 hours"})").at("t").as_seconds(); }),
            "f.json: t: found \"3 hours\", expected a time of at least 0 with a unit (s, ms, us, ns)");
  for (const char* text : {"\"80\"", "\"GB\"", "\"80 gb\"", "\"-1 GB\"", "\"inf GB\"", "\"nan GB\"", "\"1e300 TB\"",
                           "\"0x10 GB\"", "\"80 GB x\"", "-1", "1.5", "true", "[]", "\"\"", "\"99999999 TB\"", "\"1.5 B\""})
    EXPECT_THROW(read(text).as_bytes(), Error) << text;
  EXPECT_THROW(read("-1").as_bandwidth(), Error);
  EXPECT_THROW(read("\"200 GB\"").as_bandwidth(), Error);
  EXPECT_THROW(read("\"1e300 PFLOP/s\"").as_flops(), Error);
}

TEST(JsonReader, BytesInOptions) {
  EXPECT_EQ(parse_bytes("25 MiB", "--bucket", ""), Bytes{25 << 20});
  EXPECT_EQ(parse_bytes("4096", "--bucket", ""), Bytes{4096});
  EXPECT_EQ(message([] { parse_bytes("25 M", "--bucket", ""); }),
            "--bucket: found \"25 M\", expected a size of at least 0 with a unit (B, kB, KB, MB, GB, TB, KiB, MiB, "
            "GiB, TiB)");
}

TEST(JsonWriter, LayoutIsReadable) {
  JsonWriter json;
  json.begin_object().field("a", 1).field("b", "x").key("line").begin_line_array().value(1).value(2.5);
  json.begin_object().field("k", true).end_object().end_array();
  json.key("none").begin_array().end_array().key("list").begin_array().value(std::int64_t{1}).null().end_array();
  json.end_object();
  EXPECT_EQ(json.text(),
            "{\n  \"a\": 1,\n  \"b\": \"x\",\n  \"line\": [1, 2.5, {\"k\": true}],\n  \"none\": [],\n"
            "  \"list\": [\n    1,\n    null\n  ]\n}\n");
}

TEST(JsonWriter, OneLine) {
  JsonWriter json(0);
  json.begin_object().field("a", 1).key("b").begin_array().value(1).value(2).end_array().key("c").raw("[3]").end_object();
  EXPECT_EQ(json.text(), R"({"a":1,"b":[1,2],"c":[3]})");
}

TEST(JsonWriter, EscapesText) {
  JsonWriter json(0);
  json.value(std::string("q\" b\\ n\n t\t \x01 \xc3\xa9 \xff \xe2\x82 \xed\xa0\x80 \xf0\x9f\x98\x80 ", 31) +
             std::string(1, '\0'));
  const std::string text = json.text();
  EXPECT_EQ(text.substr(0, 26), R"("q\" b\\ n\n t\t \u0001 )"
                                "\xc3\xa9");
  const std::string back = read(text).as_string();
  EXPECT_EQ(back, std::string("q\" b\\ n\n t\t \x01 é \uFFFD \uFFFD\uFFFD \uFFFD\uFFFD\uFFFD 😀 ") + '\0');
}

TEST(JsonWriter, DoublesReadBackEqual) {
  constexpr double largest = std::numeric_limits<double>::max();
  std::mt19937_64 random(7);
  std::vector<double> values = {0.1, 1e22, 5e-324, largest, -1.0 / 3, 1e9, 123456789012345678.0};
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t bits = random();
    double d = 0;
    std::memcpy(&d, &bits, sizeof d);
    if (std::isfinite(d)) values.push_back(d);
  }
  for (const double d : values) {
    JsonWriter json(0);
    json.value(d);
    EXPECT_EQ(read(json.text()).as_double(-largest, largest), d);
  }
  JsonWriter json(0);
  json.value(std::numeric_limits<double>::infinity());
  EXPECT_EQ(json.text(), "null");
}

class JsonFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("foreshard-json-" + std::to_string(::getpid()));
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(JsonFile, WritesAndReadsBackAndLeavesNothingBeside) {
  const std::string path = folder_ / "a.json";
  write_file(path, "one");
  write_file(path, std::string(100'000, 'x') + '\0');
  EXPECT_EQ(read_file(path), std::string(100'000, 'x') + '\0');
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(JsonFile, AFailedWriteKeepsWhatWasThere) {
  const std::string path = folder_ / "missing" / "a.json";
  EXPECT_EQ(message([&] { write_file(path, "x"); }),
            path + ": found No such file or directory, expected a file that can be written");
  EXPECT_THROW(write_file(folder_, "x"), Error);
  EXPECT_THROW(read_file(folder_), Error);
  EXPECT_EQ(message([&] { read_file(path); }), path + ": found No such file or directory, expected a file that can be read");
  if (fs::exists("/dev/full")) {
    EXPECT_NE(message([] { write_file("/dev/full", "x"); }).find("No space left"), std::string::npos);
  }
}

TEST_F(JsonFile, ALinkStaysALinkAndADeviceADevice) {
  write_file(folder_ / "real", "old");
  fs::create_symlink(folder_ / "real", folder_ / "link");
  write_file(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_file(folder_ / "real"), "new");
  write_file("/dev/null", "x");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

}  // namespace foreshard::json_test
