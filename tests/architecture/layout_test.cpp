#include "tests/architecture/layout.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace foreshard::layout {

namespace fs = std::filesystem;
static const fs::path kSource = FORESHARD_SOURCE;

static std::string slurp(const fs::path& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

static std::vector<std::string> sources_of(const std::vector<std::string>& folders) {
  std::vector<std::string> paths;
  for (const std::string& folder : folders) {
    if (!fs::is_directory(kSource / folder)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kSource / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension == ".h" || extension == ".cpp" || extension == ".cu")
        paths.push_back(fs::relative(entry.path(), kSource).string());
    }
  }
  return paths;
}

static const std::vector<std::string> kRooms = {"core",   "replay",     "strategy", "sim", "exec",
                                                "report", "validation", "cli",      "gui"};
static std::vector<std::string> with_tests() {
  std::vector<std::string> folders = kRooms;
  folders.insert(folders.end(), {"tests", "bench"});
  return folders;
}

static Rules real_rules() { return parse_rules(slurp(kSource / "docs/architecture.md")); }

static void expect_none(const Complaints& complaints) {
  for (const std::string& complaint : complaints) ADD_FAILURE() << complaint;
}

// Files of more than 400 lines, and why they are not divided.
static const std::map<std::string, std::string> kLongFiles = {
    {"tests/strategy/frameworks/framework_allocation_test.cpp", "values by hand and values measured belong together"},
    {"core/check/check_plan_meetings.cpp", "one class: who meets, and the dry run that finds deadlocks"},
    {"core/check/check_plan_values.cpp", "one class: follows values and their gradients through a role"},
    {"core/strategy/strategy_options.cpp", "one table: a row per option"},
    {"sim/simgrid_clock.cpp", "one class: the only file that includes SimGrid"},
    {"strategy/cost/plan_costs.cpp", "one class: all its functions read the plan, the network and the tables"},
    {"strategy/lower/role_program.cpp", "one class: builds the program of a role"},
    {"strategy/resolve/tables.cpp", "one function: the rows of the tables that a strategy resolves to"},
    {"strategy/search/search.cpp", "one class: a search from its spaces to its winner"},
    {"tests/cli/key_effect_test.cpp", "one table: a case per key"},
    {"tests/cli/support_effect_cases.cpp", "one table: a case per option"},
    {"tests/cli/verbs/framework_export_test.cpp", "tests of one door"},
    {"tests/core/graph/op_graph_experts_test.cpp", "tests of one header"},
    {"tests/core/strategy/strategy_test.cpp", "tests of one header"},
    {"tests/cuda/nccl_twin.cpp", "one library that stands in for NCCL"},
    {"tests/cuda/support_fake_runtime.cpp", "one runtime that stands in for CUDA's"},
    {"tests/cuda/training_test.cpp", "trainings that share their plans"},
    {"tests/exec/host/host_experts_test.cpp", "tests of one header"},
    {"tests/gui/window/interaction_test.cpp", "tests of one window"},
    {"tests/gui/window/window_test.cpp", "tests of one window"},
    {"tests/sim/clock_test.cpp", "laws of both clocks"},
    {"tests/strategy/resolve/experts_test.cpp", "tests of one header"},
    {"tests/strategy/search/search_test.cpp", "tests of one header"},
};

// ---- the repository ----

TEST(Layout, TheTableNamesEveryRoomAndItsLibraries) {
  const Rules rules = real_rules();
  for (const std::string& room : kRooms) EXPECT_TRUE(rules.rooms.contains(room)) << room;
  EXPECT_TRUE(rules.rooms.at("core").may_include.empty());
  EXPECT_EQ(rules.rooms.at("sim").may_include, (std::set<std::string>{"core", "replay"}));
  EXPECT_EQ(rules.rooms.at("sim").libraries, std::set<std::string>{"SimGrid"});
  for (const std::string& room : kRooms)
    for (const std::string& library : rules.rooms.at(room).libraries)
      EXPECT_TRUE(rules.libraries.contains(library)) << room << " uses " << library << ", which has no row";
}

TEST(Layout, EveryIncludeFollowsAnArrow) {
  const Rules rules = real_rules();
  const std::vector<std::string> paths = sources_of(kRooms);
  EXPECT_GT(paths.size(), 20u);
  for (const std::string& path : paths) expect_none(check_includes(rules, path, slurp(kSource / path)));
}

TEST(Layout, EveryLinkFollowsAnArrow) { expect_none(check_links(real_rules(), slurp(kSource / "CMakeLists.txt"))); }

