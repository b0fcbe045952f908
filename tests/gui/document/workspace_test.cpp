#include "gui/document/workspace.h"

#include <gtest/gtest.h>

#include <QTemporaryDir>

#include "core/base/error.h"
#include "core/cluster_file/cluster_file.h"
#include "gui/document/bookmark_list.h"

namespace foreshard::workspace_test {

static Workspace full() {
  Workspace workspace{.choices = worked_example(), .result = "/data/a.result", .measured = "/data/b.result"};
  workspace.compared = worked_example();
  workspace.compared->strategy["virtual_stages"] = "2";
  workspace.granularity = Granularity::Op;
  workspace.bookmarks = {{.note = "the long \"wait\"", .range = {{5}, {9}}, .digit = 3}, {.note = "等待", .range = {{7}, {7}}}};
  workspace.visible = TimeRange{{1}, {20'000'000'000}};
  workspace.page = "compare";
  workspace.geometry = "AdnQ", workspace.layout = "AAAA/w==";
  return workspace;
}

TEST(Workspace, GoesThereAndBack) {
  EXPECT_EQ(parse_workspace(to_json(full(), "/data/w.json"), "/data/w.json"), full());
  EXPECT_EQ(parse_workspace(to_json(Workspace{}, "w.json"), "w.json"), Workspace{});
}

TEST(Workspace, FilesBelowItsFolderMoveWithIt) {
  const std::string text = to_json(full(), "/data/w.json");
  EXPECT_NE(text.find("\"a.result\""), std::string::npos);
  EXPECT_EQ(parse_workspace(text, "/elsewhere/w.json").result, "/elsewhere/a.result");
  Workspace far = full();
  far.result = "/other/a.result";
  EXPECT_EQ(parse_workspace(to_json(far, "/data/w.json"), "/elsewhere/w.json").result, "/other/a.result");
}

// Every way in which a file can be wrong is an Error that names the file.
TEST(Workspace, WrongFilesSayWhatIsWrong) {
  const std::string good = to_json(full(), "/data/w.json");
  const auto complaint = [](const std::string& text) -> std::string {
    try {
      parse_workspace(text, "w.json");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  for (const std::string& text :
       {std::string(), std::string("nonsense"), std::string("[]"), std::string("{}"), std::string("3"),
        good.substr(0, good.size() / 2), with("foreshard workspace", "foreshard plan"),
        with("\"version\": 1", "\"version\": 99"), with("\"version\": 1", "\"version\": \"one\""), with("\"op\"", "\"atom\""),
        with("\"page\"", "\"pages\""), with("\"digit\": 3", "\"digit\": 30"), with("[5, 9]", "[9, 5]"),
        with("[5, 9]", "[5]")}) {
    const std::string said = complaint(text);
    EXPECT_TRUE(said.starts_with("w.json")) << text.substr(0, 60) << " -> " << said;
  }
  EXPECT_EQ(complaint(good), "");
}

TEST(Workspace, IsSavedBesideAndRenamed) {
  const QTemporaryDir folder;
  const std::string path = folder.filePath("w.workspace.json").toStdString();
  save_workspace(full(), path);
  EXPECT_EQ(load_workspace(path), full());
  EXPECT_EQ(kind_of_file(path), FileKind::Workspace);
  EXPECT_THROW(save_workspace(full(), "/nowhere/at/all.json"), Error);
  EXPECT_THROW(load_workspace("/nowhere/at/all.json"), Error);
}

TEST(Workspace, KindsOfFilesByWhatTheySay) {
  EXPECT_EQ(kind_of_text("{\n \"format\": \"foreshard result\","), FileKind::Result);
  EXPECT_EQ(kind_of_text("{\"format\": \"foreshard plan\""), FileKind::Plan);
  EXPECT_EQ(kind_of_text(to_json(Strategy{})), FileKind::Strategy);
  EXPECT_EQ(kind_of_file(model_file("gpt3-175b")), FileKind::Model);
  EXPECT_EQ(kind_of_file(cluster_file("dgx-a100").path), FileKind::Cluster);
  EXPECT_EQ(kind_of_text("\x7f"
                         "ELF"),
            FileKind::Unknown);
  EXPECT_EQ(kind_of_text(""), FileKind::Unknown);
  EXPECT_THROW(kind_of_file("/nowhere"), Error);
}

TEST(Bookmarks, ADigitBelongsToOne) {
  BookmarkList list;
  list.add({.note = "a", .range = {{1}, {2}}, .digit = 1});
  list.add({.note = "b", .range = {{3}, {4}}, .digit = 1});
  ASSERT_NE(list.at_digit(1), nullptr);
  EXPECT_EQ(list.at_digit(1)->note, "b");
  EXPECT_EQ(list.bookmarks()[0].digit, 0);
  EXPECT_EQ(list.at_digit(2), nullptr);
  list.item(0, 2)->setText("renamed");
  EXPECT_EQ(list.bookmarks()[0].note, "renamed");
}

}  // namespace foreshard::workspace_test
