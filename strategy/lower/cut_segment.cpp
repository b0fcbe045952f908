#include "strategy/lower/cut_segment.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "core/base/at.h"
#include "core/base/error.h"

namespace foreshard {

namespace {

using BlockKey = std::pair<std::int32_t, std::int64_t>;
BlockKey key(BufferId buffer, const Slot& slot) {
  if (const auto* number = std::get_if<std::int32_t>(&slot.which)) return {buffer.value, *number};
  return {buffer.value, -1 - std::int64_t{std::get<ParamId>(slot.which).value}};
}

template <class Visit>
void each_use(const Instruction& run, Visit visit) {
  for (const Use& use : run.reads) visit(use, false);
  for (const Use& use : run.writes) visit(use, true);
}

std::set<BlockKey> blocks_of(const Instruction& run) {
  std::set<BlockKey> blocks;
  each_use(run, [&](const Use& use, bool) { blocks.insert(key(use.buffer, use.slot)); });
  for (const std::vector<Block>* list : {&run.acquires, &run.releases})
    for (const Block& block : *list) blocks.insert(key(block.buffer, block.slot));
  return blocks;
}

bool meet(const std::set<BlockKey>& a, const std::set<BlockKey>& b) {
  return std::ranges::any_of(a, [&](const BlockKey& block) { return b.contains(block); });
}

// One of both writes what the other one uses.
bool conflict(const Instruction& a, const Instruction& b) {
  bool found = false;
  each_use(a, [&](const Use& x, bool x_writes) {
    each_use(b, [&](const Use& y, bool y_writes) {
      found |= (x_writes || y_writes) && key(x.buffer, x.slot) == key(y.buffer, y.slot);
    });
  });
  return found;
}

// Appends instructions with the edges that data hazards between streams need, byte range by byte range.
class RangeBuilder {
 public:
  RangeBuilder(Segment& out, const OperatorParts& parts) : out_(out), parts_(parts) {}

  int emit(Instruction run) {
    const int index = static_cast<int>(out_.instructions.size());
    out_.instructions.push_back(std::move(run));
    const Instruction copy = out_.instructions.back();
    for (const Block& block : copy.acquires) meet_touches(index, key(block.buffer, block.slot), kAll, true);
    each_use(copy, [&](const Use& use, bool writes) { meet_touches(index, key(use.buffer, use.slot), range(use), writes); });
    each_use(copy, [&](const Use& use, bool writes) { note(index, key(use.buffer, use.slot), range(use), writes); });
    for (const Block& block : copy.releases) meet_touches(index, key(block.buffer, block.slot), kAll, true);
    return index;
  }

  // Stream order makes all but the newest edge into a stream redundant.
  void depend(int index, int earlier) {
    FS_ASSERT(earlier < index);
    Instruction& run = out_.instructions[at(index)];
    const StreamId stream = out_.instructions[at(earlier)].stream;
    if (stream == run.stream) return;
    for (std::int32_t& known : run.after)
      if (out_.instructions[at(known)].stream == stream) {
        known = std::max(known, earlier);
        return;
      }
    run.after.push_back(earlier);
  }

 private:
  struct Range {
    std::int64_t from = 0, to = 0;
    bool operator==(const Range&) const = default;
  };
  static constexpr Range kAll{0, std::numeric_limits<std::int64_t>::max()};
  struct Touch {
    Range range = {};
    int index = 0;
    bool writes = false;
  };

  // States are ordered block by block, as in a segment that is not cut.
  Range range(const Use& use) const {
    if (!use.length || !parts_.of_samples(use.buffer)) return kAll;
    return {use.from.value, (use.from + *use.length).value};
  }
  static bool apart(const Range& a, const Range& b) { return a.to <= b.from || b.to <= a.from; }

  void meet_touches(int index, const BlockKey& block, const Range& range, bool writes) {
    for (const Touch& touch : touched_[block])
      if (touch.index != index && (writes || touch.writes) && !apart(touch.range, range)) depend(index, touch.index);
  }
  void note(int index, const BlockKey& block, const Range& range, bool writes) {
    std::vector<Touch>& touches = touched_[block];
    std::erase_if(touches, [&](const Touch& touch) {
      if (writes) return touch.index != index && range.from <= touch.range.from && touch.range.to <= range.to;
      return !touch.writes && touch.range == range &&
             out_.instructions[at(touch.index)].stream == out_.instructions[at(index)].stream;
    });
    touches.push_back({range, index, writes});
  }

  Segment& out_;
  const OperatorParts& parts_;
  std::map<BlockKey, std::vector<Touch>> touched_ = {};
};

// Instructions [first, last), which run `parts` times.
struct Stretch {
  int first = 0, last = 0, parts = 1;
};

class SegmentCutter {
 public:
  SegmentCutter(Segment whole, const OperatorParts& parts)
      : whole_(std::move(whole)), parts_(parts), builder_(out_, parts), pieces_(whole_.instructions.size()) {
    out_.name = whole_.name, out_.params = whole_.params;
  }

  Segment cut() {
    find_operations();
    for (const Stretch& operation : operations_) emit(operation);
    return std::move(out_);
  }

 private:
  const Instruction& whole(int i) const { return whole_.instructions[at(i)]; }
  bool is_cut(int i) const { return divides_[at(i)] != Divides::Never; }

  // What of the operation so far an instruction may have to wait for with all its parts.
  struct Seen {
    std::set<BlockKey> all = {}, cut = {}, behind = {};
    std::set<std::int32_t> events = {};      // recorded
    std::set<int> streams_behind = {};       // of what is issued behind the last part
    std::set<int> cut_runs = {}, late = {};  // instructions
  };

