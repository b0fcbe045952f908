#include "report/export/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/json/json.h"
#include "report/causes/binding.h"
#include "report/summary/memory_steps.h"
#include "report/words/span_words.h"

namespace foreshard {

namespace {

const char* kind_of(const Instruction& instruction) {
  constexpr const char* names[] = {"compute", "host compute", "exchange", "collective", "copy", "mark"};
  return names[instruction.what.index()];
}

// A run of spans of one (class, stream, action).
struct Group {
  std::size_t first = 0, last = 0;
};

class ChromeWriter {
 public:
  ChromeWriter(const Result& result, const ChromeTraceOptions& options)
      : result_(result), plan_(result.plan), trace_(result.trace), options_(options) {}

  std::string write() {
    find_groups();
    choose_detail();
    fmt::format_to(to(),
                   "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"classes\":{},\"classes_shown\":{},\"spans_shown\":{}}},"
                   "\n\"traceEvents\":[",
                   trace_.classes.size(), shown_, detailed_);
    for (std::size_t c = 0; c < shown_; ++c) name_class(c);
    for (const Group& group : groups_) write_group(group);
    if (options_.critical_chain) write_chain();
    write_memory();
    fmt::format_to(to(), "\n]}}\n");
    return fmt::to_string(out_);
  }

 private:
  std::back_insert_iterator<fmt::memory_buffer> to() { return std::back_inserter(out_); }
  void next_event() {
    out_.append(std::string_view(first_event_ ? "\n" : ",\n"));
    first_event_ = false;
  }
  static std::string in_us(Nanoseconds when) { return fmt::format("{}.{:03}", when.value / 1000, when.value % 1000); }

  void find_groups() {
    for (std::size_t first = 0, last = 0; first < trace_.spans.size(); first = last) {
      const Span& span = trace_.spans[first];
      while (last < trace_.spans.size() && trace_.spans[last].who == span.who && trace_.spans[last].stream == span.stream &&
             trace_.spans[last].action == span.action)
        ++last;
      groups_.push_back({first, last});
    }
  }

  void choose_detail() {
    shown_ = trace_.classes.size();
    const auto most = static_cast<std::size_t>(std::max<std::int64_t>(options_.most_slices, 1));
    detailed_ = trace_.spans.size() + groups_.size() <= most;
    if (detailed_ || groups_.size() <= most) return;
    shown_ = std::max<std::size_t>(trace_.spans[groups_[most].first].who.index(), 1);
    std::erase_if(groups_, [&](const Group& group) { return trace_.spans[group.first].who.index() >= shown_; });
  }

  void name_class(std::size_t c) {
    const ClassId who = {static_cast<std::int32_t>(c)};
    const auto named = [&](const char* what, int thread, const std::string& name, std::size_t place) {
      next_event();
      fmt::format_to(to(), R"({{"ph":"M","name":"{}_name","pid":{},"tid":{},"args":{{"name":{}}}}},)", what, c, thread,
                     quoted_json(name));
      fmt::format_to(to(),
                     "\n"
                     R"({{"ph":"M","name":"{}_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
                     what, c, thread, place);
    };
    named("process", 0, class_name(plan_, trace_, who), c);
    const Role& role = role_of(plan_, trace_, who);
    for (std::size_t s = 0; s < role.streams.size(); ++s) named("thread", static_cast<int>(s), role.streams[s].name, s);
  }

