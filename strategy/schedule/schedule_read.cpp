#include "strategy/schedule/schedule_read.h"

#include <algorithm>
#include <charconv>

#include "core/base/count_text.h"
#include "core/base/error.h"

namespace foreshard {

static std::optional<ScheduleOp> parse_op(const std::string& word) {
  ScheduleOp op;
  const char* end = word.data() + word.size();
  const auto stage = std::from_chars(word.data(), end, op.stage);
  if (stage.ec != std::errc() || op.stage < 0 || stage.ptr == end) return {};
  switch (*stage.ptr) {
    case 'F': op.work = Work::F; break;
    case 'B': op.work = Work::B; break;
    case 'I': op.work = Work::I; break;
    case 'W': op.work = Work::W; break;
    default: return {};
  }
  const auto microbatch = std::from_chars(stage.ptr + 1, end, op.microbatch);
  if (microbatch.ec != std::errc() || op.microbatch < 0 || microbatch.ptr != end) return {};
  return op;
}

// Whether the word is an action of PyTorch's runtime that is skipped, since it follows from the order of the others.
static bool passed_over(const std::string& word) {
  static const std::vector<std::string> known = {"SEND_F", "RECV_F", "SEND_B", "RECV_B", "UNSHARD", "RESHARD", "REDUCE_GRAD"};
  const std::size_t from = word.find_first_not_of("0123456789");
  if (from == 0 || from == std::string::npos) return false;
  const std::size_t to = word.find_last_not_of("0123456789");
  return std::find(known.begin(), known.end(), word.substr(from, to + 1 - from)) != known.end();
}

// "(0F1;3B0)OVERLAP_F_B" as "0F1&3B0".
static std::string as_cell(const std::string& word) {
  const std::size_t middle = word.find_first_of(";&"), end = word.find(')');
  if (word.front() != '(' || middle == std::string::npos || end == std::string::npos || end < middle) return word;
  if (word.substr(end + 1) != "OVERLAP_F_B") return word;
  return word.substr(1, middle - 1) + "&" + word.substr(middle + 1, end - middle - 1);
}

// The actions of a cell, "0F1&3I0&3W0"; empty: one of them cannot be read.
static std::optional<std::vector<ScheduleOp>> parse_cell(const std::string& text) {
  std::vector<ScheduleOp> cell;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find('&', from), text.size());
    const auto op = parse_op(text.substr(from, to - from));
    if (!op) return {};
    if (!cell.empty()) cell.back().with_next = true;
    cell.push_back(*op);
    from = to + 1;
  }
  return cell;
}

// Whether the actions may form a cell: one action; or a forward and, of another stage or micro-batch, B, I, W, or I followed by W.
static bool is_cell(std::vector<ScheduleOp> cell) {
  if (cell.size() == 1) return true;
  if (cell.size() > 3) return false;
  const auto forward = std::ranges::find(cell, Work::F, &ScheduleOp::work);
  if (forward == cell.end()) return false;
  const ScheduleOp ahead = *forward;
  cell.erase(forward);
  for (const ScheduleOp& op : cell)
    if (op.work == Work::F || (op.stage == ahead.stage && op.microbatch == ahead.microbatch)) return false;
  return cell.size() == 1 || (cell[0].work == Work::I && cell[1].work == Work::W && cell[0].stage == cell[1].stage &&
                              cell[0].microbatch == cell[1].microbatch);
}

static std::vector<ScheduleOp> parse_line(const std::string& line, const std::string& where, const std::string& field) {
  std::vector<ScheduleOp> list;
  const std::string separators = " \t\r,";
  for (std::size_t from = line.find_first_not_of(separators); from != std::string::npos;) {
    const std::size_t to = std::min(line.find_first_of(separators, from), line.size());
    const std::string word = line.substr(from, to - from);
    from = line.find_first_not_of(separators, to);
    if (passed_over(word)) continue;
    const auto cell = parse_cell(as_cell(word));
    if (!cell) throw Error(where, field, "\"" + word + "\"", "<stage><F, B, I or W><micro-batch>, such as 2F0");
    if (!is_cell(*cell))
      throw Error(where, field, "\"" + word + "\"",
                  "a forward and a backward, or both halves of one, of different micro-batches in one cell, such as 0F3&3B1 or "
                  "0F3&3I1&3W1");
    list.insert(list.end(), cell->begin(), cell->end());
  }
  return list;
}

ScheduleLists parse_schedule_text(const std::string& text, const std::string& file_name) {
  ScheduleLists lists;
  std::size_t number = 0;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t to = std::min(text.find('\n', from), text.size());
    const std::string line = text.substr(from, to - from);
    from = to + 1;
    const std::string field = "line " + std::to_string(++number);
    if (!line.empty() && line[0] == '#') continue;
    if (auto list = parse_line(line, file_name, field); !list.empty()) lists.push_back(std::move(list));
  }
  if (lists.empty()) throw Error(file_name, "", "no action", "one line of actions per pipeline rank");
  if (const auto wrong = incomplete(lists)) throw Error(file_name + ": " + *wrong);
  return lists;
}

ScheduleLists parse_order(const std::vector<std::string>& ranks) {
  std::string lines;
  for (const std::string& rank : ranks) lines += rank + "\n";
  return parse_schedule_text(lines);
}

std::optional<std::string> wrong_size(const ScheduleLists& lists, const ScheduleShape& shape) {
  if (static_cast<int>(lists.size()) != shape.p)
    return counted(lists.size(), "list") + " for " + counted(shape.p, "pipeline rank");
  int stages = 0, microbatches = 0;
  for (const auto& list : lists)
    for (const ScheduleOp& op : list)
      stages = std::max(stages, op.stage + 1), microbatches = std::max(microbatches, op.microbatch + 1);
  if (stages != shape.p * shape.v)
    return counted(stages, "stage") + " where the strategy has " + std::to_string(shape.p * shape.v);
  if (microbatches != shape.m)
    return counted(microbatches, "micro-batch", "micro-batches") + " where the strategy has " + std::to_string(shape.m);
  for (const auto& list : lists) {
    std::vector<int> here;
    for (const ScheduleOp& op : list)
      if (std::find(here.begin(), here.end(), op.stage) == here.end()) here.push_back(op.stage);
    if (static_cast<int>(here.size()) != shape.v)
      return counted(here.size(), "stage") + " on one rank where the strategy has " + counted(shape.v, "virtual stage") +
             " per rank";
  }
  return {};
}

}  // namespace foreshard
