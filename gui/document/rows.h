// Rows: how the ranks of a result become rows of the timeline. Ranks are put in groups; a closed group is one row that shows
// the mean of its members and, where they differ, the worst of them below; an open one has a row per rank. Pinned rows come
// first.
#pragma once

#include <QString>
#include <cstdint>
#include <set>
#include <vector>

#include "gui/document/document.h"

namespace foreshard {

enum class Grouping : std::uint8_t { Stage, TensorParallel, DataParallel, Node };
inline constexpr int kGroupings = 4;

struct RowMember {  // a class and how many of its ranks are meant
  ClassId who = {};
  int ranks = 0;
  bool operator==(const RowMember&) const = default;
};

struct RankGroup {
  QString title = {};  // "stage 3", "node 17"
  std::vector<RankId> ranks = {};
  std::vector<ClassId> classes = {};    // [rank]
  std::vector<RowMember> members = {};  // classes of its ranks that differ, in their order
  ClassId worst = {};                   // the member that idles most
  bool operator==(const RankGroup&) const = default;
};

// Every rank is in one group. Groups in the order of their first ranks.
std::vector<RankGroup> group_ranks(const Document& document, Grouping grouping);

struct RowKey {
  std::int32_t group = 0;
  RankId rank = {};  // invalid: the group itself
  auto operator<=>(const RowKey&) const = default;
};

struct Row {
  RowKey key = {};
  std::vector<RowMember> members = {};
  ClassId worst = {};  // of a closed group whose members differ: drawn below the mean; else invalid
  bool open = false;   // a group whose ranks follow
  bool openable = false;
  bool pinned = false;
  QString title = {}, note = {};  // "stage 3", "64 GPUs"
  int top = 0, height = 0;        // pixels from the top of all rows
  ClassId shown() const { return members.empty() ? ClassId{} : members.front().who; }
  bool operator==(const Row&) const = default;
};

struct RowState {  // what a person did to the rows
  Grouping grouping = Grouping::Stage;
  std::set<std::int32_t> open = {};
  std::set<RowKey> pinned = {};
  int row_height = 0;  // pixels; 0: by the room there is
  bool operator==(const RowState&) const = default;
};

inline constexpr int kRowLeast = 18, kRowMost = 56;  // of heights by room

// Rows from top to bottom for a viewport of `room` pixels; with a measured twin every row is half as high again.
std::vector<Row> lay_rows(const std::vector<RankGroup>& groups, const RowState& state, int room, bool twin);

// The row at a height, -1: none. Binary search.
int row_at(const std::vector<Row>& rows, int y);

}  // namespace foreshard
