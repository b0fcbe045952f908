// Operations as version 1 of plan files and machine profiles wrote them.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include "core/base/words.h"
#include "core/op/operation_json.h"

namespace foreshard {

namespace {

bool takes(std::vector<std::string>& list, const std::string& word) { return std::erase(list, word) > 0; }
bool any_sets(const std::vector<std::string>& list, const std::string& key) {
  return std::ranges::any_of(list, [&](const std::string& word) { return word.starts_with(key + "="); });
}

// In version 1, some operators share a word; a second word tells them apart.
std::string new_word(const std::string& word, std::vector<std::string>& list) {
  if (word == "matmul") return takes(list, "scores") ? "scores" : takes(list, "values") ? "weighted_values" : word;
  if (word == "clip_scale") return any_sets(list, "growth") ? "judge_overflow" : word;
  if (word != "embedding") return word;
  if (takes(list, "tokens")) return "token_embedding";
  return takes(list, "sample") ? "sample" : "position_embedding";
}

std::string new_key(const std::string& key) { return key == "kv" ? "kv_heads" : key == "stage" ? "piece" : key; }

double number(const std::string& key, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    throw std::invalid_argument(key + "=number");
  return value;
}

template <class T>
bool set(T& setting, const std::string& name, const std::string& key, const std::string& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return name == key && value.empty() ? (setting = true) : false;
  } else if constexpr (std::is_enum_v<T>) {  // "stage=max", or the choice alone: "rmsnorm"
    if (!value.empty() && name != key) return false;
    const std::vector<std::string>& known = words<T>();
    const auto hit = std::find(known.begin(), known.end(), value.empty() ? key : value);
    if (hit != known.end()) setting = static_cast<T>(hit - known.begin());
    return hit != known.end();
  } else {
    if (name != key || value.empty()) return false;
    const double found = number(key, value);
    if (std::is_integral_v<T> && (found != std::floor(found) || found < 0 || found > 0x1p50))
      throw std::invalid_argument(key + "=integer");
    setting = static_cast<T>(found);
    return true;
  }
}

}  // namespace

Operation read_old_operation(const std::string& old_word, const std::string& words, std::string& rest) {
  std::istringstream stream(words);
  std::vector<std::string> list;
  for (std::string word; stream >> word;) list.push_back(word);
  const std::vector<std::string>& known = operation_words();
  const auto hit = std::find(known.begin(), known.end(), new_word(old_word, list));
  if (hit == known.end()) throw std::invalid_argument("the name of an operator");
  Operation operation = operation_of(static_cast<std::size_t>(hit - known.begin()));
  rest.clear();
  for (const std::string& word : list) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string key = new_key(word.substr(0, equals)), value = word.substr(std::min(equals + 1, word.size()));
    bool found = false;
    std::visit(
        [&](auto& op) {
          op.fields(op, [&](const char* name, auto& setting) { found = found || set(setting, name, key, value); });
        },
        operation);
    if (!found) rest += (rest.empty() ? "" : " ") + word;
  }
  return operation;
}

}  // namespace foreshard
