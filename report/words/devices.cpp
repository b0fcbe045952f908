#include "report/words/devices.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace foreshard {

namespace {

constexpr const char* kHost = "host";

// The words of a name in lower case, split at every character that is neither a letter nor a digit.
std::set<std::string> words_of(const std::string& name) {
  std::set<std::string> words;
  std::string word;
  for (const char c : name + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!word.empty()) {
      words.insert(std::move(word));
      word.clear();
    }
  }
  return words;
}

bool has_digit(const std::string& word) {
  return std::ranges::any_of(word, [](unsigned char c) { return std::isdigit(c) != 0; });
}
bool all_digits(const std::string& word) {
  return std::ranges::all_of(word, [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::set<std::string> kinds_of(const Result& result) {
  std::set<std::string> kinds;
  for (const Role& role : result.plan.roles) kinds.insert(role.device_kind);
  return kinds;
}

bool measured(const Result& result) { return result.trace.origin == Origin::Measured; }

// Whether measurement `m` ran on the devices of prediction `p`.
bool measured_as_predicted(const Result& m, const Result& p) {
  const std::set<std::string> kinds = kinds_of(p);
  const std::string& kind = m.measured_on.kind;
  if (kind.empty() || kind == kHost) return kinds == std::set<std::string>{kHost};
  return std::ranges::all_of(kinds, [&](const std::string& gpu) { return gpu != kHost && can_be(kind, gpu); });
}

}  // namespace

bool can_be(const std::string& product, const std::string& gpu) {
  if (product == gpu) return true;
  const std::set<std::string> of_product = words_of(product), of_gpu = words_of(gpu);
  static const std::set<std::string> variants = {"pcie", "nvl", "ada", "pro", "ti", "super", "laptop"};
  const auto has = [](const std::set<std::string>& words, const std::string& word) { return words.contains(word); };
  bool knows_model = false;
  for (const std::string& word : of_gpu) {
    if (!has_digit(word)) continue;
    if (all_digits(word) && word.size() < 4) {  // gigabytes, which not every product name states
      const bool says = std::ranges::any_of(of_product, [](const std::string& w) {
        return w.size() > 2 && w.size() < 5 && w.ends_with("gb") && all_digits(w.substr(0, w.size() - 2));
      });
      if (says && !has(of_product, word + "gb")) return false;
    } else if (knows_model = true; !has(of_product, word)) {
      return false;
    }
  }
  return !knows_model ||
         std::ranges::all_of(variants, [&](const std::string& word) { return has(of_product, word) == has(of_gpu, word); });
}

std::string device_words(const Result& result) {
  if (measured(result)) return result.measured_on.words.empty() ? kUnknownDevice : result.measured_on.words;
  std::string words;
  for (const std::string& kind : kinds_of(result)) words += (words.empty() ? "" : ", ") + kind;
  return words;
}

bool same_device(const Result& a, const Result& b) {
  if (measured(a) && measured(b)) {
    const std::string &x = a.measured_on.kind, &y = b.measured_on.kind;
    return x == y || (x.empty() && measured_as_predicted(b, a)) || (y.empty() && measured_as_predicted(a, b));
  }
  if (measured(a) || measured(b)) return measured(a) ? measured_as_predicted(a, b) : measured_as_predicted(b, a);
  return true;  // two predictions: comparing devices is the purpose
}

}  // namespace foreshard
