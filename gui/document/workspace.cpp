#include "gui/document/workspace.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/json/json.h"

namespace foreshard {

namespace fs = std::filesystem;

static const char* const kFormat = "foreshard workspace";
static const std::vector<std::string> kLevels = {"op", "layer", "stage"};  // in the order of Granularity

static std::string beside(const std::string& path, const std::string& file_name) {
  if (path.empty()) return path;
  const fs::path folder = fs::absolute(file_name).parent_path(), target = fs::absolute(path);
  const fs::path relative = target.lexically_relative(folder);
  return relative.empty() || *relative.begin() == ".." ? target.string() : relative.string();
}

static std::string resolved(const std::string& path, const std::string& file_name) {
  if (path.empty() || fs::path(path).is_absolute()) return path;
  return (fs::absolute(file_name).parent_path() / path).lexically_normal().string();
}

static void write_range(JsonWriter& json, const TimeRange& range) {
  json.begin_line_array().value(range.begin.value).value(range.end.value).end_array();
}

static TimeRange read_range(const JsonReader& json) {
  const std::vector<std::int64_t> ends = json.as_ints();
  if (ends.size() != 2 || ends[1] < ends[0]) json.fail("two times in nanoseconds, the first not later");
  return {{ends[0]}, {ends[1]}};
}

std::string to_json(const Workspace& workspace, const std::string& file_name) {
  JsonWriter json;
  json.begin_object().field("format", kFormat).field("version", Workspace::kVersion);
  json.key("choices");
  write_choices(json, workspace.choices);
  json.field("result", beside(workspace.result, file_name)).field("measured", beside(workspace.measured, file_name));
  if (workspace.compared) {
    json.key("compared");
    write_choices(json, *workspace.compared);
  }
  json.field("granularity", kLevels[static_cast<std::size_t>(workspace.granularity)]);
  json.key("bookmarks").begin_array();
  for (const Bookmark& bookmark : workspace.bookmarks) {
    json.begin_object().field("note", bookmark.note).key("range");
    write_range(json, bookmark.range);
    json.field("digit", bookmark.digit).end_object();
  }
  json.end_array();
  if (workspace.visible) {
    json.key("visible");
    write_range(json, *workspace.visible);
  }
  json.field("page", workspace.page).field("geometry", workspace.geometry).field("layout", workspace.layout);
  return json.end_object().text();
}

static Bookmark read_bookmark(const JsonReader& json) {
  json.only({"note", "range", "digit"});
  return {.note = json.at("note").as_string(),
          .range = read_range(json.at("range")),
          .digit = static_cast<int>(json.at("digit").as_int(0, 9))};
}

Workspace parse_workspace(const std::string& text, const std::string& file_name) {
  const JsonReader json = JsonReader::parse(text, file_name);
  if (!json.is_object() || !json.has("format") || json.at("format").found().find(kFormat) == std::string::npos)
    throw Error(file_name, "format", json.is_object() && json.has("format") ? json.at("format").found() : "nothing",
                "\"" + std::string(kFormat) + "\"");
  json.only({"format", "version", "choices", "result", "measured", "compared", "granularity", "bookmarks", "visible", "page",
             "geometry", "layout"});
  json.at("version").as_int(1, Workspace::kVersion);
  Workspace workspace{.choices = read_choices(json.at("choices"))};
  workspace.result = resolved(json.at("result").as_string(), file_name);
  workspace.measured = resolved(json.at("measured").as_string(), file_name);
  if (const auto compared = json.find("compared")) workspace.compared = read_choices(*compared);
  const std::string level = json.at("granularity").as_choice(kLevels);
  workspace.granularity = static_cast<Granularity>(std::find(kLevels.begin(), kLevels.end(), level) - kLevels.begin());
  for (const JsonReader& bookmark : json.at("bookmarks").elements()) workspace.bookmarks.push_back(read_bookmark(bookmark));
  if (const auto visible = json.find("visible")) workspace.visible = read_range(*visible);
  workspace.page = json.at("page").as_string();
  workspace.geometry = json.at("geometry").as_string(), workspace.layout = json.at("layout").as_string();
  return workspace;
}

Workspace load_workspace(const std::string& path) { return parse_workspace(read_file(path), path); }

void save_workspace(const Workspace& workspace, const std::string& path) { write_file(path, to_json(workspace, path)); }

FileKind kind_of_text(const std::string& beginning) {
  const auto has = [&](const char* word) { return beginning.find(word) != std::string::npos; };
  if (has("\"foreshard workspace\"")) return FileKind::Workspace;
  if (has("\"foreshard result\"")) return FileKind::Result;
  if (has("\"foreshard plan\"")) return FileKind::Plan;
  if (has("\"virtual_stages\"") || has("\"micro_batch\"") || has("\"global_batch\"")) return FileKind::Strategy;
  if (has("\"gpus_per_node\"") || has("\"fabric\"")) return FileKind::Cluster;
  if (has("\"model_type\"") || has("\"architectures\"") || has("\"hidden_size\"") || has("\"n_embd\"") || has("\"n_layer\""))
    return FileKind::Model;
  return FileKind::Unknown;
}

FileKind kind_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(path, "", "nothing that can be read", "a file");
  std::string beginning(8192, '\0');
  in.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  beginning.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, in.gcount())));
  return kind_of_text(beginning);
}

}  // namespace foreshard
