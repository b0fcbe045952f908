// Checks of the shape of the source: arrows between rooms, outside libraries, forbidden names, sizes. Works on text, so
// that each rule can be shown to fail on a string.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
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
// From a folder of a room to another one of the same room: ("core/network", "core/cluster").
using Arrow = std::pair<std::string, std::string>;
struct Rules {
  std::map<std::string, Room> rooms = {};
  std::map<std::string, std::set<std::string>> folders = {};  // "core/network": the folders of its room that it may include
  std::set<Arrow> wrong_arrows = {};                          // against that table, known and to be mended
  // "core/network", "replay": the headers that other folders may include, without ".h"; "all".
  std::map<std::string, std::set<std::string>> read_by_others = {};
  std::map<std::string, Library> libraries = {};
};

// The tables of docs/architecture.md: "| folder | holds | may include | outside libraries |", the same with "read by others" and rows
// `room/folder/`, "| wrong arrow | why it stands |" with `room/folder -> room/folder`, and "| library | headers | ... |".
Rules parse_rules(const std::string& markdown);

using Complaints = std::vector<std::string>;

// `path` from the root of the repository ("core/plan/plan.h"); its first part is the room.
Complaints check_includes(const Rules& rules, const std::string& path, const std::string& text);
// The arrows between folders of one room that the file's includes make. Files that stand in a room itself make none.
std::set<Arrow> arrows_of(const std::string& path, const std::string& text);
// Of all arrows together: those that neither the table nor the list of wrong ones has, and listed ones that nothing needs.
Complaints check_arrows(const Rules& rules, const std::set<Arrow>& arrows);
// A header of another folder that a file includes: ("core/network", "network").
using Reading = std::pair<std::string, std::string>;
std::set<Reading> readings_of(const std::string& path, const std::string& text);
// Of all readings together: those that the table does not allow, and headers it lists which nobody else reads.
Complaints check_readings(const Rules& rules, const std::set<Reading>& readings);
// Calls of foreshard_room(name ...) and target_link_libraries(foreshard...).
Complaints check_links(const Rules& rules, const std::string& cmake);
Complaints check_names(const std::string& path, const std::string& text);
// Files have at most 400 lines, with a reason 450; functions 80.
Complaints check_sizes(const std::string& path, const std::string& text, const std::string& reason = {});
// Of all files together, by path: classes with too many data members, or lines of their body and of the functions that are defined
// outside of it as Name::f.
Complaints check_classes(const std::map<std::string, std::string>& texts);

// Comments and literals replaced by blanks; line breaks stay.
std::string without_comments_and_literals(const std::string& text);

}  // namespace foreshard::layout
