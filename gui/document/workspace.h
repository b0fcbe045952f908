// Workspace: everything that a person has open, as one value and as a `.workspace.json` file: what was chosen, what it is
// compared with, files by reference, bookmarks, what is in view, and where windows stand.
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
  TimeRange range = {};  // of equal ends: a moment
  int digit = 0;         // 1..9: the key that goes there; 0: none
  bool operator==(const Bookmark&) const = default;
};

struct Workspace {
  static constexpr int kVersion = 1;
  Choices choices = {};
  std::string result = {};    // a `.result` or `.plan.json` that is shown instead of the choices; empty: none
  std::string measured = {};  // laid over it; empty: none
  std::optional<Choices> compared = {};
  Granularity granularity = Granularity::Layer;
  std::vector<Bookmark> bookmarks = {};
  std::optional<TimeRange> visible = {};
  std::string page = "timeline";           // which of the pages in the middle
  std::string geometry = {}, layout = {};  // base64 of Qt's own state; wrong ones are passed over
  bool operator==(const Workspace&) const = default;
};

// Paths of files are written relative to the folder of the workspace file where they lie below it.
std::string to_json(const Workspace& workspace, const std::string& file_name);
Workspace parse_workspace(const std::string& text, const std::string& file_name);  // throws Error
Workspace load_workspace(const std::string& path);
void save_workspace(const Workspace& workspace, const std::string& path);

// What a file is by what it says of itself, whatever its name.
enum class FileKind : std::uint8_t { Workspace, Result, Plan, Strategy, Model, Cluster, Unknown };
FileKind kind_of_file(const std::string& path);  // reads its beginning; throws Error when it cannot be read
FileKind kind_of_text(const std::string& beginning);

}  // namespace foreshard
