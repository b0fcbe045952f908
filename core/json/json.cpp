#include "core/json/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <variant>

#include "core/base/error.h"
#include "core/base/printable.h"

namespace foreshard {

// Our own tree: it keeps the order of the keys, and reading it needs nothing of the JSON library.
namespace {

struct Member;
struct Node;
using Array = std::vector<Node>;
using Integers = std::vector<std::int64_t>;  // a long array of integers only, which needs an eighth of the memory of nodes
struct Object {
  std::vector<Member> members;
  std::vector<std::uint32_t> by_name;  // sorted; filled for objects too large for a scan
  const Node* find(std::string_view key) const;
};
struct Node {
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object, Integers> value;
};
struct Member {
  std::string name;
  Node node;
};

constexpr std::size_t scan_limit = 16;
constexpr std::size_t least_integers = 256;  // shorter arrays stay arrays of nodes
constexpr std::size_t shown_bytes = 60;      // of a text from a file, in a one-line message
constexpr std::size_t depth_limit = 200;     // readers of the tree recurse

const Node* Object::find(std::string_view key) const {
  if (by_name.empty()) {
    const auto hit = std::find_if(members.begin(), members.end(), [&](const Member& m) { return m.name == key; });
    return hit == members.end() ? nullptr : &hit->node;
  }
  const auto hit = std::lower_bound(by_name.begin(), by_name.end(), key,
                                    [&](std::uint32_t i, std::string_view k) { return members[i].name < k; });
  return hit == by_name.end() || members[*hit].name != key ? nullptr : &members[*hit].node;
}

std::string joined(const std::string& path, std::string_view key) {
  std::string out;
  out.reserve(path.size() + key.size() + 1);
  out += path;
  if (!path.empty()) out += '.';
  return out += key;
}

std::string position_text(const std::string& text, std::size_t offset) {
  const std::string_view before(text.data(), std::min(offset, text.size()));
  const std::size_t start = before.rfind('\n') + 1;  // npos + 1 = 0: the first line
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(before.size() - start + 1);
}

// What the parser expected: the tail of "...; expected ':'", or its reason from "[id] ... - reason; last read:
// ...".
std::string wish(std::string what) {
  if (const auto expected = what.rfind("; expected "); expected != std::string::npos)
    return printable(what.substr(expected + 11), shown_bytes);
  what = what.substr(0, what.find("; last read"));
  const auto dash = what.find(" - "), bracket = what.find("] ");
  if (dash != std::string::npos)
    what = what.substr(dash + 3);
  else if (bracket != std::string::npos)
    what = what.substr(bracket + 2);
  return "valid JSON (" + printable(what, 200) + ")";
}

// Receives the parser's events and grows the tree.
class TreeBuilder {
 public:
  using json = nlohmann::json;
  TreeBuilder(const std::string& text, const std::string& file, Node& root) : text_(text), file_(file), root_(root) {}

  bool null() { return add({}); }
  bool boolean(bool b) { return add({b}); }
  bool number_integer(json::number_integer_t n) {
    if (Integers* column = open_column()) {
      column->push_back(n);
      return true;
    }
    return add({std::int64_t{n}});
  }
  bool number_unsigned(json::number_unsigned_t n) {
    if (n > static_cast<std::uint64_t>(INT64_MAX)) return add({static_cast<double>(n)});
    return number_integer(static_cast<std::int64_t>(n));
  }
  bool number_float(json::number_float_t d, const std::string&) { return add({double{d}}); }
  bool string(std::string& s) { return add({std::move(s)}); }
  bool binary(json::binary_t&) { return false; }  // never part of JSON text
  bool start_object(std::size_t) { return open({Object{}}); }
  bool start_array(std::size_t) { return open({Array{}}); }
  bool key(std::string& name) {
    std::get<Object>(open_.back()->value).members.push_back({std::move(name), {}});
    return true;
  }
  bool end_object() {
    index(std::get<Object>(open_.back()->value));
    open_.pop_back();
    return true;
  }
  bool end_array() {
    if (auto* column = std::get_if<Integers>(&open_.back()->value)) {
      column->shrink_to_fit();
      if (column->size() < least_integers) spell_out();
    }
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t offset, const std::string& token, const json::exception& problem) {
    const std::string what = problem.what();
    const bool ended = offset > text_.size() || what.find("end of input") != std::string::npos;
    throw Error(file_, position_text(text_, offset == 0 ? 0 : offset - 1),
                ended ? "the end of the text" : "\"" + printable(token, shown_bytes) + "\"", wish(what));
  }

 private:
  // The open array while it may become a column of integers.
  Integers* open_column() {
    if (open_.empty()) return nullptr;
    const Array* array = std::get_if<Array>(&open_.back()->value);
    if (array && array->empty()) open_.back()->value = Integers{};
    return std::get_if<Integers>(&open_.back()->value);
  }
  void spell_out() {
    Array array;
    array.reserve(std::get<Integers>(open_.back()->value).size());
    for (const std::int64_t n : std::get<Integers>(open_.back()->value)) array.push_back({n});
    open_.back()->value = std::move(array);
  }