TEST(Layout, NoNameThatSaysNothing) {
  for (const std::string& path : sources_of(with_tests())) expect_none(check_names(path, slurp(kSource / path)));
}

TEST(Layout, FilesAndFunctionsAreShort) {
  std::map<std::string, std::string> reasons = kLongFiles;
  for (const std::string& path : sources_of(with_tests())) {
    expect_none(check_sizes(path, slurp(kSource / path), reasons[path]));
    reasons.erase(path);
  }
  for (const auto& [path, reason] : reasons) ADD_FAILURE() << path << " does not exist";
}

TEST(Layout, ClassesAreSmall) {
  std::map<std::string, std::string> texts;
  for (const std::string& path : sources_of(kRooms)) texts[path] = slurp(kSource / path);
  expect_none(check_classes(texts));
}

// A unit is a header with its .cpp, or either of them.
TEST(Layout, FoldersAreSmall) {
  constexpr std::size_t kMostUnits = 25;
  std::map<std::string, std::set<std::string>> units;
  for (const std::string& path : sources_of(kRooms))
    units[fs::path(path).parent_path().string()].insert(fs::path(path).stem().string());
  for (const auto& [folder, names] : units) EXPECT_LE(names.size(), kMostUnits) << folder;
}

TEST(Layout, NoPlaceOfOneMachineInTheRepository) {
  // A path below /home, /root or /work in a script or a text would be true on one machine only.
  for (const char* name : {"README.md", "CONTRIBUTING.md", "quickstart.sh", "test.sh", "scripts/setup.sh", "CMakeLists.txt"}) {
    const std::string text = slurp(kSource / name);
    for (const char* place : {"/home/", "/root/", "/work/"}) EXPECT_EQ(text.find(place), std::string::npos) << name;
  }
}

TEST(Layout, FoldersKeepTheirArrows) {
  const Rules rules = real_rules();
  std::set<Arrow> arrows;
  std::set<std::string> folders;
  for (const std::string& path : sources_of(kRooms)) {
    arrows.merge(arrows_of(path, slurp(kSource / path)));
    const std::size_t room = path.find('/'), folder = path.find('/', room + 1);
    if (folder != std::string::npos) folders.insert(path.substr(0, folder));
  }
  expect_none(check_arrows(rules, arrows));
  for (const std::string& folder : folders) EXPECT_TRUE(rules.folders.contains(folder)) << folder << " is not in the table";
  for (const auto& [folder, others] : rules.folders) EXPECT_TRUE(folders.contains(folder)) << folder << " does not exist";
}

TEST(Layout, OthersReadOnlyTheHeadersThatAFolderShows) {
  std::set<Reading> readings;
  for (const std::string& path : sources_of(kRooms)) readings.merge(readings_of(path, slurp(kSource / path)));
  expect_none(check_readings(real_rules(), readings));
}

// Two definitions of one name in one namespace are one to the linker: constructors and destructors of either are taken for both.
static Complaints twice_defined(const std::map<std::string, std::string>& headers) {
  std::map<std::pair<std::string, std::string>, std::string> known;
  Complaints complaints;
  const std::regex opened("^namespace ([a-z_:]*) \\{"), defined("^(struct|class|enum class) (\\w+)[^;:(]*(: [^;]*)?\\{");
  for (const auto& [path, text] : headers) {
    std::string space, line;
    std::smatch match;
    for (std::istringstream lines(text); std::getline(lines, line);) {
      if (std::regex_search(line, match, opened)) space = match[1];
      if (!std::regex_search(line, match, defined)) continue;
      const auto [first, is_new] = known.emplace(std::pair(space, match[2].str()), path);
      if (!is_new && first->second != path)
        complaints.push_back(path + ": " + match[2].str() + " is defined in " + first->second);
    }
  }
  return complaints;
}

TEST(Layout, ATypeIsDefinedOnce) {
  std::map<std::string, std::string> headers;
  for (const std::string& path : sources_of(kRooms))
    if (path.ends_with(".h") && !path.starts_with("exec/cuda/kernels")) headers[path] = slurp(kSource / path);
  expect_none(twice_defined(headers));
}

// ---- each rule can fail ----

