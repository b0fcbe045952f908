// Workspace: everything that the user has open, as one value and as a `.workspace.json` file: the choices, the choices they are compared
// with, paths of open files, bookmarks, the visible range, and the layout of the window.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "gui/document/choices.h"
#include "gui/document/time_axis.h"

namespace foreshard {

struct Bookmark {
  std::string note = {};
  TimeRange range = {};  // equal ends: a moment
  int digit = 0;         // 1..9: the key that goes there; 0: none
  bool operator==(const Bookmark&) const = default;
};

struct Workspace {
  static constexpr int kVersion = 1;
  Choices choices = {};
  std::string result = {};               // a `.result` or `.plan.json` that is shown instead of the choices; empty: none
  std::string measured = {};             // a measured result that is shown with it; empty: none
  std::optional<Choices> compared = {};  // the choices of the comparison; none: no comparison
  Granularity granularity = Granularity::Layer;
  std::vector<Bookmark> bookmarks = {};
  std::optional<TimeRange> visible = {};
  std::string page = "timeline";           // name of the view in front, see PlanViews::bring
  std::string geometry = {}, layout = {};  // base64 of Qt's window state; invalid ones are ignored
  bool operator==(const Workspace&) const = default;
};

// Paths of files below the folder of the workspace file are written relative to that folder.
std::string to_json(const Workspace& workspace, const std::string& file_name);
Workspace parse_workspace(const std::string& text, const std::string& file_name);  // throws Error
Workspace load_workspace(const std::string& path);
void save_workspace(const Workspace& workspace, const std::string& path);

// The kind of a file by its content, whatever its name.
enum class FileKind : std::uint8_t { Workspace, Result, Plan, Strategy, Model, Cluster, Unknown };
FileKind kind_of_file(const std::string& path);  // reads its beginning; throws Error when it cannot be read
FileKind kind_of_text(const std::string& beginning);

}  // namespace foreshard