  Node& place(Node node) {
    if (open_.empty()) return root_ = std::move(node);
    if (std::holds_alternative<Integers>(open_.back()->value)) spell_out();
    if (Array* array = std::get_if<Array>(&open_.back()->value)) return array->emplace_back(std::move(node));
    return std::get<Object>(open_.back()->value).members.back().node = std::move(node);
  }
  bool add(Node node) {
    place(std::move(node));
    return true;
  }
  bool open(Node node) {
    if (open_.size() == depth_limit)
      throw Error(file_, "", "values nested deeper than " + std::to_string(depth_limit) + " levels", "a flatter document");
    open_.push_back(&place(std::move(node)));
    return true;
  }
  void index(Object& object) {
    const auto& members = object.members;
    std::vector<std::uint32_t> order(members.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto before = [&](std::uint32_t a, std::uint32_t b) { return members[a].name < members[b].name; };
    std::sort(order.begin(), order.end(), before);
    const auto twice =
        std::adjacent_find(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return !before(a, b); });
    if (twice != order.end())
      throw Error(file_, joined(path(), printable(members[*twice].name, shown_bytes)), "the key a second time",
                  "each key once");
    if (members.size() > scan_limit) object.by_name = std::move(order);
  }
  std::string path() const {  // of the open object
    std::string path;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i) {
      if (const Array* array = std::get_if<Array>(&open_[i]->value))
        path += "[" + std::to_string(array->size() - 1) + "]";
      else
        path = joined(path, printable(std::get<Object>(open_[i]->value).members.back().name, shown_bytes));
    }
    return path;
  }

  const std::string& text_;
  const std::string& file_;
  Node& root_;
  std::vector<Node*> open_;  // a container that is open never moves: its parent grows only after it is closed
};

const Node& at_node(const void* node) { return *static_cast<const Node*>(node); }

std::string shortest(double d) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, d).ptr};
}

}  // namespace

struct JsonReader::Document {
  std::string file;
  Node root;
};

static const Integers* column_of(const void* node) { return std::get_if<Integers>(&at_node(node).value); }

JsonReader::JsonReader(std::shared_ptr<const Document> document, const void* node, std::string path)
    : document_(std::move(document)), node_(node), path_(std::move(path)) {}

JsonReader JsonReader::parse(const std::string& text, const std::string& file_name) {
  auto document = std::make_shared<Document>();
  document->file = file_name;
  TreeBuilder builder(text, document->file, document->root);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder, nlohmann::json::input_format_t::json, true, true);
  const Node* root = &document->root;
  return {std::move(document), root, ""};
}

const std::string& JsonReader::file() const { return document_->file; }
std::string JsonReader::path() const { return path_; }

bool JsonReader::is_null() const { return at_node(node_).value.index() == 0; }
bool JsonReader::is_bool() const { return std::holds_alternative<bool>(at_node(node_).value); }
bool JsonReader::is_string() const { return std::holds_alternative<std::string>(at_node(node_).value); }
bool JsonReader::is_array() const { return std::holds_alternative<Array>(at_node(node_).value) || column_of(node_); }
bool JsonReader::is_object() const { return std::holds_alternative<Object>(at_node(node_).value); }
bool JsonReader::is_number() const {
  const auto& value = at_node(node_).value;
  return std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value);
}

std::string JsonReader::found() const {
  const auto& value = at_node(node_).value;
  if (is_null()) return "null";
  if (is_bool()) return std::get<bool>(value) ? "true" : "false";
  if (const auto* n = std::get_if<std::int64_t>(&value)) return std::to_string(*n);
  if (const auto* d = std::get_if<double>(&value)) return shortest(*d);
  if (const auto* s = std::get_if<std::string>(&value)) return "\"" + printable(*s, shown_bytes) + "\"";
  if (is_array()) return "an array of " + std::to_string(size());
  return "an object of " + std::to_string(std::get<Object>(value).members.size());
}

void JsonReader::fail(const std::string& expected) const { throw Error(file(), path_, found(), expected); }

bool JsonReader::has(const std::string& key) const {
  const auto* object = std::get_if<Object>(&at_node(node_).value);
  if (!object) fail("an object");
  return object->find(key) != nullptr;
}

std::optional<JsonReader> JsonReader::find(const std::string& key) const {
  const auto* object = std::get_if<Object>(&at_node(node_).value);
  if (!object) fail("an object");
  const Node* node = object->find(key);
  if (!node) return std::nullopt;
  return JsonReader(document_, node, joined(path_, key));
}

JsonReader JsonReader::at(const std::string& key) const {
  std::optional<JsonReader> member = find(key);
  if (!member) throw Error(file(), joined(path_, key), "nothing", "a value for this key");
  return *std::move(member);
}