TEST(LayoutRules, TypesDefinedTwice) {
  const std::string one = "namespace foreshard {\nstruct Family {\n};\n}\n";
  EXPECT_TRUE(twice_defined({{"a.h", one}, {"b.h", "namespace foreshard::gpu {\nstruct Family {\n};\n"}}).empty());
  EXPECT_TRUE(twice_defined({{"a.h", one}, {"b.h", "namespace foreshard {\nstruct Family;\nclass Families {\n"}}).empty());
  EXPECT_EQ(twice_defined({{"a.h", one}, {"b.h", "namespace foreshard {\nenum class Family : std::uint8_t { A };\n"}}),
            Complaints{"b.h: Family is defined in a.h"});
}

static Rules small_rules() {
  return parse_rules(
      "| folder | holds | may include | outside libraries |\n|---|---|---|---|\n"
      "| `core/` | nouns | – | Json |\n| `sim/` | clock | core | Engine |\n| `cli/` | program | core sim | |\n\n"
      "| library | headers | CMake targets |\n|---|---|---|\n"
      "| Json | `json/` | `json::json` |\n| Engine | `engine/` `xbt/` | `Engine::engine` |\n");
}

TEST(LayoutRules, ReadsBothTables) {
  const Rules rules = small_rules();
  EXPECT_EQ(rules.rooms.size(), 3u);
  EXPECT_EQ(rules.rooms.at("cli").may_include, (std::set<std::string>{"core", "sim"}));
  EXPECT_EQ(rules.libraries.at("Engine").header_prefixes, (std::vector<std::string>{"engine/", "xbt/"}));
}

TEST(LayoutRules, IncludeAgainstTheArrow) {
  const Rules rules = small_rules();
  EXPECT_TRUE(
      check_includes(rules, "sim/a.cpp", "#include \"core/plan/plan.h\"\n#include <vector>\n#include <xbt/log.h>\n").empty());
  EXPECT_EQ(check_includes(rules, "core/a.cpp", "#include \"sim/simulate.h\"\n"),
            Complaints{"core/a.cpp: includes \"sim/simulate.h\", but core may not include sim"});
  EXPECT_EQ(check_includes(rules, "sim/a.cpp", "# include \"plan.h\"\n"),
            Complaints{"sim/a.cpp: \"plan.h\" is not written from the root of the repository"});
  EXPECT_EQ(check_includes(rules, "gui/a.cpp", ""), Complaints{"gui/a.cpp: its folder is not in the table of rooms"});
}

TEST(LayoutRules, ArrowsBetweenFolders) {
  const Rules rules = parse_rules(
      "| folder | holds | may include | outside libraries |\n|---|---|---|---|\n| `core/` | nouns | – | |\n\n"
      "| folder | holds | may include |\n|---|---|---|\n| `core/base/` | a | – |\n| `core/plan/` | b | base |\n| `core/net/` | "
      "c | |\n\n"
      "| wrong arrow | why it stands |\n|---|---|\n| `core/base -> core/net` | old |\n");
  EXPECT_EQ(arrows_of("core/plan/a.cpp", "#include \"core/base/b.h\"\n#include \"core/plan/c.h\"\n#include \"sim/x/d.h\"\n"),
            (std::set<Arrow>{{"core/plan", "core/base"}}));
  EXPECT_TRUE(arrows_of("core/a.cpp", "#include \"core/base/b.h\"\n").empty());
  const Arrow right{"core/plan", "core/base"}, known{"core/base", "core/net"}, wrong{"core/base", "core/plan"};
  EXPECT_TRUE(check_arrows(rules, {right, known}).empty());
  EXPECT_EQ(check_arrows(rules, {known, wrong}), Complaints{"core/base may not include core/plan"});
  EXPECT_EQ(check_arrows(rules, {right}), Complaints{"core/base -> core/net: nothing needs this wrong arrow any more"});
  EXPECT_EQ(check_arrows(rules, {known, {"core/base", "core/new"}}),
            Complaints{"core/base -> core/new: a folder that is not in the table"});
}

