#include "core/base/printable.h"

#include <cstdio>

namespace foreshard {

static std::string escaped(std::string_view text, std::string_view kept) {
  std::string out;
  const auto escape = [&](unsigned char byte) {
    char hexadecimal[8];
    std::snprintf(hexadecimal, sizeof hexadecimal, "\\x%02x", byte);
    out += hexadecimal;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    if (byte == 0xc2 && next >= 0x80 && next < 0xa0)  // U+0080 to U+009F in UTF-8
      escape(byte), escape(next), ++i;
    else if ((byte < 0x20 && kept.find(text[i]) == std::string_view::npos) || byte == 0x7f)
      escape(byte);
    else
      out += text[i];
  }
  return out;
}

std::string printable(std::string_view text, std::size_t most) {
  if (text.size() <= most) return escaped(text, "");
  for (int back = 0; back < 3 && most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0U) == 0x80; ++back) --most;  // no part of a letter
  return escaped(text.substr(0, most), "") + "...";
}

std::string printable_lines(std::string_view text) { return escaped(text, "\n\t"); }

}  // namespace foreshard