std::vector<std::pair<std::string, JsonReader>> JsonReader::members() const {
  const auto* object = std::get_if<Object>(&at_node(node_).value);
  if (!object) fail("an object");
  std::vector<std::pair<std::string, JsonReader>> out;
  out.reserve(object->members.size());
  for (const Member& m : object->members)
    out.emplace_back(m.name, JsonReader(document_, &m.node, joined(path_, printable(m.name, shown_bytes))));
  return out;
}

void JsonReader::only(const std::vector<std::string>& known) const {
  for (const auto& [name, value] : members()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string list;
    for (const std::string& k : known) list += (list.empty() ? "" : ", ") + k;
    const std::string near = nearest_name(name, known);
    throw Error(file(), value.path_, "an unknown key with value " + value.found(),
                near.empty() ? "one of " + list : "\"" + near + "\" (known keys: " + list + ")");
  }
}

std::size_t JsonReader::size() const {
  if (const Integers* column = column_of(node_)) return column->size();
  const auto* array = std::get_if<Array>(&at_node(node_).value);
  if (!array) fail("an array");
  return array->size();
}

JsonReader JsonReader::at(std::size_t index) const {
  if (index >= size()) fail("an array of at least " + std::to_string(index + 1));
  std::string path = path_ + "[" + std::to_string(index) + "]";
  if (const Integers* column = column_of(node_)) {  // the element becomes a node of its own
    auto one = std::make_shared<Document>(Document{document_->file, {(*column)[index]}});
    const Node* root = &one->root;
    return {std::move(one), root, std::move(path)};
  }
  return {document_, &std::get<Array>(at_node(node_).value)[index], std::move(path)};
}

std::vector<JsonReader> JsonReader::elements() const {
  std::vector<JsonReader> out;
  const std::size_t n = size();
  out.reserve(n);
  for (std::size_t i = 0; i < n; ++i) out.push_back(at(i));
  return out;
}

std::vector<std::int64_t> JsonReader::as_ints(std::int64_t least, std::int64_t most) const {
  if (const Integers* column = column_of(node_)) {
    const auto wrong = std::find_if(column->begin(), column->end(), [&](std::int64_t n) { return n < least || n > most; });
    if (wrong != column->end()) at(static_cast<std::size_t>(wrong - column->begin())).as_int(least, most);  // throws
    return *column;
  }
  std::vector<std::int64_t> out(size());
  const Array& array = std::get<Array>(at_node(node_).value);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto* n = std::get_if<std::int64_t>(&array[i].value);
    out[i] = n && *n >= least && *n <= most ? *n : at(i).as_int(least, most);
  }
  return out;
}

bool JsonReader::as_bool() const {
  if (const bool* b = std::get_if<bool>(&at_node(node_).value)) return *b;
  fail("true or false");
}

template <class T, class Text>
static std::string range_text(const std::string& what, T least, T most, T no_least, T no_most, Text text) {
  if (least == no_least && most == no_most) return what;
  if (most == no_most) return what + " of at least " + text(least);
  if (least == no_least) return what + " of at most " + text(most);
  return what + " from " + text(least) + " to " + text(most);
}

std::int64_t JsonReader::as_int(std::int64_t least, std::int64_t most) const {
  const auto& value = at_node(node_).value;
  const auto wanted = [&] {
    return range_text<std::int64_t>("an integer", least, most, INT64_MIN, INT64_MAX,
                                    [](std::int64_t n) { return std::to_string(n); });
  };
  std::int64_t n = 0;
  const auto* d = std::get_if<double>(&value);
  if (const auto* exact = std::get_if<std::int64_t>(&value)) {
    n = *exact;
  } else if (d && *d == std::floor(*d) && std::fabs(*d) <= 9e15) {
    n = static_cast<std::int64_t>(*d);  // 1e9 is an integer too; every double this small is exact
  } else {
    fail(d && *d == std::floor(*d) ? "an integer that fits 64 bits" : wanted());
  }
  if (n < least || n > most) fail(wanted());
  return n;
}

double JsonReader::as_double(double least, double most) const {
  const auto& value = at_node(node_).value;
  const auto wanted = [&] { return range_text("a number", least, most, -1e300, 1e300, shortest); };
  double d = 0;
  if (const auto* n = std::get_if<std::int64_t>(&value))
    d = static_cast<double>(*n);
  else if (const auto* x = std::get_if<double>(&value))
    d = *x;
  else
    fail(wanted());
  if (!(d >= least && d <= most)) fail(wanted());
  return d;
}

const std::string& JsonReader::as_string() const {
  if (const auto* s = std::get_if<std::string>(&at_node(node_).value)) return *s;
  fail("a text");
}

std::string JsonReader::as_choice(const std::vector<std::string>& words) const {
  if (is_string() && std::find(words.begin(), words.end(), as_string()) != words.end()) return as_string();
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "\"" : ", \"") + word + "\"";
  const std::string near = is_string() ? nearest_name(as_string(), words) : "";
  fail("one of " + list + (near.empty() ? "" : " (nearest: \"" + near + "\")"));
}

}  // namespace foreshard