  // Issued behind the last part.
  bool comes_behind(int i, const Seen& seen) const {
    const std::set<BlockKey> blocks = blocks_of(whole(i));
    const auto after = [&](int earlier) { return seen.cut_runs.contains(earlier) || seen.late.contains(earlier); };
    return meet(blocks, seen.cut) || meet(blocks, seen.behind) || seen.streams_behind.contains(whole(i).stream.value) ||
           std::ranges::any_of(whole(i).after, after);
  }
  // It cannot run part by part beside what was there before.
  bool begins_operation(int i, const Seen& seen) const {
    const Instruction& run = whole(i);
    const auto known = [&](const Block& block) { return seen.all.contains(key(block.buffer, block.slot)); };
    const auto recorded = [&](const EventUse& wait) { return seen.events.contains(wait.event.value); };
    if (std::ranges::any_of(run.acquires, known) || std::ranges::any_of(run.waits, recorded)) return true;
    if (!is_cut(i)) return false;
    return meet(blocks_of(run), seen.behind) || std::ranges::any_of(run.after, [&](int e) { return seen.late.contains(e); });
  }

  void find_operations() {
    const int count = static_cast<int>(whole_.instructions.size());
    late_.assign(at(count), 0);
    for (int i = 0; i < count; ++i) divides_.push_back(parts_.divides(whole(i)));
    int first = 0;
    std::size_t open = 0;  // operations whose number of parts is not known yet
    Seen seen;
    const auto close = [&](int last) {
      if (last > first) operations_.push_back({first, last, 1});
      first = last, seen = {};
    };
    for (int i = 0; i < count; ++i) {
      if (begins_operation(i, seen)) close(i);
      note(i, seen);
      const auto parts = parts_.ends_operation(whole(i));
      if (!parts) continue;
      close(i + 1);
      for (; open < operations_.size(); ++open) operations_[open].parts = *parts;
    }
    close(count);
  }

  void note(int i, Seen& seen) {
    const std::set<BlockKey> blocks = blocks_of(whole(i));
    if (is_cut(i)) {
      seen.cut.insert(blocks.begin(), blocks.end()), seen.cut_runs.insert(i);
    } else if (comes_behind(i, seen)) {
      late_[at(i)] = 1;
      seen.behind.insert(blocks.begin(), blocks.end()), seen.late.insert(i), seen.streams_behind.insert(whole(i).stream.value);
    }
    seen.all.insert(blocks.begin(), blocks.end());
    for (const EventUse& record : whole(i).records) seen.events.insert(record.event.value);
  }

  // A sum that is sent as codes computes between its two collectives. The stages of an operation end at such collectives. Stage s of part k
  // is issued after stage s - 1 of part k + 1, so that the codes of a part travel while the next part is computed:
  //   two parts    fc2 1/2 encode 1/2   fc2 2/2 encode 2/2   add 1/2   add 2/2   decode 1/2   decode 2/2
  void emit(const Stretch& operation) {
    std::vector<int> borders = {operation.first};  // of the stages
    for (int i = operation.first; i + 1 < operation.last; ++i)
      if (parts_.sends_codes(whole(i))) borders.push_back(i + 1);
    borders.push_back(operation.last);
    const int stages = static_cast<int>(borders.size()) - 1;
    for (int turn = 0; turn < operation.parts + stages - 1; ++turn)
      for (int stage = 0; stage < stages; ++stage)
        if (const int part = turn - stage; part >= 0 && part < operation.parts)
          emit(operation, {borders[at(stage)], borders[at(stage + 1)]}, part);
    for (int i = operation.first; i < operation.last; ++i)
      if (late_[at(i)]) emit(operation, i, 1, 0);
  }

  // Instructions `stage` of the operation, one of its parts.
  void emit(const Stretch& operation, const Stretch& stage, int part) {
    for (int i = stage.first; i < stage.last; ++i) {
      if (!is_cut(i)) {
        if (part == 0 && !late_[at(i)]) emit(operation, i, 1, 0);
        continue;
      }
      const int all = divides_[at(i)] == Divides::Rows ? operation.parts : parts_.groups();
      const int each = all / operation.parts;
      for (int piece = part * each; piece < (part + 1) * each; ++piece) emit(operation, i, all, piece);
    }
  }

  void emit(const Stretch& operation, int i, int pieces, int piece) {
    const int index = builder_.emit(parts_.piece(whole(i), pieces, piece));
    pieces_[at(i)].push_back(index);
    for (const int earlier : whole(i).after) {
      if (conflict(whole(i), whole(earlier))) continue;  // the builder saw to it
      const bool same_operation = earlier >= operation.first;
      const bool joins = meet(blocks_of(whole(i)), blocks_of(whole(earlier)));  // both read what the later one releases
      if (same_operation || (joins ? piece + 1 == pieces : piece == 0)) builder_.depend(index, pieces_[at(earlier)].back());
    }
  }

  Segment whole_, out_ = {};
  const OperatorParts& parts_;
  RangeBuilder builder_;
  std::vector<std::vector<int>> pieces_;  // [instruction]: of the new segment
  std::vector<Divides> divides_ = {};
  std::vector<char> late_ = {};
  std::vector<Stretch> operations_ = {};
};

}  // namespace

Segment cut_segment(Segment whole, const OperatorParts& parts) {
  return parts.any() ? SegmentCutter(std::move(whole), parts).cut() : std::move(whole);
}

}  // namespace foreshard
