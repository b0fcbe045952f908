// Version 1 of plan files: the words of "attributes".
#include "core/plan/plan_json_version1.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "core/op/operation_json.h"

namespace foreshard::version1 {

namespace {

std::string attributes_of(const JsonReader& json) { return json.has("attributes") ? json.at("attributes").as_string() : ""; }

// Takes "slice=NAME" off the end: names of groups may have spaces.
GroupId take_slice(const JsonReader& json, const std::vector<std::string>& groups, std::string& attributes) {
  const std::string key = "slice=";
  const std::size_t at = (" " + attributes).find(" " + key);
  if (at == std::string::npos) return {};
  const auto hit = std::find(groups.begin(), groups.end(), attributes.substr(at + key.size()));
  if (hit == groups.end()) json.at("attributes").fail("the name of a group after slice=");
  attributes.erase(at > 0 ? at - 1 : 0);
  return {static_cast<std::int32_t>(hit - groups.begin())};
}

// The words one by one; `read` says whether it knows the word.
template <class Read>
void each_word(const JsonReader& json, const std::string& text, Read read) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!word.empty() && !read(word)) json.at("attributes").fail("attributes that the instruction has, not \"" + word + "\"");
    at = end + 1;
  }
}

bool is_value(const std::string& word, const std::string& key, std::string& value) {
  if (!word.starts_with(key + "=")) return false;
  value = word.substr(key.size() + 1);
  return true;
}

Operation operation(const JsonReader& json, const std::string& words, std::string& rest) {
  try {
    return read_old_operation(json.at("op").as_string(), words, rest);
  } catch (const std::invalid_argument& wrong) {
    json.at(json.has("attributes") ? "attributes" : "op").fail(wrong.what());
  }
}

}  // namespace

Attributes::Attributes(const JsonReader& plan) {
  if (!plan.has("groups")) return;
  for (const JsonReader& group : plan.at("groups").elements())
    groups.push_back(group.has("name") ? group.at("name").as_string() : "");
}

void Attributes::read(const JsonReader& json, Compute& what) const {
  std::string words = attributes_of(json), rest;
  what.slice = take_slice(json, groups, words);
  what.op = operation(json, words, rest);
  each_word(json, rest, [&](const std::string& word) {
    std::string scale;
    if (word == "accumulate_weights") return what.accumulate_weights = true;
    if (word == "dynamic_scale") return what.dynamic_scale = true;
    if (!is_value(word, "loss_scale", scale)) return false;
    what.loss_scale = std::atof(scale.c_str());
    return true;
  });
}

void Attributes::read(const JsonReader& json, HostCompute& what) const {
  std::string rest;
  what.op = operation(json, attributes_of(json), rest);
}

void Attributes::read(const JsonReader& json, Collective& what) const {
  std::string words = attributes_of(json);
  what.slice = take_slice(json, groups, words);
  each_word(json, words, [&](const std::string& word) {
    std::string servers;
    if (word == "accumulate") return what.accumulate = true;
    if (word == "max") what.combine = Combine::Max;
    if (word == "mean") what.combine = Combine::Mean;
    if (is_value(word, "servers", servers)) return (what.servers = std::atoi(servers.c_str())) > 0;
    return word == "max" || word == "mean";
  });
}

}  // namespace foreshard::version1
