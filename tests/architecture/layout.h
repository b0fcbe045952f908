// Checks of the shape of the source: arrows between rooms, outside libraries, forbidden names, sizes. Works on text, so
// that each rule can be shown to fail on a string.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace foreshard::layout {

struct Room {
  std::set<std::string> may_include = {};  // other rooms
  std::set<std::string> libraries = {};    // outside, by name
};
struct Library {
  std::vector<std::string> header_prefixes = {};
  std::set<std::string> targets = {};  // of CMake
  bool in_headers = false;             // "(in headers)" beside its prefixes: headers of its rooms may include it
};
struct Rules {
  std::map<std::string, Room> rooms = {};
  std::map<std::string, Library> libraries = {};
};

// The tables of docs/architecture.md: "| folder | holds | may include | outside libraries |" and "| library | headers |
// ... |".
Rules parse_rules(const std::string& markdown);

using Complaints = std::vector<std::string>;

// `path` from the root of the repository ("core/plan.h"); its first part is the room.
Complaints check_includes(const Rules& rules, const std::string& path, const std::string& text);
// Calls of foreshard_room(name ...) and target_link_libraries(foreshard...).
Complaints check_links(const Rules& rules, const std::string& cmake);
Complaints check_names(const std::string& path, const std::string& text);
Complaints check_sizes(const std::string& path, const std::string& text);

// Comments and literals replaced by blanks; line breaks stay.
std::string without_comments_and_literals(const std::string& text);

}  // namespace foreshard::layout
