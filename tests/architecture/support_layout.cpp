#include <algorithm>
#include <regex>
#include <sstream>

#include "tests/architecture/layout.h"

namespace foreshard::layout {

static std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

static std::vector<std::string> cells_of(const std::string& row) {
  std::vector<std::string> cells;
  std::istringstream in(row.substr(1));
  for (std::string cell; std::getline(in, cell, '|');) cells.push_back(cell);
  return cells;
}

// The parts of a cell that match, e.g. all `quoted` words or all words.
static std::vector<std::string> matches(const std::string& cell, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator it(cell.begin(), cell.end(), regex), end; it != end; ++it) found.push_back((*it)[1]);
  return found;
}

Rules parse_rules(const std::string& markdown) {
  Rules rules;
  std::string table;
  bool has_readers = false;
  for (const std::string& line : lines_of(markdown)) {
    if (line.empty() || line[0] != '|') {
      table.clear();
      continue;
    }
    const std::vector<std::string> cells = cells_of(line);
    const std::string first = matches(cells[0], R"((\w+))").empty() ? "" : matches(cells[0], R"((\w+))")[0];
    if (table.empty()) {
      table = first;
      has_readers = cells.size() >= 4 && cells[3].find("read by others") != std::string::npos;
    } else if (table == "folder" && cells.size() >= 3) {
      if (has_readers && cells.size() >= 4)
        for (const std::string& name : matches(cells[0], "`(\\w+(?:/\\w+)?)/`"))
          for (const std::string& header : matches(cells[3], R"(([\w/]+))")) rules.read_by_others[name].insert(header);
      for (const std::string& name : matches(cells[0], "`(\\w+/\\w+)/`")) {
        std::set<std::string>& arrows = rules.folders[name];
        for (const std::string& other : matches(cells[2], R"((\w+))")) arrows.insert(other);
      }
      for (const std::string& name : matches(cells[0], "`(\\w+)/`")) {
        if (has_readers) continue;
        for (const std::string& other : matches(cells[2], R"((\w+))")) rules.rooms[name].may_include.insert(other);
        if (cells.size() < 4) continue;
        for (const std::string& library : matches(cells[3], R"(([\w.-]+))")) rules.rooms[name].libraries.insert(library);
      }
    } else if (table == "wrong" && cells.size() >= 2) {
      const std::vector<std::string> from = matches(cells[0], R"((\w+/\w+) ->)"), to = matches(cells[0], R"(-> (\w+/\w+))");
      if (from.size() == 1 && to.size() == 1) rules.wrong_arrows.insert({from[0], to[0]});
    } else if (table == "library" && cells.size() >= 3) {
      for (const std::string& name : matches(cells[0], R"(([A-Za-z][\w.-]*))")) {
        rules.libraries[name].header_prefixes = matches(cells[1], "`([^`]+)`");
        rules.libraries[name].in_headers = cells[1].find("(in headers)") != std::string::npos;
        for (const std::string& target : matches(cells[2], "`([^`]+)`")) rules.libraries[name].targets.insert(target);
      }
    }
  }
  return rules;
}

static bool is_system_header(const std::string& name) {
  // The C++ library has no dots and no folders; of POSIX we use these.
  static const std::set<std::string> posix = {"unistd.h",      "fcntl.h",    "sched.h",     "signal.h",       "sys/wait.h",
                                              "sys/types.h",   "sys/stat.h", "sys/ioctl.h", "sys/resource.h", "poll.h",
                                              "dlfcn.h",       "netdb.h",    "arpa/inet.h", "sys/socket.h",   "netinet/in.h",
                                              "netinet/tcp.h", "ucontext.h", "sys/uio.h",   "sys/random.h",   "sys/prctl.h",
                                              "sys/mman.h",    "dirent.h"};
  return name.find_first_of("./") == std::string::npos ? !name.starts_with("Q") : posix.contains(name);
}

