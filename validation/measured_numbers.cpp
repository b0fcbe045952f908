#include "validation/measured_numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "core/base/count_text.h"
#include "core/base/error.h"

namespace foreshard {

// The largest of the shipped tables: 128 layers, hidden 25600, 1e6 tokens, 11616 GPUs, pp 64, vpp 24, batch 65536.
static constexpr NumberColumn kColumns[] = {{"layers", true, 1, 1024},
                                            {"hidden", true, 1, 1 << 21},
                                            {"ffn_hidden", true, 1, 1 << 21},
                                            {"heads", true, 1, 1 << 14},
                                            {"kv_heads", true, 1, 1 << 14},
                                            {"head_dim", true, 1, 1 << 14},
                                            {"seq_len", true, 1, 1 << 24},
                                            {"vocab", true, 1, 1 << 24},
                                            {"params_b", false, 1e-9, 1e6},
                                            {"gpus_per_node", true, 1, 1 << 14},
                                            {"inter_link_gbps_per_gpu", false, 1e-3, 1e6},
                                            {"num_gpus", true, 1, 1 << 20},
                                            {"tp", true, 1, 4096},
                                            {"pp", true, 1, 4096},
                                            {"vpp", true, 1, 4096},
                                            {"dp", true, 1, 1 << 20},
                                            {"cp", true, 1, 4096},
                                            {"ep", true, 1, 4096},
                                            {"micro_batch", true, 1, 1 << 20},
                                            {"global_batch", true, 1, 1 << 26},
                                            {"measured_value", false, 1e-12, 1e15},
                                            // words of framework_flags
                                            {"--num-experts", true, 1, 1 << 14},
                                            {"--moe-router-topk", true, 1, 1 << 14},
                                            {"--moe-expert-capacity-factor", false, 0, 1e6}};
static constexpr NumberColumn kFlag = {"", true, 0, 1 << 21};  // other numbers there

const NumberColumn& number_column(const std::string& column) {
  const auto* found = std::ranges::find_if(kColumns, [&](const NumberColumn& known) { return column == known.name; });
  if (found != std::end(kColumns)) return *found;
  FS_ASSERT(column.starts_with("--"));
  return kFlag;
}

std::optional<double> number_in(const std::string& text, const NumberColumn& column) {
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || !(value >= column.least && value <= column.most)) return {};
  if (column.whole && value != std::floor(value)) return {};
  return value;
}

static std::string limit_text(double value) {
  if (value >= 1 && value <= 1e9) return count_text(static_cast<std::int64_t>(value));
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, 6);
  return {digits, end.ptr};
}

std::string range_text(const NumberColumn& column) {
  return std::string(column.whole ? "a whole number" : "a number") + " from " + limit_text(column.least) + " to " +
         limit_text(column.most);
}

int leading_int(const std::string& text) {
  constexpr int kMost = 1'000'000'000;
  int value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem == std::errc::result_out_of_range) return text.starts_with("-") ? 0 : kMost;
  return std::clamp(value, 0, kMost);
}

}  // namespace foreshard
