#include "gui/document/rows.h"

#include <QCoreApplication>
#include <algorithm>
#include <map>

#include "core/plan/ranks.h"
#include "gui/document/words.h"

namespace foreshard {

namespace {

QString words(const char* text) { return QCoreApplication::translate("Rows", text); }

std::vector<std::int32_t> classes_of_ranks(const Trace& trace, int ranks) {
  std::vector<std::int32_t> of(static_cast<std::size_t>(ranks), -1);
  for (std::size_t c = 0; c < trace.classes.size(); ++c)
    for (const RankId rank : trace.classes[c].members) of[rank.index()] = static_cast<std::int32_t>(c);
  return of;
}

class GroupBuilder {
 public:
  GroupBuilder(const Document& document, Grouping grouping)
      : document_(document),
        plan_(document.plan()),
        grouping_(grouping),
        ranks_(plan_),
        class_of_(classes_of_ranks(document.trace(), ranks_.count())) {}

  std::vector<RankGroup> build() {
    std::map<std::vector<std::int32_t>, std::size_t> known;
    std::vector<RankGroup> groups;
    for (std::int32_t r = 0; r < ranks_.count(); ++r) {
      if (class_of_[static_cast<std::size_t>(r)] < 0) continue;  // a rank that did not run
      const auto [at, fresh] = known.emplace(key_of({r}), groups.size());
      if (fresh) groups.push_back({.title = title_of({r}, static_cast<int>(groups.size()))});
      groups[at->second].ranks.push_back({r});
      groups[at->second].classes.push_back({class_of_[static_cast<std::size_t>(r)]});
    }
    for (RankGroup& group : groups) count_members(group);
    return groups;
  }

 private:
  std::vector<std::int32_t> key_of(RankId rank) const {
    switch (grouping_) {
      case Grouping::Stage: return {ranks_.role(rank).value};
      case Grouping::Node: return {node_of(rank)};
      case Grouping::DataParallel:
        return coordinates(rank, [](DenseKind kind) { return kind == DenseKind::Data || kind == DenseKind::OuterData; });
      case Grouping::TensorParallel: {
        std::vector<std::int32_t> key = coordinates(rank, [](DenseKind kind) { return kind != DenseKind::Tensor; });
        key.push_back(ranks_.role(rank).value);
        return key;
      }
    }
    return {};
  }
  template <class Of>
  std::vector<std::int32_t> coordinates(RankId rank, Of of) const {
    std::vector<std::int32_t> on;
    for (std::size_t a = 0; a < plan_.axes.size(); ++a)
      if (of(plan_.axes[a].dense)) on.push_back(ranks_.coordinate(rank, {static_cast<std::int32_t>(a)}));
    return on;
  }

  int node_of(RankId rank) const {
    int device = ranks_.device(rank).value;
    if (!document_.cluster) return device / 8;
    int node = 0;
    for (const NodeGroup& group : document_.cluster->nodes) {
      const int per_node = std::max(group.shape.gpus, 1), all = per_node * group.count;
      if (device < all) return node + device / per_node;
      device -= all, node += group.count;
    }
    return node;
  }

  QString title_of(RankId rank, int number) const {
    switch (grouping_) {
      case Grouping::Stage: return role_words(plan_.roles[ranks_.role(rank).index()].name);
      case Grouping::Node: return words("node %1").arg(node_of(rank));
      case Grouping::DataParallel: return words("replica %1").arg(number);
      case Grouping::TensorParallel: return words("TP group %1").arg(number);
    }
    return {};
  }

  // Classes that do the same at the same time count as one.
  bool alike(ClassId a, ClassId b) const {
    if (a == b) return true;
    if (document_.trace().classes[a.index()].role != document_.trace().classes[b.index()].role) return false;
    for (int k = 0; k < kLaneKinds; ++k) {
      const Lane *x = document_.lanes.find(a, static_cast<LaneKind>(k)), *y = document_.lanes.find(b, static_cast<LaneKind>(k));
      if ((x == nullptr) != (y == nullptr)) return false;
      if (x != nullptr && (x->begin != y->begin || x->end != y->end || x->look != y->look)) return false;
    }
    return true;
  }

  void count_members(RankGroup& group) const {
    for (const ClassId who : group.classes) {
      const auto known = std::ranges::find_if(group.members, [&](const RowMember& member) { return alike(member.who, who); });
      if (known == group.members.end())
        group.members.push_back({who, 1});
      else
        ++known->ranks;
    }
    std::int64_t least = 0;
    for (const RowMember& member : group.members) {
      const Lane* lane = document_.lanes.find(member.who, LaneKind::Compute);
      const std::int64_t busy = lane == nullptr ? 0 : lane->busy_until(document_.trace().makespan.value);
      if (group.worst.valid() && busy >= least) continue;
      group.worst = member.who;
      least = busy;
    }
  }

  const Document& document_;
  const Plan& plan_;
  Grouping grouping_;
  Ranks ranks_;
  std::vector<std::int32_t> class_of_;
};

Row group_row(const RankGroup& group, std::int32_t number, const RowState& state) {
  Row row{.key = {number, {}}, .members = group.members, .title = group.title};
  row.openable = group.ranks.size() > 1;
  row.open = row.openable && state.open.contains(number);
  row.note = group.ranks.size() == 1 ? words("1 GPU") : words("%1 GPUs").arg(group.ranks.size());
  if (group.members.size() > 1) row.worst = group.worst;
  return row;
}

}  // namespace

std::vector<RankGroup> group_ranks(const Document& document, Grouping grouping) {
  return GroupBuilder(document, grouping).build();
}

std::vector<Row> lay_rows(const std::vector<RankGroup>& groups, const RowState& state, int room, bool twin) {
  std::vector<Row> pinned, rest;
  const auto add = [&](Row row) {
    row.pinned = state.pinned.contains(row.key);
    (row.pinned ? pinned : rest).push_back(std::move(row));
  };
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto number = static_cast<std::int32_t>(g);
    const Row head = group_row(groups[g], number, state);
    add(head);
    if (!head.open) continue;
    for (std::size_t r = 0; r < groups[g].ranks.size(); ++r) {
      const RankId rank = groups[g].ranks[r];
      add({.key = {number, rank},
           .members = {{groups[g].classes[r], 1}},
           .title = QCoreApplication::translate("Rows", "rank %1").arg(rank.value)});
    }
  }
  pinned.insert(pinned.end(), std::make_move_iterator(rest.begin()), std::make_move_iterator(rest.end()));
  const int count = std::max(static_cast<int>(pinned.size()), 1);
  const auto with_twin = [&](int height) { return twin ? height + height / 2 : height; };
  const int height =
      state.row_height > 0 ? with_twin(state.row_height) : std::clamp(room / count, with_twin(kRowLeast), with_twin(kRowMost));
  int top = 0;
  for (Row& row : pinned) {
    row.top = top;
    row.height = height;
    top += height;
  }
  return pinned;
}

int row_at(const std::vector<Row>& rows, int y) {
  const auto after = std::ranges::upper_bound(rows, y, {}, &Row::top);
  if (after == rows.begin()) return -1;
  const auto row = std::prev(after);
  return y < row->top + row->height ? static_cast<int>(row - rows.begin()) : -1;
}

}  // namespace foreshard
