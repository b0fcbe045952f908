// Result files: docs/plan-format.md. Spans are stored by column. The file contains the plan, so that it can be read without other files.
#include <algorithm>

#include "core/base/error.h"
#include "core/json/json.h"
#include "core/plan/plan_indices.h"
#include "core/plan/plan_words.h"
#include "core/plan/ranks.h"
#include "core/result/result.h"

namespace foreshard {
namespace {

constexpr int kVersion = 1;
constexpr std::int64_t kMostTime = std::int64_t{1} << 60U;  // nanoseconds: 36 years; sums stay inside 64 bits

template <class Get>
void column(JsonWriter& json, const char* name, const std::vector<Span>& spans, Get get) {
  json.key(name).begin_line_array();
  for (const Span& span : spans) json.value(std::int64_t{get(span)});
  json.end_array();
}

template <class Tag>
void ids(JsonWriter& json, const char* name, const std::vector<Id<Tag>>& values) {
  json.key(name).begin_array();
  for (const Id<Tag> id : values) json.value(id.value);
  json.end_array();
}

void write(JsonWriter& json, const Trace& trace) {
  json.begin_object().field("origin", word(trace.origin)).field("plan_hash", trace.plan_hash);
  json.field("makespan", trace.makespan.value).key("classes").begin_array();
  for (const RankClass& c : trace.classes) {
    JsonWriter line(0);
    line.begin_object().field("role", c.role.value);
    ids(line, "members", c.members);
    json.raw(line.end_object().text());
  }
  json.end_array().key("spans").begin_object();
  column(json, "who", trace.spans, [](const Span& s) { return s.who.value; });
  column(json, "action", trace.spans, [](const Span& s) { return s.action; });
  column(json, "instruction", trace.spans, [](const Span& s) { return s.instruction; });
  column(json, "count", trace.spans, [](const Span& s) { return s.count; });
  column(json, "stream", trace.spans, [](const Span& s) { return s.stream.value; });
  column(json, "ready", trace.spans, [](const Span& s) { return s.ready.value; });
  column(json, "begin", trace.spans, [](const Span& s) { return s.begin.value; });
  column(json, "end", trace.spans, [](const Span& s) { return s.end.value; });
  json.end_object().key("links").begin_array();
  for (const LinkClass& link : trace.links) {
    JsonWriter line(0);
    line.begin_object().field("name", link.name);
    ids(line, "links", link.links);
    line.field("bandwidth", link.bandwidth.value).field("bytes", link.bytes).field("busy", link.busy.value);
    json.raw(line.end_object().text());
  }
  json.end_array().end_object();
}

void live(JsonWriter& json, const char* name, const LiveBytes& bytes) {
  json.key(name).begin_array();
  for (const Bytes b : bytes) json.value(b.value);
  json.end_array();
}

std::string line_of(const MemoryCurve& curve) {
  JsonWriter json(0);
  json.begin_object().field("who", curve.who.value).field("space", word(curve.space));
  live(json, "start", curve.start);
  live(json, "peak", curve.peak);
  json.field("peak_time", curve.peak_time.value).field("arena", curve.arena.value);
  return json.field("events", !curve.events.empty()).end_object().text();
}

template <class Enum>
Enum choice(const JsonReader& json) {
  const std::vector<std::string>& known = words<Enum>();
  const std::string found = json.as_choice(known);
  return static_cast<Enum>(std::find(known.begin(), known.end(), found) - known.begin());
}

std::int32_t index(const JsonReader& json, std::size_t count) {
  return static_cast<std::int32_t>(json.as_int(0, static_cast<std::int64_t>(count) - 1));
}

template <class Tag>
std::vector<Id<Tag>> read_ids(const JsonReader& json, std::int64_t count) {
  std::vector<Id<Tag>> ids;
  for (const std::int64_t id : json.as_ints(0, count - 1)) ids.push_back({static_cast<std::int32_t>(id)});
  return ids;
}

// Checks that a span refers to existing instructions: `count` of its stream, in an action of the class's role.
void check_span(const Plan& plan, const Trace& trace, std::size_t i, const JsonReader& columns) {
  const Span& span = trace.spans[i];
  const Role& role = plan.roles[trace.classes[span.who.index()].role.index()];
  const auto wrong = [&](const char* name, const std::string& expected) { columns.at(name).at(i).fail(expected); };
  if (static_cast<std::size_t>(span.action) >= role.actions.size())
    wrong("action", "an action of role \"" + role.name + "\", which has " + std::to_string(role.actions.size()));
  const auto& instructions = plan.segments[role.actions[static_cast<std::size_t>(span.action)].segment.index()].instructions;
  if (static_cast<std::size_t>(span.instruction) >= instructions.size())
    wrong("instruction", "an instruction of the action, which has " + std::to_string(instructions.size()));
  std::int32_t left = span.count;
  for (auto at = static_cast<std::size_t>(span.instruction); at < instructions.size() && left > 0; ++at)
    left -= instructions[at].stream == span.stream ? 1 : 0;
  if (instructions[static_cast<std::size_t>(span.instruction)].stream != span.stream)
    wrong("stream", "the stream of the instruction");
  if (left > 0) wrong("count", "at most as many as the stream has instructions left in the action");
  if (span.end < span.begin) wrong("end", "a time not before the begin of the span");
  if (i == 0) return;
  const Span& before = trace.spans[i - 1];
  if (std::tie(span.who, span.stream, span.begin) < std::tie(before.who, before.stream, before.begin))
    wrong("begin", "spans in the order of class, stream and begin");
}

void read_spans(const JsonReader& json, const Plan& plan, Trace& trace) {
  json.only({"who", "action", "instruction", "count", "stream", "ready", "begin", "end"});
  const std::size_t n = json.at("who").size();
  trace.spans.resize(n);
  const auto fill = [&](const char* name, std::int64_t least, std::int64_t most, auto set) {
    const JsonReader column = json.at(name);
    const std::vector<std::int64_t> values = column.as_ints(least, most);
    if (values.size() != n) column.fail("a column of " + std::to_string(n) + " numbers, as long as \"who\"");
    for (std::size_t i = 0; i < n; ++i) set(trace.spans[i], values[i]);
  };
  const auto narrow = [](std::int64_t v) { return static_cast<std::int32_t>(v); };
  fill("who", 0, static_cast<std::int64_t>(trace.classes.size()) - 1, [&](Span& s, std::int64_t v) { s.who = {narrow(v)}; });
  fill("action", 0, INT32_MAX, [&](Span& s, std::int64_t v) { s.action = narrow(v); });
  fill("instruction", 0, INT32_MAX, [&](Span& s, std::int64_t v) { s.instruction = narrow(v); });
  fill("count", 1, INT32_MAX, [&](Span& s, std::int64_t v) { s.count = narrow(v); });
  fill("stream", 0, INT32_MAX, [&](Span& s, std::int64_t v) { s.stream = {narrow(v)}; });
  fill("ready", 0, kMostTime, [&](Span& s, std::int64_t v) { s.ready = {v}; });
  fill("begin", 0, kMostTime, [&](Span& s, std::int64_t v) { s.begin = {v}; });
  fill("end", 0, kMostTime, [&](Span& s, std::int64_t v) { s.end = {v}; });
  for (std::size_t i = 0; i < n; ++i) check_span(plan, trace, i, json);
}

// The hash of a plan depends on the version of the file, so the trace gets the hash of the plan as it was read.
Trace read_trace(const JsonReader& json, const Plan& plan, bool older) {
  json.only({"origin", "plan_hash", "makespan", "classes", "spans", "links"});
  Trace trace{.origin = choice<Origin>(json.at("origin")), .plan_hash = json.at("plan_hash").as_string()};
  if (older && !trace.plan_hash.empty()) trace.plan_hash = program_hash(plan);
  if (!trace.plan_hash.empty() && trace.plan_hash != program_hash(plan))
    json.at("plan_hash").fail("\"" + program_hash(plan) + "\", the hash of the plan in this file");
  trace.makespan = {json.at("makespan").as_int(0, kMostTime)};
  const int ranks = Ranks(plan).count();
  for (const JsonReader& c : json.at("classes").elements()) {
    c.only({"role", "members"});
    trace.classes.push_back({{index(c.at("role"), plan.roles.size())}, read_ids<RankTag>(c.at("members"), ranks)});
  }
  read_spans(json.at("spans"), plan, trace);
  for (const JsonReader& l : json.at("links").elements()) {
    l.only({"name", "links", "bandwidth", "bytes", "busy"});
    trace.links.push_back({.name = l.at("name").as_string(),
                           .links = read_ids<LinkTag>(l.at("links"), INT32_MAX),
                           .bandwidth = {l.at("bandwidth").as_double(0)},
                           .bytes = l.at("bytes").as_double(0),
                           .busy = {l.at("busy").as_double(0)}});
  }
  return trace;
}

LiveBytes read_live(const JsonReader& json) {
  const std::vector<std::int64_t> values = json.as_ints();
  if (values.size() != kCategories) json.fail("one number of bytes per category: " + std::to_string(kCategories));
  LiveBytes live;
  for (std::size_t c = 0; c < values.size(); ++c) live[c] = {values[c]};
  return live;
}

MemoryTimeline read_memory(const JsonReader& json, const Plan& plan, const Trace& trace) {
  MemoryTimeline memory;
  MemoryTimeline full;
  for (const JsonReader& c : json.elements()) {
    c.only({"who", "space", "start", "peak", "peak_time", "arena", "events"});
    MemoryCurve curve{.who = {index(c.at("who"), trace.classes.size())}, .space = choice<Space>(c.at("space"))};
    curve.start = read_live(c.at("start")), curve.peak = read_live(c.at("peak"));
    curve.peak_time = {c.at("peak_time").as_int(0, kMostTime)};
    curve.arena = {c.at("arena").as_int(0)};
    if (c.at("events").as_bool()) {
      if (full.curves.empty()) full = memory_timeline(plan, trace);
      for (const MemoryCurve& other : full.curves)
        if (other.who == curve.who && other.space == curve.space) curve.events = other.events;
    }
    memory.curves.push_back(std::move(curve));
  }
  return memory;
}

}  // namespace

std::string to_json(const Result& result) {
  JsonWriter json(1);
  json.begin_object().field("format", "foreshard result").field("version", kVersion);
  json.field("granularity", word(result.granularity)).field("folding", word(result.folding));
  json.field("makespan_s", result.makespan_s);
  if (result.period_s > 0) json.field("period_s", result.period_s);
  json.field("engine_events", result.engine_events);
  if (result.measured_on != MeasuredOn{}) {
    json.key("measured_on").begin_object().field("kind", result.measured_on.kind);
    json.field("words", result.measured_on.words).end_object();
  }
  write(json.key("trace"), result.trace);
  json.key("memory").begin_array();
  for (const MemoryCurve& curve : result.memory.curves) json.raw(line_of(curve));
  json.end_array();
  std::string plan = to_json(result.plan);
  plan.pop_back();  // its line break
  return json.key("plan").raw(plan).end_object().text();
}

static Result result_from(const JsonReader& json) {
  if (!json.has("format")) json.fail("a result file, with \"format\": \"foreshard result\"");
  if (json.at("format").as_string() != "foreshard result") json.at("format").fail("\"foreshard result\"");
  json.at("version").as_int(kVersion, kVersion);
  json.only({"format", "version", "granularity", "folding", "makespan_s", "period_s", "engine_events", "measured_on", "trace",
             "memory", "plan"});
  Result result{.plan = plan_from(json.at("plan"))};
  result.trace = read_trace(json.at("trace"), result.plan, json.at("plan").at("version").as_int() < Plan::kVersion);
  result.memory = read_memory(json.at("memory"), result.plan, result.trace);
  result.granularity = choice<Granularity>(json.at("granularity"));
  result.folding = choice<Folding>(json.at("folding"));
  result.makespan_s = json.at("makespan_s").as_double(0);
  if (json.has("period_s")) result.period_s = json.at("period_s").as_double(0);
  result.engine_events = json.at("engine_events").as_int(0);
  if (const auto device = json.find("measured_on")) {
    device->only({"kind", "words"});
    result.measured_on = {device->at("kind").as_string(), device->at("words").as_string()};
  }
  return result;
}

Result parse_result(const std::string& text, const std::string& file_name) {
  return result_from(JsonReader::parse(text, file_name));
}

Result load_result(const std::string& path) { return result_from(JsonReader::load(path)); }  // the text is gone by then
void save_result(const Result& result, const std::string& path) { write_file(path, to_json(result)); }

}  // namespace foreshard