TEST(LayoutRules, HeadersThatOthersRead) {
  const Rules rules = parse_rules(
      "| folder | holds | may include | read by others |\n|---|---|---|---|\n| `core/base/` | a | – | all |\n"
      "| `core/plan/` | b | base | plan deep/er |\n| `sim/` | c | | simulate |\n");
  EXPECT_TRUE(rules.rooms.empty());
  EXPECT_EQ(readings_of("core/plan/a.cpp",
                        "#include \"core/base/b.h\"\n#include \"core/plan/c.h\"\n#include \"sim/d.h\"\n#include <e.h>\n"),
            (std::set<Reading>{{"core/base", "b"}, {"sim", "d"}}));
  EXPECT_EQ(readings_of("cli/main.cpp", "#include \"core/plan/deep/er.h\"\n"), (std::set<Reading>{{"core/plan", "deep/er"}}));
  const std::set<Reading> right{{"core/base", "b"}, {"core/plan", "plan"}, {"core/plan", "deep/er"}, {"sim", "simulate"}};
  EXPECT_TRUE(check_readings(rules, right).empty());
  std::set<Reading> more = right;
  more.insert({{"core/plan", "secret"}, {"gui/run", "run"}});
  EXPECT_EQ(check_readings(rules, more),
            (Complaints{"core/plan/secret.h is read by others, and the row of core/plan does not list it",
                        "gui/run/run.h is read by others, and the row of gui/run does not list it"}));
  std::set<Reading> fewer = right;
  fewer.erase({"sim", "simulate"});
  EXPECT_EQ(check_readings(rules, fewer), Complaints{"sim/simulate.h: nobody else reads it any more"});
}

TEST(LayoutRules, LibraryBehindTheWrongDoor) {
  const Rules rules = small_rules();
  EXPECT_EQ(check_includes(rules, "core/a.cpp", "#include <engine/s4u.hpp>\n"),
            Complaints{"core/a.cpp: <engine/s4u.hpp> is Engine, which core may not use"});
  EXPECT_EQ(check_includes(rules, "sim/a.h", "#include <engine/s4u.hpp>\n"),
            Complaints{"sim/a.h: <engine/s4u.hpp> in a header; outside libraries stay in .cpp files"});
  EXPECT_EQ(check_includes(rules, "sim/a.cpp", "#include <curl/curl.h>\n"),
            Complaints{"sim/a.cpp: <curl/curl.h> belongs to no library of the table"});
}

TEST(LayoutRules, ALibraryThatHeadersMayName) {
  const Rules rules = parse_rules(
      "| folder | holds | may include | outside libraries |\n|---|---|---|---|\n| `gui/` | window | | Frame |\n\n"
      "| library | headers | CMake targets |\n|---|---|---|\n| Frame | `F` (in headers) | `F::F` |\n");
  EXPECT_EQ(rules.libraries.at("Frame").header_prefixes, std::vector<std::string>{"F"});
  EXPECT_TRUE(check_includes(rules, "gui/a.h", "#include <Frame.h>\n").empty());
}

TEST(LayoutRules, LinkAgainstTheArrow) {
  const Rules rules = small_rules();
  EXPECT_TRUE(
      check_links(rules, "foreshard_room(core PRIVATE json::json)\nforeshard_room(sim PUBLIC foreshard_core)\n").empty());
  EXPECT_TRUE(check_links(rules, "target_link_libraries(foreshard PRIVATE foreshard_cli)\n").empty());
  EXPECT_EQ(check_links(rules, "target_link_libraries(foreshard-sim PRIVATE json::json)\n"),
            Complaints{"CMakeLists.txt: sim links json::json, which the table does not allow"});
  EXPECT_EQ(check_links(rules, "foreshard_room(core PUBLIC foreshard_sim)\n"),
            Complaints{"CMakeLists.txt: core links sim, which the table does not allow"});
  EXPECT_EQ(check_links(rules, "target_link_libraries(foreshard_core PRIVATE Engine::engine)\n"),
            Complaints{"CMakeLists.txt: core links Engine::engine, which the table does not allow"});
}

TEST(LayoutRules, NamesThatSayNothing) {
  EXPECT_EQ(check_names("core/a.h", "struct PlanManager {};"),
            Complaints{"core/a.h: PlanManager ends in Manager, which says nothing"});
  EXPECT_EQ(check_names("core/a.h", "enum class Util { A };"), Complaints{"core/a.h: Util ends in Util, which says nothing"});
  EXPECT_EQ(check_names("core/string_utils.h", ""), Complaints{"core/string_utils.h: a file called utils says nothing"});
  EXPECT_TRUE(check_names("core/a.h", "enum class ContextKind {}; // struct DataManager\nstruct Database {};").empty());
}

TEST(LayoutRules, FilesThatAreTooLong) {
  const auto lines = [](std::size_t count) { return std::string(count, '\n'); };
  EXPECT_TRUE(check_sizes("core/a.cpp", lines(400)).empty());
  EXPECT_EQ(check_sizes("core/a.cpp", lines(401)), Complaints{"core/a.cpp: 401 lines, at most 400, with a reason 450"});
  EXPECT_TRUE(check_sizes("core/a.cpp", lines(450), "one table").empty());
  EXPECT_EQ(check_sizes("core/a.cpp", lines(451), "one table"), Complaints{"core/a.cpp: 451 lines, at most 450"});
  EXPECT_EQ(check_sizes("core/a.cpp", lines(400), "one table"), Complaints{"core/a.cpp: needs no reason any more"});
}