static std::string library_of(const Rules& rules, const std::string& header) {
  for (const auto& [name, library] : rules.libraries)
    for (const std::string& prefix : library.header_prefixes)
      if (header.starts_with(prefix)) return name;
  return "";
}

static std::string room_of(const std::string& path) { return path.substr(0, path.find('/')); }

Complaints check_includes(const Rules& rules, const std::string& path, const std::string& text) {
  static const std::regex include(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])");
  const std::string room_name = room_of(path);
  const auto found_room = rules.rooms.find(room_name);
  if (found_room == rules.rooms.end()) return {path + ": its folder is not in the table of rooms"};
  const Room& room = found_room->second;
  Complaints complaints;
  for (const std::string& line : lines_of(text)) {
    std::smatch match;
    if (!std::regex_search(line, match, include)) continue;
    const std::string name = match[2];
    if (match[1] == "\"") {
      const std::string other = room_of(name);
      if (!rules.rooms.contains(other))
        complaints.push_back(path + ": \"" + name + "\" is not written from the root of the repository");
      else if (other != room_name && !room.may_include.contains(other))
        complaints.push_back(path + ": includes \"" + name + "\", but " + room_name + " may not include " + other);
    } else if (!is_system_header(name)) {
      const std::string library = library_of(rules, name);
      if (library.empty())
        complaints.push_back(path + ": <" + name + "> belongs to no library of the table");
      else if (!room.libraries.contains(library))
        complaints.push_back(path + ": <" + name + "> is " + library + ", which " + room_name + " may not use");
      else if (!path.ends_with(".cpp") && !rules.libraries.at(library).in_headers)
        complaints.push_back(path + ": <" + name + "> in a header; outside libraries stay in .cpp files");
    }
  }
  return complaints;
}

static std::string folder_of(const std::string& path) {
  const std::size_t room = path.find('/'), folder = path.find('/', room + 1);
  return folder == std::string::npos ? "" : path.substr(0, folder);
}

