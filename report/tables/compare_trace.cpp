#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/json/json.h"
#include "report/tables/compare_text.h"
#include "report/words/span_words.h"

namespace foreshard {

namespace {

std::string in_us(Nanoseconds when) { return fmt::format("{}.{:03}", when.value / 1000, when.value % 1000); }

class TwinWriter {
 public:
  TwinWriter(const Result& predicted, const Result& measured) : results_{&predicted, &measured} {}

  std::string write(std::int64_t most_slices) {
    const std::vector<ClassPair> pairs = class_pairs(results_[0]->trace, results_[1]->trace);
    std::size_t shown = 0;
    for (; shown < pairs.size(); ++shown) {
      const auto [a, b] = std::pair(pairs[shown].predicted, pairs[shown].measured);
      slices_ += count(results_[0]->trace, a) + count(results_[1]->trace, b);
      if (shown > 0 && slices_ > most_slices) break;
      write(static_cast<int>(shown), pairs[shown]);
    }
    return fmt::format(
        "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"plan\":{},\"classes\":{},\"classes_shown\":{}}},\n"
        "\"traceEvents\":[{}\n]}}\n",
        quoted_json(results_[0]->trace.plan_hash), pairs.size(), shown, fmt::to_string(out_));
  }

 private:
  using Spans = std::pair<std::vector<Span>::const_iterator, std::vector<Span>::const_iterator>;
  static Spans spans(const Trace& trace, ClassId who) {
    const auto earlier = [](const Span& span, ClassId c) { return span.who < c; };
    const auto first = std::lower_bound(trace.spans.begin(), trace.spans.end(), who, earlier);
    return {first, std::find_if(first, trace.spans.end(), [&](const Span& span) { return span.who != who; })};
  }
  static std::int64_t count(const Trace& trace, ClassId who) {
    const Spans range = spans(trace, who);
    return range.second - range.first;
  }

  template <class... Values>
  void event(fmt::format_string<Values...> form, Values&&... values) {
    fmt::format_to(std::back_inserter(out_), "{}", out_.size() == 0 ? "\n" : ",\n");
    fmt::format_to(std::back_inserter(out_), form, std::forward<Values>(values)...);
  }

  // Streams in the order of the role, of each the predicted track above the measured one.
  void write(int process, const ClassPair& pair) {
    const Result& first = *results_[0];
    const Role& role = role_of(first.plan, first.trace, pair.predicted);
    std::string name = fmt::format("{} (rank {}", role.name, pair.first.value);
    name += pair.ranks > 1 ? fmt::format(" and {} like it)", pair.ranks - 1) : ")";
    event(R"({{"ph":"M","name":"process_name","pid":{},"tid":0,"args":{{"name":{}}}}})", process, quoted_json(name));
    event(R"({{"ph":"M","name":"process_sort_index","pid":{},"tid":0,"args":{{"sort_index":{}}}}})", process, process);
    for (const int side : {0, 1}) {
      const Trace& trace = results_[side]->trace;
      for (std::size_t s = 0; s < role.streams.size(); ++s) {
        const int thread = 2 * static_cast<int>(s) + side;
        const std::string track =
            role.streams[s].name + (side == 0 ? " A " : " B ") + (trace.origin == Origin::Simulated ? "simulated" : "measured");
        event(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", process, thread, quoted_json(track));
        event(R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})", process, thread,
              thread);
      }
      const Spans range = spans(trace, side == 0 ? pair.predicted : pair.measured);
      for (auto span = range.first; span != range.second; ++span) slice(process, side, *span);
    }
  }

  void slice(int process, int side, const Span& span) {
    if (span.begin == span.end) return;
    const Result& result = *results_[side];
    const Instruction& instruction = instruction_of(result.plan, result.trace, span);
    std::string name = action_name(result.plan, action_of(result.plan, result.trace, span)) + " " + instruction.name;
    if (span.count > 1) name += fmt::format(" + {}", span.count - 1);
    event(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"args":{{"action":{},"instruction":{}}}}})", process,
          2 * span.stream.value + side, in_us(span.begin), in_us(span.end - span.begin), quoted_json(name), span.action,
          span.instruction);
  }

  const Result* results_[2];
  std::int64_t slices_ = 0;
  fmt::memory_buffer out_;
};

}  // namespace

std::string compare_trace(const Result& predicted, const Result& measured, std::int64_t most_slices) {
  return TwinWriter(predicted, measured).write(most_slices);
}

}  // namespace foreshard
