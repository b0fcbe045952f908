// Reading and writing JSON, strict but for `//` comments. A JsonReader refers to one value of a document and knows its file and path, so
// that every Error says file, field, value found and what was expected. A key that occurs twice in an object is an error, and so is
// nesting deeper than 200. No type of the JSON library appears here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/units.h"

namespace foreshard {

std::string read_file(const std::string& path);  // throws Error
// Replaces the file as a whole (core/base/file_replacement.h); a pipe or a device is written into. Throws Error.
void write_file(const std::string& path, const std::string& text);

class JsonReader {
 public:
  // The top value of a document. Throw Error for text that is not strict JSON.
  static JsonReader parse(const std::string& text, const std::string& file_name);
  static JsonReader load(const std::string& path) { return parse(read_file(path), path); }

  const std::string& file() const;
  std::string path() const;  // of this value: "fabric.levels"; "" at the top
  bool is_null() const, is_object() const, is_array() const, is_string() const, is_number() const, is_bool() const;
  std::string found() const;  // the value as one short text for an Error

  // objects
  bool has(const std::string& key) const;
  JsonReader at(const std::string& key) const;  // throws when missing
  std::optional<JsonReader> find(const std::string& key) const;
  std::vector<std::pair<std::string, JsonReader>> members() const;
  void only(const std::vector<std::string>& known) const;  // any other key throws, with the nearest known name

  // arrays
  std::size_t size() const;
  JsonReader at(std::size_t index) const;
  std::vector<JsonReader> elements() const;
  std::vector<std::int64_t> as_ints(std::int64_t least = INT64_MIN,
                                    std::int64_t most = INT64_MAX) const;  // long columns at once

  // values; all throw Error if the value has another type or lies outside [least, most] or `words`
  bool as_bool() const;
  std::int64_t as_int(std::int64_t least = INT64_MIN, std::int64_t most = INT64_MAX) const;
  double as_double(double least = -1e300, double most = 1e300) const;
  const std::string& as_string() const;
  std::string as_choice(const std::vector<std::string>& words) const;
  // quantities, at least 0: a number in bytes, bytes/s, seconds or FLOP/s, or text with a unit: "80 GiB", "450 GB/s", "200 Gb/s", "2 us",
  // "312 TFLOP/s"
  Bytes as_bytes() const;
  BytesPerSecond as_bandwidth() const;
  Seconds as_seconds() const;
  FlopsPerSecond as_flops() const;
  [[noreturn]] void fail(const std::string& expected) const;  // throws Error about this value

 private:
  struct Document;
  JsonReader(std::shared_ptr<const Document> document, const void* node, std::string path);
  std::shared_ptr<const Document> document_;  // shared by all readers of one document
  const void* node_;
  std::string path_;
};

// Bytes from a text with a unit ("80 GiB") or a plain number of bytes, as files and options write them. Throws Error, which names the
// input by `where` and `field`.
Bytes parse_bytes(const std::string& text, const std::string& where, const std::string& field);

// Writes JSON in the order of the calls. A finite double reads back equal; any other is written as null. Each byte of text that is not
// valid UTF-8 is written as U+FFFD.
class JsonWriter {
 public:
  explicit JsonWriter(int indent = 2);  // spaces per level; 0: all on one line
  JsonWriter &begin_object(), &end_object(), &begin_array(), &end_array();
  JsonWriter& begin_line_array();  // an array kept on one line
  JsonWriter& key(const std::string& name);
  JsonWriter &value(const std::string&text), &value(const char*text), &value(bool b), &value(double d), &null();
  JsonWriter& value(std::int64_t n);
  JsonWriter& value(int n) { return value(static_cast<std::int64_t>(n)); }
  JsonWriter& raw(const std::string& json);  // a value that is already JSON text
  template <class T>
  JsonWriter& field(const std::string& name, const T& v) {
    return key(name).value(v);
  }
  std::string text() const;  // ends with a line break unless all is on one line

 private:
  void before_value();
  void new_line();
  std::string out_;
  int indent_;
  struct Level {
    bool array = false, line = false, first = true;
  };
  std::vector<Level> levels_;
  bool after_key_ = false;
};

std::string quoted_json(const std::string& text);  // as a value of JSON

}  // namespace foreshard
