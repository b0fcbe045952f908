#include "core/base/printable.h"

#include <gtest/gtest.h>

#include "core/json/json.h"

namespace foreshard {

TEST(Printable, ControlCharactersAreSpeltOut) {
  EXPECT_EQ(printable("a\x1b[31mred\x07"), "a\\x1b[31mred\\x07");
  EXPECT_EQ(printable("line\nnext\x7f"), "line\\x0anext\\x7f");
  EXPECT_EQ(printable_lines("a\tb\n\x1b"), "a\tb\n\\x1b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m \xc3\xa4"),
            "\\xc2\\x9b31m \xc3\xa4")
      << "U+009B begins a command as ESC [ does; ä stays";
  EXPECT_EQ(printable("abcdef", 3), "abc...");
}

TEST(Printable, JsonSpellsThemOutAsJsonDoes) {
  EXPECT_EQ(JsonWriter(0).value(std::string("\x1b\x7f\xc2\x9b\xc3\xa4")).text(), "\"\\u001b\\u007f\\u009b\xc3\xa4\"");
}

}  // namespace foreshard