TEST(LayoutRules, FunctionsThatAreTooLong) {
  const auto function = [](int inner) {
    return "int f(int a)\n{" + std::string(static_cast<std::size_t>(inner), '\n') + "}\n";
  };
  // The signature's line, then the line of "{" to that of "}": inner + 2 lines.
  EXPECT_TRUE(check_sizes("a.cpp", "namespace n {\n" + function(78) + function(78) + "}\n").empty());
  EXPECT_EQ(check_sizes("a.cpp", "namespace n {\n" + function(79) + "}\n"),
            Complaints{"a.cpp:2: a function of 81 lines, at most 80"});
  EXPECT_EQ(check_sizes("a.h", "struct S {\n" + function(79) + "};\n"),
            Complaints{"a.h:2: a function of 81 lines, at most 80"});
  // Types and namespaces may be long; braces in literals and comments do not count.
  EXPECT_TRUE(check_sizes("a.h", "struct S {\n" + std::string(90, '\n') + "};\n").empty());
  EXPECT_TRUE(
      check_sizes("a.cpp", "int f() { g('{', \"{\" /* { */); } // {\n" + std::string(90, '\n') + "int h() {}\n").empty());
}

TEST(LayoutRules, ClassesWithTooManyMembers) {
  const auto with = [](int more) {
    std::string members;
    for (int i = 0; i < more; ++i) members += "int m" + std::to_string(i) + "_ = 0;\n";
    // 7 data members: a, b, c, d, e, f, g. The others are functions, types and constants.
    return "namespace n {\nclass Big : public Base {\n public:\n Big() : a{1}, b{2} { f(); }\n void f(int x = 3);\n"
           "static constexpr int k = 4;\n enum class Kind { A, B };\n struct Part;\n bool operator==(const Big&) const = "
           "default;\n"
           "private:\n int a = g(1, 2), b{5};\n std::map<int, std::pair<int, int>> c = {{1, {2, 3}}};\n"
           "std::function<void(int, int)> d;\n void (*e)(int, int) = nullptr;\n const std::vector<int>& f;\n Kind g = {};\n" +
           members + "};\n}\n";
  };
  EXPECT_TRUE(check_classes({{"core/a/a.h", with(18)}}).empty());
  EXPECT_EQ(check_classes({{"core/a/a.h", with(19)}}), Complaints{"core/a/a.h: Big has 26 data members, at most 25"});
  // Members of a nested type are the nested type's.
  EXPECT_EQ(check_classes({{"core/a/a.h", "struct Outer {\n" + with(19) + "int one;\n};\n"}}),
            Complaints{"core/a/a.h: Outer::Big has 26 data members, at most 25"});
}

TEST(LayoutRules, ClassesWithTooManyLines) {
  const auto function = [](const std::string& name, int lines) {
    return "int " + name + "(int a) {" + std::string(static_cast<std::size_t>(lines - 1), '\n') + "}\n";
  };
  // The body has 3 lines: 3 + 297 + 300 = 600.
  const std::string header = "class Long {\nint a;\n};\n";
  const auto texts = [&](int last) {
    return std::map<std::string, std::string>{{"sim/a/long.h", header},
                                              {"sim/a/long.cpp", function("Long::f", 297)},
                                              {"sim/a/more.cpp", "namespace n {\n" + function("Long::g", last) + "}\n"},
                                              {"sim/b/long.cpp", function("Long::f", 500)}};  // another Long
  };
  EXPECT_TRUE(check_classes(texts(300)).empty());
  EXPECT_EQ(check_classes(texts(301)), Complaints{"sim/a/long.h: Long has 601 lines, at most 600"});
}

TEST(LayoutRules, CommentsAndLiteralsAreBlanked) {
  // "b\"c" is 6 characters, "// e" 4, "/* f" 4, " */" 3, 'x' 3; the raw literal is 10.
  EXPECT_EQ(without_comments_and_literals("a \"b\\\"c\" d // e\n/* f\n */ 1'000 'x'"),
            "a " + std::string(6, ' ') + " d " + std::string(4, ' ') + "\n    \n    1'000    ");
  EXPECT_EQ(without_comments_and_literals("x = R\"(a \" {)\";"), "x = " + std::string(10, ' ') + ";");
}

}  // namespace foreshard::layout
