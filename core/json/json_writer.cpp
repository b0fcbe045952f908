#include <charconv>
#include <cmath>
#include <string_view>

#include "core/base/error.h"
#include "core/json/json.h"

namespace foreshard {

// Bytes of the UTF-8 sequence at the front of `text`, 0 when it is ill-formed (RFC 3629: no overlong forms, no
// surrogates).
static std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned lead = byte(0), second = byte(1);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4 || !continues(1)) return 0;
  if (lead < 0xE0) return 2;
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) || !continues(2)) return 0;
  if (lead < 0xF0) return 3;
  if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F) || !continues(3)) return 0;
  return 4;
}

static void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    const char c = text.front(), last = length == 2 ? text[1] : c;
    const auto code = static_cast<unsigned char>(last);
    const bool high = length == 2 && static_cast<unsigned char>(c) == 0xC2 && code < 0xA0;  // U+0080 to U+009F
    if (length == 0)
      out += "\uFFFD";
    else if (length > 1 && !high)
      out += text.substr(0, length);
    else if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (code < 0x20 || code == 0x7F || high) {
      constexpr char hex[] = "0123456789abcdef";
      ((out += "\\u00") += hex[code >> 4]) += hex[code & 15];
    } else
      out += c;
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

JsonWriter::JsonWriter(int indent) : indent_(indent) {}

void JsonWriter::new_line() {
  if (indent_ == 0) return;
  out_ += '\n';
  out_.append(levels_.size() * static_cast<std::size_t>(indent_), ' ');
}

void JsonWriter::before_value() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (levels_.empty()) {
    FS_ASSERT(out_.empty());  // one value per document
    return;
  }
  Level& level = levels_.back();
  FS_ASSERT(level.array);  // a member needs its key first
  if (!level.first) out_ += level.line && indent_ != 0 ? ", " : ",";
  if (!level.line) new_line();
  level.first = false;
}

JsonWriter& JsonWriter::begin_object() {
  before_value();
  out_ += '{';
  levels_.push_back({.array = false, .line = !levels_.empty() && levels_.back().line});
  return *this;
}

JsonWriter& JsonWriter::begin_array() {
  before_value();
  out_ += '[';
  levels_.push_back({.array = true, .line = !levels_.empty() && levels_.back().line});
  return *this;
}

JsonWriter& JsonWriter::begin_line_array() {
  begin_array();
  levels_.back().line = true;
  return *this;
}

JsonWriter& JsonWriter::end_object() {
  FS_ASSERT(!levels_.empty() && !levels_.back().array && !after_key_);
  const Level level = levels_.back();
  levels_.pop_back();
  if (!level.first && !level.line) new_line();
  out_ += '}';
  return *this;
}

JsonWriter& JsonWriter::end_array() {
  FS_ASSERT(!levels_.empty() && levels_.back().array);
  const Level level = levels_.back();
  levels_.pop_back();
  if (!level.first && !level.line) new_line();
  out_ += ']';
  return *this;
}

JsonWriter& JsonWriter::key(const std::string& name) {
  FS_ASSERT(!levels_.empty() && !levels_.back().array && !after_key_);
  Level& level = levels_.back();
  if (!level.first) out_ += level.line && indent_ != 0 ? ", " : ",";
  if (!level.line) new_line();
  level.first = false;
  append_quoted(out_, name);
  out_ += indent_ == 0 ? ":" : ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(const std::string& text) {
  before_value();
  append_quoted(out_, text);
  return *this;
}

JsonWriter& JsonWriter::value(const char* text) {
  before_value();
  append_quoted(out_, text);
  return *this;
}

JsonWriter& JsonWriter::value(bool b) { return raw(b ? "true" : "false"); }
JsonWriter& JsonWriter::null() { return raw("null"); }

JsonWriter& JsonWriter::value(double d) {
  if (!std::isfinite(d)) return null();  // JSON has no infinity or NaN
  char digits[32];
  before_value();
  out_.append(digits, std::to_chars(digits, digits + sizeof digits, d).ptr);
  return *this;
}

JsonWriter& JsonWriter::value(std::int64_t n) {
  char digits[24];
  before_value();
  out_.append(digits, std::to_chars(digits, digits + sizeof digits, n).ptr);
  return *this;
}

JsonWriter& JsonWriter::raw(const std::string& json) {
  before_value();
  out_ += json;
  return *this;
}

std::string JsonWriter::text() const {
  FS_ASSERT(levels_.empty() && !after_key_);
  return indent_ == 0 ? out_ : out_ + "\n";
}

std::string quoted_json(const std::string& text) { return JsonWriter(0).value(text).text(); }

}  // namespace foreshard
