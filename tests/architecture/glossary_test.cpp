// docs/glossary.md: every term says where it is defined, and that file speaks of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace foreshard {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(std::string(FORESHARD_SOURCE) + "/" + path);
  std::stringstream text;
  text << file.rdbuf();
  std::string low = text.str();
  std::transform(low.begin(), low.end(), low.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return low;
}

// Words of a term that carry its meaning, without a plural.
std::set<std::string> words_of(const std::string& term) {
  static const std::set<std::string> little = {"of", "an", "a", "the", "five", "op"};
  std::set<std::string> words;
  static const std::regex word(R"([a-z-]+)");
  for (std::sregex_iterator it(term.begin(), term.end(), word), end; it != end; ++it)
    if (std::string found = it->str(); !little.contains(found)) {
      if (found.size() > 4 && found.back() == 's') found.pop_back();
      words.insert(found);
    }
  return words;
}

struct Entry {
  std::string term = {}, file = {};
};

std::vector<std::string> complaints(const std::vector<Entry>& entries) {
  std::vector<std::string> out;
  std::set<std::string> seen;
  for (const Entry& entry : entries) {
    if (!seen.insert(entry.term).second) out.push_back(entry.term + " stands there twice");
    const std::string text = text_of(entry.file);
    if (text.empty()) out.push_back(entry.term + ": no file " + entry.file);
    const std::set<std::string> words = words_of(entry.term);
    if (std::none_of(words.begin(), words.end(), [&](const std::string& word) { return text.find(word) != std::string::npos; }))
      out.push_back(entry.file + " does not speak of: " + entry.term);
  }
  return out;
}

std::vector<Entry> entries_of(const std::string& markdown) {
  static const std::regex row(R"(\| ([^|]+) \| [^|]+ \| `([^`]+)` \|)");
  std::vector<Entry> entries;
  for (std::sregex_iterator it(markdown.begin(), markdown.end(), row), end; it != end; ++it)
    entries.push_back({(*it)[1], (*it)[2]});
  return entries;
}

TEST(Glossary, EveryTermIsDefinedWhereItSays) {
  const std::vector<Entry> entries = entries_of(text_of("docs/glossary.md"));
  EXPECT_GE(entries.size(), 50U);
  for (const std::string& complaint : complaints(entries)) ADD_FAILURE() << complaint;
}

TEST(Glossary, AWrongRowIsFound) {
  EXPECT_EQ(complaints({{"plan", "core/plan/no_such_file.h"}}).size(), 2U);
  EXPECT_EQ(complaints({{"tennis", "core/plan/plan.h"}}),
            std::vector<std::string>{"core/plan/plan.h does not speak of: tennis"});
  EXPECT_EQ(complaints({{"plan", "core/plan/plan.h"}, {"plan", "core/plan/plan.h"}}),
            std::vector<std::string>{"plan stands there twice"});
}

}  // namespace
}  // namespace foreshard
