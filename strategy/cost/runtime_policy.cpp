#include "strategy/cost/runtime_policy.h"

#include <algorithm>
#include <map>

#include "core/base/data_path.h"
#include "core/base/error.h"
#include "core/json/json.h"
#include "strategy/cost/framework_preset.h"

namespace foreshard {

namespace {

constexpr std::int64_t kMostElements = 1'000'000'000'000;

ParameterStays read_chunks(const JsonReader& json) {
  json.only({"size", "kept", "cap"});
  ChunkRule rule;
  if (const auto size = json.find("size")) rule.chunk = size->as_int(1, kMostElements);
  if (const auto kept = json.find("kept")) rule.kept = kept->as_double(0, 1);
  if (const auto cap = json.find("cap")) {
    if (json.has("kept")) cap->fail("no \"cap\" beside \"kept\"");
    rule.cap_ratio = cap->as_double(0.01, 1);
  }
  return {.rule = rule, .one_size = false};
}

ParameterStays read_layers(const JsonReader& json) {
  json.only({"ahead", "keep", "staging", "prefetch", "live_cap", "reuse_distance"});
  ParameterStays stays{.one_size = false};
  if (json.has("prefetch")) {
    const auto elements = [&](const char* key) { return json.at(key).as_int(0, kMostElements); };
    for (const char* key : {"ahead", "keep", "staging"})
      if (const auto other = json.find(key)) other->fail("no \"" + std::string(key) + "\" beside \"prefetch\"");
    stays.rule = ModuleRule{.persist_threshold = -1,  // all layers are cut
                            .prefetch = elements("prefetch"),
                            .live_cap = elements("live_cap"),
                            .reuse_distance = elements("reuse_distance")};
    return stays;
  }
  BlockRule rule;
  rule.ahead_forward = rule.ahead_backward = static_cast<int>(json.at("ahead").as_int(0, 1000));
  if (const auto keep = json.find("keep")) rule.keep_after_forward = keep->as_bool();
  if (const auto staging = json.find("staging")) rule.staging_in_forward = staging->as_bool();
  stays.rule = rule;
  return stays;
}

ParameterStays read_regions(const JsonReader& json) {
  json.only({"window"});
  return {.rule = RegionRule{.window = static_cast<int>(json.at("window").as_int(0, 1000))}, .one_size = false};
}

RuntimePolicy read_policy(const JsonReader& json, const std::string& name, const std::string& framework,
                          const std::string& file) {
  json.only({"of", "summary", "source", "zero", "layers", "chunks", "regions", "offload", "bucket", "grad_dtype", "overlap"});
  RuntimePolicy policy{.name = name, .of = framework};
  if (const auto of = json.find("of")) policy.of = of->as_string();
  policy.summary = json.at("summary").as_string(), policy.source = json.at("source").as_string();
  policy.zero = static_cast<int>(json.at("zero").as_int(0, 3));
  if (const auto layers = json.find("layers")) policy.layers = read_layers(*layers);
  if (const auto chunks = json.find("chunks")) {
    if (policy.layers) chunks->fail("no \"chunks\" beside \"layers\"");
    policy.layers = read_chunks(*chunks);
  }
  if (const auto regions = json.find("regions")) {
    if (policy.layers) regions->fail("no \"regions\" beside \"layers\" or \"chunks\"");
    policy.layers = read_regions(*regions);
  }
  if (const auto offload = json.find("offload"))
    for (const JsonReader& what : offload->elements()) {
      const std::string word = what.as_choice({"optimizer", "gradients", "parameters"});
      (word == "optimizer"   ? policy.optimizer_on_host
       : word == "gradients" ? policy.gradients_on_host
                             : policy.parameters_on_host) = true;
    }
  if (policy.layers && policy.zero < 3 && !policy.parameters_on_host)
    json.at(json.has("chunks")    ? "chunks"
            : json.has("regions") ? "regions"
                                  : "layers")
        .fail("parameters that are cut or in host memory: \"zero\": 3, or \"parameters\" in \"offload\"");
  if (const auto bucket = json.find("bucket")) policy.bucket = bucket->as_int(1, kMostElements);
  if (const auto grad = json.find("grad_dtype")) {
    grad->as_choice({"fp32"});
    policy.grad_dtype = DType::F32;
  }
  if (const auto overlap = json.find("overlap")) policy.overlap = parse_overlap(overlap->as_string(), file);
  return policy;
}

std::vector<RuntimePolicy> load_policies() {
  std::map<std::string, RuntimePolicy> found;
  for (const std::string& framework : framework_names()) {
    const std::string path = data_directory() + "/frameworks/" + framework + ".json";
    for (RuntimePolicy& policy : parse_policies(read_file(path), framework, path)) {
      const std::string name = policy.name;
      if (!found.try_emplace(name, std::move(policy)).second)
        throw Error(path, "policies", "\"" + name + "\"", "a name that no other file has");
    }
  }
  std::vector<RuntimePolicy> policies;
  for (const std::string& name : policy_names()) {
    if (name == "auto" || name == "none") continue;
    const auto at = found.find(name);
    if (at == found.end()) throw Error(data_directory() + "/frameworks", "policies", "none", "a policy " + name);
    policies.push_back(at->second);
  }
  return policies;
}

}  // namespace

std::vector<RuntimePolicy> parse_policies(const std::string& text, const std::string& framework, const std::string& file_name) {
  std::vector<RuntimePolicy> policies;
  const JsonReader json = JsonReader::parse(text, file_name);
  if (const auto section = json.find("policies"))
    for (const auto& [name, policy] : section->members()) {
      if (std::ranges::find(policy_names(), name) == policy_names().end())
        policy.fail("a name that --policy knows (core/strategy/strategy.cpp, policy_names)");
      policies.push_back(read_policy(policy, name, framework, file_name));
    }
  return policies;
}

const std::vector<RuntimePolicy>& runtime_policies() {
  static const std::vector<RuntimePolicy> policies = load_policies();
  return policies;
}

const RuntimePolicy* find_policy(const std::string& name) {
  if (name == "auto" || name == "none") return nullptr;  // without reading the files
  const auto& all = runtime_policies();
  const auto at = std::ranges::find(all, name, &RuntimePolicy::name);
  FS_ASSERT(at != all.end());
  return &*at;
}

bool alternates(const Strategy& s) {
  return s.pp == 1 && s.virtual_stages == 1 && s.pipeline.schedule.value_or(Schedule::OneFOneB) == Schedule::OneFOneB;
}

static bool is_implied(const RuntimePolicy& policy, const Strategy& s) {
  const OffloadChoice& has = s.offload;
  return policy.zero == s.zero.stage && (alternates(s) || !policy.keeps()) &&
         (!policy.optimizer_on_host || has.optimizer == Space::PinnedHost) &&
         (!policy.gradients_on_host || has.gradients == Space::PinnedHost) &&
         (!policy.parameters_on_host || has.parameters == Space::PinnedHost);
}

const RuntimePolicy* policy_of(const Strategy& strategy) {
  if (strategy.policy != "auto") return find_policy(strategy.policy);
  if (!strategy.stages.empty()) return nullptr;
  for (const std::string& name : framework_preset(strategy.framework).implies)
    if (const RuntimePolicy* policy = find_policy(name); is_implied(*policy, strategy)) return policy;
  return nullptr;
}

}  // namespace foreshard
