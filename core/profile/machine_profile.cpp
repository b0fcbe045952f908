#include "core/profile/machine_profile.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <sstream>
#include <stdexcept>
#include <tuple>

#include "core/base/error.h"
#include "core/base/text_hash.h"
#include "core/json/json.h"
#include "core/op/operation_json.h"
#include "core/plan/plan_words.h"

namespace foreshard {

namespace {

constexpr double kMostSeconds = 1e6;

template <class Enum>
Enum choice(const JsonReader& json) {
  const std::vector<std::string>& known = words<Enum>();
  return static_cast<Enum>(std::find(known.begin(), known.end(), json.as_choice(known)) - known.begin());
}

Seconds positive_seconds(const JsonReader& json) {
  const double value = json.as_double(0, kMostSeconds);
  if (value <= 0) json.fail("more than 0 seconds");
  return {value};
}

ProfileSample read_sample(const JsonReader& json) {
  json.only({"dims", "traffic", "seconds"});
  const JsonReader dims = json.at("dims");
  if (dims.size() > 64) dims.fail("at most 64 sizes");
  return {.dims = dims.as_ints(0, std::int64_t{1} << 50U),
          .traffic = {json.at("traffic").as_int(0, std::int64_t{1} << 60U)},
          .time = positive_seconds(json.at("seconds"))};
}

std::string variant_text(std::size_t shapes, const Operation& op, bool dynamic, bool slice, bool weights, bool accumulate) {
  return std::to_string(shapes) + (dynamic ? " dynamic_scale" : "") + kernel_words(op) + (slice ? " slice" : "") +
         (weights ? " accumulate_weights" : "") + (accumulate ? " accumulate" : "");
}

// In version 1, some operators share a name and differ in the variant.
void rename(ProfileOp& op, const JsonReader& json) {
  std::istringstream words(op.variant);
  std::set<std::string> flags;
  std::string settings;
  std::size_t shapes = 0;
  words >> shapes;
  for (std::string word; words >> word;) {
    if (word == "p") word = "p=1";
    const bool flag = word == "dynamic_scale" || word == "slice" || word == "accumulate_weights" || word == "accumulate";
    if (flag)
      flags.insert(word);
    else
      settings += " " + word;
  }
  try {
    const Operation named = read_old_operation(op.op, settings, settings);
    op.op = word(named);
    op.variant = variant_text(shapes, named, flags.contains("dynamic_scale"), flags.contains("slice"),
                              flags.contains("accumulate_weights"), flags.contains("accumulate"));
  } catch (const std::invalid_argument& wrong) {
    json.at("op").fail(wrong.what());
  }
}

ProfileOp read_op(const JsonReader& json, bool version1) {
  json.only({"op", "phase", "dtype", "variant", "joined", "samples"});
  ProfileOp op{.op = version1 ? json.at("op").as_string() : json.at("op").as_choice(operation_words()),
               .phase = choice<Phase>(json.at("phase")),
               .dtype = choice<DType>(json.at("dtype")),
               .variant = json.at("variant").as_string(),
               .joined = json.has("joined") && json.at("joined").as_bool()};
  if (version1) rename(op, json);
  const JsonReader samples = json.at("samples");
  if (samples.size() == 0) samples.fail("at least one sample");
  for (const JsonReader& sample : samples.elements()) {
    op.samples.push_back(read_sample(sample));
    if (op.samples.back().dims.size() != op.samples.front().dims.size())
      sample.at("dims").fail("as many sizes as the first sample has");
  }
  return op;
}

std::vector<ProfileTransfer> read_transfers(const JsonReader& json, bool ranks) {
  std::vector<ProfileTransfer> all;
  for (const JsonReader& entry : json.elements()) {
    if (ranks)
      entry.only({"ranks", "bytes", "seconds"});
    else
      entry.only({"bytes", "seconds"});
    all.push_back({.ranks = ranks ? static_cast<int>(entry.at("ranks").as_int(2, 1'000'000)) : 1,
                   .bytes = {entry.at("bytes").as_int(1, std::int64_t{1} << 50U)},
                   .time = positive_seconds(entry.at("seconds"))});
    if (all.size() > 1 &&
        std::pair(all[all.size() - 2].ranks, all[all.size() - 2].bytes) >= std::pair(all.back().ranks, all.back().bytes))
      entry.at("bytes").fail("more than the entry before, so that sizes grow");
  }
  return all;
}

void write_transfers(JsonWriter& json, const char* name, const std::vector<ProfileTransfer>& all, bool ranks) {
  json.key(name).begin_array();
  for (const ProfileTransfer& entry : all) {
    JsonWriter line(0);
    line.begin_object();
    if (ranks) line.field("ranks", entry.ranks);
    json.raw(line.field("bytes", entry.bytes.value).field("seconds", entry.time.value).end_object().text());
  }
  json.end_array();
}

}  // namespace

std::string variant_of(const Compute& compute) {
  return variant_text(compute.shapes.size(), compute.op, compute.dynamic_scale, compute.slice.valid(),
                      compute.accumulate_weights, compute.accumulate);
}

std::vector<std::int64_t> dims_of(const Compute& compute) {
  std::vector<std::int64_t> dims;
  for (const Shape& shape : compute.shapes) dims.insert(dims.end(), shape.dims.begin(), shape.dims.end());
  return dims;
}

std::string to_json(const MachineProfile& profile) {
  JsonWriter json;
  json.begin_object().field("version", MachineProfile::kVersion);
  json.field("device", profile.device).field("machine", profile.machine);
  if (profile.learned) write_learned(json, *profile.learned);
  if (profile.learned && !profile.measured()) return json.end_object().text();
  json.field("launch_overhead", profile.launch_overhead.value);
  json.field("link_latency", profile.link_latency.value).field("link_bandwidth", profile.link_bandwidth.value);
  json.field("collective_share", profile.collective_share).field("outside_memory", profile.outside_memory.value);
  write_transfers(json, "copies", profile.copies, false);
  write_transfers(json, "all_reduces", profile.all_reduces, true);
  write_collectives(json, profile.collectives);
  json.key("ops").begin_array();
  for (const ProfileOp& op : profile.ops) {
    json.begin_object().field("op", op.op).field("phase", word(op.phase)).field("dtype", word(op.dtype));
    json.field("variant", op.variant);
    if (op.joined) json.field("joined", true);
    json.key("samples").begin_array();
    for (const ProfileSample& sample : op.samples) {
      JsonWriter line(0);
      line.begin_object().key("dims").begin_array();
      for (const std::int64_t dim : sample.dims) line.value(dim);
      json.raw(line.end_array().field("traffic", sample.traffic.value).field("seconds", sample.time.value).end_object().text());
    }
    json.end_array().end_object();
  }
  return json.end_array().end_object().text();
}

MachineProfile parse_machine_profile(const std::string& text, const std::string& file_name) {
  const JsonReader json = JsonReader::parse(text, file_name);
  json.only({"version", "device", "machine", "launch_overhead", "link_latency", "link_bandwidth", "collective_share",
             "outside_memory", "copies", "all_reduces", "collectives", "ops", "learned"});
  const bool version1 = json.at("version").as_int(1, MachineProfile::kVersion) == 1;
  MachineProfile profile{
      .hash = text_hash(text), .device = json.at("device").as_string(), .machine = json.at("machine").as_string()};
  if (profile.device.empty()) json.at("device").fail("the name of a device");
  if (json.has("learned")) profile.learned = read_learned(json.at("learned"));
  if (profile.learned && !json.has("link_bandwidth")) {  // nothing was measured kernel by kernel
    json.only({"version", "device", "machine", "learned"});
    return profile;
  }
  profile.launch_overhead = {json.at("launch_overhead").as_double(0, kMostSeconds)};
  profile.link_latency = {json.at("link_latency").as_double(0, kMostSeconds)};
  profile.link_bandwidth = {json.at("link_bandwidth").as_double(1, 1e18)};
  // Optional members.
  if (json.has("collective_share")) profile.collective_share = json.at("collective_share").as_double(0, 0.99);
  if (json.has("outside_memory")) profile.outside_memory = {json.at("outside_memory").as_int(0, std::int64_t{1} << 40U)};
  if (json.has("collectives")) profile.collectives = read_collectives(json.at("collectives"));
  profile.copies = read_transfers(json.at("copies"), false);
  profile.all_reduces = read_transfers(json.at("all_reduces"), true);
  std::set<std::tuple<std::string, Phase, DType, std::string, bool>> known;
  for (const JsonReader& entry : json.at("ops").elements()) {
    profile.ops.push_back(read_op(entry, version1));
    const ProfileOp& op = profile.ops.back();
    if (!known.emplace(op.op, op.phase, op.dtype, op.variant, op.joined).second)
      entry.at("variant").fail("an op that is not listed yet");
  }
  return profile;
}

MachineProfile load_machine_profile(const std::string& path) { return parse_machine_profile(read_file(path), path); }

}  // namespace foreshard
