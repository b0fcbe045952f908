// Numbers of values (check_plan_values.cpp), and classes of values whose gradients are one. Internal to core/check.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

namespace foreshard {

using ValueId = std::uint64_t;  // 0: not known

inline ValueId mixed(ValueId a, ValueId b) {
  ValueId x = a * 0x9E3779B97F4A7C15ULL + b + 0x632BE59BD9B4E019ULL;
  x = (x ^ (x >> 29U)) * 0xBF58476D1CE4E5B9ULL;
  x ^= x >> 32U;
  return x == 0 ? 1 : x;
}
inline ValueId mixed(ValueId a, const std::string& text) {
  for (const char c : text) a = mixed(a, static_cast<unsigned char>(c));
  return a;
}

// Union-find over values whose gradients are one.
class ValueClasses {
 public:
  ValueId of(ValueId value) {
    ValueId top = value;
    for (auto up = parents_.find(top); up != parents_.end(); up = parents_.find(top)) top = up->second;
    while (value != top) value = std::exchange(parents_[value], top);
    return top;
  }
  void join(ValueId a, ValueId b) {
    if (a == 0 || b == 0) return;
    a = of(a), b = of(b);
    if (a != b) parents_[b] = a;  // the older one names the class
  }

 private:
  std::unordered_map<ValueId, ValueId> parents_;
};

}  // namespace foreshard
