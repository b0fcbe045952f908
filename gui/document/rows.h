// Rows: how the ranks of a result become rows of the timeline. Ranks are put in groups. A closed group is one row; it shows the mean
// of its members and, where they differ, the worst of them below. An open group has one more row per rank. Pinned rows come first.
#pragma once

#include <QString>
#include <cstdint>
#include <set>
#include <vector>

#include "gui/document/document.h"

namespace foreshard {

enum class Grouping : std::uint8_t { Stage, TensorParallel, DataParallel, Node };
inline constexpr int kGroupings = 4;

struct RowMember {  // a class, and how many ranks of the row belong to it
  ClassId who = {};
  int ranks = 0;
  bool operator==(const RowMember&) const = default;
};

struct RankGroup {
  QString title = {};  // "stage 3", "node 17"
  std::vector<RankId> ranks = {};
  std::vector<ClassId> classes = {};    // [rank]
  std::vector<RowMember> members = {};  // its distinct classes; classes with equal spans count as one
  ClassId worst = {};                   // the member that idles most
  bool operator==(const RankGroup&) const = default;
};

// Every rank that ran is in exactly one group. Groups are ordered by their first ranks.
std::vector<RankGroup> group_ranks(const Document& document, Grouping grouping);

struct RowKey {
  std::int32_t group = 0;
  RankId rank = {};  // invalid: the group itself
  auto operator<=>(const RowKey&) const = default;
};

struct Row {
  RowKey key = {};
  std::vector<RowMember> members = {};
  ClassId worst = {};  // drawn below the mean where the members of a group differ; else invalid
  bool open = false;   // a group whose ranks have rows below it
  bool openable = false;
  bool pinned = false;
  QString title = {}, note = {};  // "stage 3", "64 GPUs"
  int top = 0, height = 0;        // pixels from the top of all rows
  ClassId shown() const { return members.empty() ? ClassId{} : members.front().who; }
  bool operator==(const Row&) const = default;
};

struct RowState {  // what the user has set for the rows
  Grouping grouping = Grouping::Stage;
  std::set<std::int32_t> open = {};  // numbers of the open groups
  std::set<RowKey> pinned = {};
  int row_height = 0;  // pixels; 0: chosen by the height of the viewport
  bool operator==(const RowState&) const = default;
};

inline constexpr int kRowLeast = 18, kRowMost = 56;  // pixels: bounds of a row height chosen by the viewport

// Rows from top to bottom for a viewport `room` pixels high. With a measured twin every row is 1.5 times as high.
std::vector<Row> lay_rows(const std::vector<RankGroup>& groups, const RowState& state, int room, bool twin);

// The index of the row at `y` (pixels from the top of all rows); -1: none.
int row_at(const std::vector<Row>& rows, int y);

}  // namespace foreshard