  void slice(const Span& where, Nanoseconds begin, Nanoseconds end, const std::string& name, const std::string& args) {
    next_event();
    fmt::format_to(to(), R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"args":{{{}}}}})", where.who.value,
                   where.stream.value, in_us(begin), in_us(end - begin), quoted_json(name), args);
  }

  static std::string work_of(const Action& action) {
    if (action.does.empty()) return {};
    const Does& does = action.does.front();
    return fmt::format(R"("stage":{},"microbatch":{},"work":"{}",)", does.stage, does.microbatch, letter_of(does.work));
  }

  std::string details(const Span& span) const {
    const Instruction& instruction = instruction_of(plan_, trace_, span);
    std::string args = work_of(action_of(plan_, trace_, span));
    if (span.count > 1) return args + fmt::format(R"("instructions":{})", span.count);
    args += fmt::format(R"("kind":"{}")", kind_of(instruction));
    if (const auto* compute = std::get_if<Compute>(&instruction.what))
      args += fmt::format(R"(,"flops":{},"bytes":{})", compute->flops.value, compute->traffic.value);
    if (const auto* host = std::get_if<HostCompute>(&instruction.what))
      args += fmt::format(R"(,"bytes":{})", host->traffic.value);
    if (const auto* exchange = std::get_if<Exchange>(&instruction.what))
      args += fmt::format(R"(,"bytes":{})", exchange->bytes.value);
    if (const auto* collective = std::get_if<Collective>(&instruction.what))
      args += fmt::format(R"(,"bytes":{},"group":{})", collective->bytes.value,
                          quoted_json(plan_.groups[collective->group.index()].name));
    if (const auto* copy = std::get_if<Copy>(&instruction.what)) args += fmt::format(R"(,"bytes":{})", copy->bytes.value);
    const std::vector<std::string>& layers = role_of(plan_, trace_, span.who).layers;
    if (instruction.layer.valid() && instruction.layer.index() < layers.size())
      args += fmt::format(R"(,"layer":{})", quoted_json(layers[instruction.layer.index()]));
    return args;
  }

  // Spans without duration are left out: they are invisible, and two at one instant do not nest.
  void write_group(const Group& group) {
    const Span& first = trace_.spans[group.first];
    const Action& action = action_of(plan_, trace_, first);
    const Nanoseconds end = trace_.spans[group.last - 1].end;
    if (end == first.begin) return;
    const bool alone = group.last - group.first == 1;
    if (alone && detailed_) {
      slice(first, first.begin, end, first.count > 1 ? action_name(plan_, action) : alone_name(action, first), details(first));
      return;
    }
    std::string args = work_of(action) + fmt::format(R"("spans":{})", group.last - group.first);
    slice(first, first.begin, end, action_name(plan_, action), args);
    if (!detailed_) return;
    for (std::size_t s = group.first; s < group.last; ++s) {
      const Span& span = trace_.spans[s];
      if (span.begin == span.end) continue;
      const Instruction& instruction = instruction_of(plan_, trace_, span);
      slice(span, span.begin, span.end,
            span.count > 1 ? fmt::format("{} + {}", instruction.name, span.count - 1) : instruction.name, details(span));
    }
  }

  std::string alone_name(const Action& action, const Span& span) const {
    return fmt::format("{} {}", action_name(plan_, action), instruction_of(plan_, trace_, span).name);
  }

  void arrow(const Span& span, const char* phase, Nanoseconds when, int id) {
    next_event();
    fmt::format_to(to(),
                   R"({{"ph":"{}","bp":"e","cat":"critical chain","name":"critical chain","id":{},"pid":{},"tid":{},"ts":{}}})",
                   phase, id, span.who.value, span.stream.value, in_us(when));
  }

  // An arrow wherever the chain changes its track: from the last nanosecond of one slice to the first of the next.
  void write_chain() {
    int id = 0;
    const Span* from = nullptr;
    for (const ChainStep& link : critical_chain(trace_, bind_spans(plan_, trace_))) {
      const Span& span = trace_.spans[static_cast<std::size_t>(link.span)];
      if (span.begin == span.end || span.who.index() >= shown_) continue;
      if (from != nullptr && (from->who != span.who || from->stream != span.stream)) {
        arrow(*from, "s", std::min(from->end - Nanoseconds{1}, span.begin), ++id);
        arrow(span, "f", span.begin, id);
      }
      from = &span;
    }
  }

  void write_memory() {
    constexpr const char* names[] = {"parameters", "gradients",     "optimizer", "activations",
                                     "transient",  "communication", "framework"};
    for (const MemoryCurve& curve : device_curves(result_)) {
      if (curve.who.index() >= shown_) continue;
      for (const MemoryStep& step : memory_steps(curve, trace_.makespan, options_.most_memory_points)) {
        next_event();
        fmt::format_to(to(), R"({{"ph":"C","name":"memory bytes","pid":{},"ts":{},"args":{{)", curve.who.value,
                       in_us(step.when));
        for (std::size_t c = 0; c < step.live.size(); ++c)
          fmt::format_to(to(), R"({}"{}":{})", c > 0 ? "," : "", names[c], step.live[c].value);
        fmt::format_to(to(), "}}}}");
      }
    }
  }

  const Result& result_;
  const Plan& plan_;
  const Trace& trace_;
  const ChromeTraceOptions& options_;
  std::vector<Group> groups_ = {};
  std::size_t shown_ = 0;
  bool detailed_ = true;
  bool first_event_ = true;
  fmt::memory_buffer out_;
};

}  // namespace

std::string chrome_trace(const Result& result, const ChromeTraceOptions& options) {
  return ChromeWriter(result, options).write();
}

}  // namespace foreshard
