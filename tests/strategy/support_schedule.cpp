#include "tests/strategy/support_schedule.h"

#include <algorithm>
#include <charconv>

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

static std::vector<ScheduleOp> parse_line(const std::string& line, const std::string& where, const std::string& field) {
  std::vector<ScheduleOp> list;
  const std::string separators = " \t\r,";
  for (std::size_t from = line.find_first_not_of(separators); from != std::string::npos;) {
    const std::size_t to = std::min(line.find_first_of(separators, from), line.size());
    const std::string word = line.substr(from, to - from);
    const auto op = parse_op(word);
    if (!op) throw Error(where, field, "\"" + word + "\"", "<stage><F, B, I or W><micro-batch>, such as 2F0");
    list.push_back(*op);
    from = line.find_first_not_of(separators, to);
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

}  // namespace foreshard