std::set<Arrow> arrows_of(const std::string& path, const std::string& text) {
  static const std::regex include(R"rx(^\s*#\s*include\s*"([^"]+)")rx");
  std::set<Arrow> arrows;
  const std::string from = folder_of(path);
  for (const std::string& line : lines_of(text)) {
    std::smatch match;
    if (from.empty() || !std::regex_search(line, match, include)) continue;
    const std::string to = folder_of(match[1]);
    if (!to.empty() && to != from && room_of(to) == room_of(from)) arrows.insert({from, to});
  }
  return arrows;
}

Complaints check_arrows(const Rules& rules, const std::set<Arrow>& arrows) {
  Complaints complaints;
  for (const Arrow& arrow : arrows) {
    const auto& [from, to] = arrow;
    const auto allowed = rules.folders.find(from);
    if (allowed == rules.folders.end() || !rules.folders.contains(to))
      complaints.push_back(from + " -> " + to + ": a folder that is not in the table");
    else if (!allowed->second.contains(to.substr(to.find('/') + 1)) && !rules.wrong_arrows.contains(arrow))
      complaints.push_back(from + " may not include " + to);
  }
  for (const Arrow& arrow : rules.wrong_arrows)
    if (!arrows.contains(arrow))
      complaints.push_back(arrow.first + " -> " + arrow.second + ": nothing needs this wrong arrow any more");
  return complaints;
}

// Two parts at most: "core/plan", "replay".
static std::string place_of(const std::string& path) {
  const std::string folder = folder_of(path);
  return folder.empty() ? room_of(path) : folder;
}

std::set<Reading> readings_of(const std::string& path, const std::string& text) {
  static const std::regex include(R"rx(^\s*#\s*include\s*"([^"]+)\.h")rx");
  std::set<Reading> readings;
  for (const std::string& line : lines_of(text)) {
    std::smatch match;
    if (!std::regex_search(line, match, include)) continue;
    const std::string header = match[1], place = place_of(header);
    if (place != place_of(path)) readings.insert({place, header.substr(place.size() + 1)});
  }
  return readings;
}

Complaints check_readings(const Rules& rules, const std::set<Reading>& readings) {
  Complaints complaints;
  for (const auto& [place, header] : readings) {
    const auto listed = rules.read_by_others.find(place);
    if (listed == rules.read_by_others.end() || !(listed->second.contains("all") || listed->second.contains(header)))
      complaints.push_back(place + "/" + header + ".h is read by others, and the row of " + place + " does not list it");
  }
  for (const auto& [place, headers] : rules.read_by_others)
    for (const std::string& header : headers)
      if (header != "all" && !readings.contains({place, header}))
        complaints.push_back(place + "/" + header + ".h: nobody else reads it any more");
  return complaints;
}

static void check_link(const Rules& rules, const std::string& room_name, const std::string& target, Complaints& complaints) {
  const Room& room = rules.rooms.at(room_name);
  if (target.starts_with("foreshard_")) {
    const std::string other = target.substr(std::string("foreshard_").size());
    if (other != room_name && !room.may_include.contains(other))
      complaints.push_back("CMakeLists.txt: " + room_name + " links " + other + ", which the table does not allow");
    return;
  }
  if (target.find("::") == std::string::npos || target.starts_with("Threads::")) return;
  for (const std::string& library : room.libraries) {
    const auto known = rules.libraries.find(library);
    if (known != rules.libraries.end() && known->second.targets.contains(target)) return;
  }
  complaints.push_back("CMakeLists.txt: " + room_name + " links " + target + ", which the table does not allow");
}

Complaints check_links(const Rules& rules, const std::string& cmake) {
  static const std::regex call(
      R"((?:^|\n)\s*(?:foreshard_room\((\w+)|target_link_libraries\((?:foreshard[_-])?(\w+))([^)]*)\))");
  Complaints complaints;
  for (std::sregex_iterator it(cmake.begin(), cmake.end(), call), end; it != end; ++it) {
    std::string name = (*it)[1].matched ? (*it)[1] : (*it)[2];
    if (name == "foreshard_") continue;     // inside the definition of foreshard_room
    if (name == "foreshard") name = "cli";  // the program
    if (!rules.rooms.contains(name)) {
      complaints.push_back("CMakeLists.txt: " + name + " is not in the table of rooms");
      continue;
    }
    for (const std::string& target : matches((*it)[3], R"(([\w:]+))"))
      if (target != "PUBLIC" && target != "PRIVATE" && target != "INTERFACE") check_link(rules, name, target, complaints);
  }
  return complaints;
}

std::string without_comments_and_literals(const std::string& text) {
  static const std::regex raw_string(R"rx(R"([^\s()\\]{0,16})\()rx");
  std::string out = text;
  const auto blank = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < std::min(to, out.size()); ++i)
      if (out[i] != '\n') out[i] = ' ';
  };
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::size_t end = i;
    std::smatch match;
    if (out.compare(i, 2, "//") == 0) {
      end = std::min(out.find('\n', i), out.size());
    } else if (out.compare(i, 2, "/*") == 0) {
      end = std::min(out.find("*/", i + 2), out.size() - 2) + 2;
    } else if (out.compare(i, 2, "R\"") == 0 && std::regex_search(out.cbegin() + static_cast<std::ptrdiff_t>(i), out.cend(),
                                                                  match, raw_string, std::regex_constants::match_continuous)) {
      const std::string closing = ")" + match[1].str() + "\"";
      end = std::min(out.find(closing, i), out.size() - closing.size()) + closing.size();
    } else if (out[i] == '"' || (out[i] == '\'' && (i == 0 || std::isalnum(static_cast<unsigned char>(out[i - 1])) == 0))) {
      for (end = i + 1; end < out.size() && out[end] != out[i] && out[end] != '\n'; ++end)
        if (out[end] == '\\') ++end;
      ++end;
    }
    if (end > i) blank(i, end), i = end - 1;
  }
  return out;
}

Complaints check_names(const std::string& path, const std::string& text) {
  static const std::set<std::string> forbidden = {"Manager",   "Handler", "Helper", "Helpers", "Util",   "Utils",
                                                  "Utilities", "Info",    "Data",   "Context", "System", "Impl"};
  static const std::regex declared(R"(\b(?:struct|class|union|concept|using)\s+(?:\[\[\w+\]\]\s*)?([A-Z]\w*))");
  Complaints complaints;
  const std::string code = without_comments_and_literals(text);
  for (std::sregex_iterator it(code.begin(), code.end(), declared), end; it != end; ++it) {
    const std::string name = (*it)[1];
    std::size_t last_word = name.size();
    while (last_word > 0 && std::isupper(static_cast<unsigned char>(name[last_word - 1])) == 0) --last_word;
    const std::string word = name.substr(last_word == 0 ? 0 : last_word - 1);
    if (forbidden.contains(word)) complaints.push_back(path + ": " + name + " ends in " + word + ", which says nothing");
  }
  std::string stem = path.substr(path.rfind('/') + 1);
  stem = "_" + stem.substr(0, stem.find('.')) + "_";
  for (std::string word : forbidden) {
    word[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(word[0])));
    if (word != "data" && stem.ends_with("_" + word + "_"))
      complaints.push_back(path + ": a file called " + word + " says nothing");
  }
  return complaints;
}

static Complaints check_functions(const std::string& path, const std::string& code) {
  static constexpr int kMostLines = 80;
  static const std::regex type_or_namespace(
      R"(^\s*(?:inline\s+)?(?:namespace\b|(?:template\s*<[^{]*>\s*)?(?:struct|class|union|enum)\b[^()]*$|extern\s*$))");
  struct Brace {
    int line = 0;
    bool container = false;  // a namespace or a type: what is inside may be a function
    bool function = false;
  };
  Complaints complaints;
  std::vector<Brace> open;
  int line = 1;
  std::string statement;
  for (const char c : code) {
    if (c == '\n') ++line;
    if (c == '{') {
      const bool outside = open.empty() || open.back().container;
      const bool container = outside && std::regex_search(statement, type_or_namespace);
      const int begin = line - static_cast<int>(std::count(statement.begin(), statement.end(), '\n'));
      open.push_back({begin, container, outside && !container && statement.find('(') != std::string::npos});
    } else if (c == '}' && !open.empty()) {
      const int lines = line - open.back().line + 1;
      if (open.back().function && lines > kMostLines)
        complaints.push_back(path + ":" + std::to_string(open.back().line) + ": a function of " + std::to_string(lines) +
                             " lines, at most " + std::to_string(kMostLines));
      open.pop_back();
    }
    const bool ends = c == ';' || c == '{' || c == '}' || c == '#';
    if (ends)
      statement.clear();
    else if (!statement.empty() || !std::isspace(static_cast<unsigned char>(c)))
      statement += c;
  }
  return complaints;
}

Complaints check_sizes(const std::string& path, const std::string& text, const std::string& reason) {
  static constexpr std::ptrdiff_t kMostLines = 400, kMostWithAReason = 450;
  Complaints complaints = check_functions(path, without_comments_and_literals(text));
  const std::ptrdiff_t lines = std::count(text.begin(), text.end(), '\n'),
                       most = reason.empty() ? kMostLines : kMostWithAReason;
  if (lines > most)
    complaints.push_back(path + ": " + std::to_string(lines) + " lines, at most " + std::to_string(most) +
                         (reason.empty() ? ", with a reason " + std::to_string(kMostWithAReason) : ""));
  if (!reason.empty() && lines <= kMostLines) complaints.push_back(path + ": needs no reason any more");
  return complaints;
}

}  // namespace foreshard::layout
