#include "strategy/kernels/attention_rates.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/base/data_path.h"
#include "core/base/error.h"
#include "core/json/json.h"
#include "strategy/kernels/kernel_rates.h"
#include "strategy/kernels/machine_constants.h"
#include "strategy/kernels/shipped_tables.h"

namespace foreshard {

namespace {

AttentionLine parse_line(const JsonReader& json) {
  json.only({"mask", "window", "batch", "heads", "kv_heads", "dim", "value_dim", "keys", "forward_ms", "backward_ms"});
  const std::string mask = json.at("mask").as_choice({"causal", "full", "window"});
  AttentionLine line{.mask = mask == "causal" ? AttentionMask::Causal
                             : mask == "full" ? AttentionMask::Full
                                              : AttentionMask::Window};
  const auto size = [&](const char* name) { return json.at(name).as_int(1, 1'000'000); };
  if (line.mask == AttentionMask::Window) line.window = size("window");
  line.batch = size("batch"), line.heads = size("heads"), line.kv_heads = size("kv_heads");
  line.dim = size("dim"), line.value_dim = size("value_dim");
  line.keys = json.at("keys").as_ints(1);
  if (line.keys.empty() || !std::ranges::is_sorted(line.keys, std::less_equal<>{}))
    json.at("keys").fail("rising numbers of keys");
  const auto times = [&](const char* name) {
    std::vector<Seconds> all;
    for (const JsonReader& time : json.at(name).elements()) all.push_back({time.as_double(0, 1e6) * 1e-3});
    if (all.size() != line.keys.size()) json.at(name).fail("a time for each number of keys");
    return all;
  };
  line.forward = times("forward_ms"), line.backward = times("backward_ms");
  return line;
}

}  // namespace

AttentionMask mask_of(const AttentionWork& work) {
  if (work.window > 0 && work.window < work.keys) return AttentionMask::Window;
  const bool chunked = work.chunk > 0 && work.chunk < work.keys;
  return work.causal || chunked ? AttentionMask::Causal : AttentionMask::Full;
}

AttentionTable parse_attention_table(const std::string& text, const std::string& file_name) {
  const JsonReader json = JsonReader::parse(text, file_name);
  json.only({"gpu", "source", "lines"});
  AttentionTable table{.gpu = json.at("gpu").as_string(), .source = json.at("source").as_string()};
  for (const JsonReader& line : json.at("lines").elements()) table.lines.push_back(parse_line(line));
  return table;
}

AttentionWork work_of(const AttentionLine& line, std::size_t point, bool backward) {
  return {.batch = line.batch,
          .queries = line.keys[point],
          .keys = line.keys[point],
          .heads = line.heads,
          .kv_heads = line.kv_heads,
          .dim = line.dim,
          .values = line.value_dim,
          .causal = line.mask != AttentionMask::Full,
          .backward = backward,
          .window = line.window};
}

Seconds measured_attention(const Gpu& gpu, const AttentionLine& line, std::size_t point, bool backward) {
  const Seconds whole = (backward ? line.backward : line.forward)[point];
  if (whole.value <= 0) return {};
  return whole - gpu.launch_overhead - attention_passes(gpu, work_of(line, point, backward), FlashKernel::Newest);
}

AttentionRates::AttentionRates(const std::vector<AttentionTable>& tables) {
  for (const AttentionTable& table : tables) {
    const Gpu gpu = load_gpu(table.gpu);
    Surface surface{.gpu = table.gpu, .family = &machine_constants(gpu)};
    for (const AttentionLine& line : table.lines)
      for (const bool backward : {false, true}) {
        Curve curve{.mask = line.mask,
                    .backward = backward,
                    .window = logarithm(line.window),
                    .size = logarithm(line.dim + line.value_dim)};
        for (std::size_t point = 0; point < line.keys.size(); ++point) {
          const Seconds measured = measured_attention(gpu, line, point, backward);
          if (measured.value <= 0) continue;
          curve.keys.push_back(logarithm(line.keys[point]));
          curve.excess.push_back(std::log(measured.value / attention_formula(gpu, work_of(line, point, backward)).value));
        }
        if (!curve.keys.empty()) surface.curves.push_back(std::move(curve));
      }
    std::ranges::stable_sort(surface.curves, {}, &Curve::size);
    surfaces_.push_back(std::move(surface));
  }
}

double AttentionRates::excess_of(const Surface& surface, const AttentionWork& work, AttentionMask mask) {
  const std::int64_t seen = work.chunk > 0 ? std::min(work.chunk, work.keys) : work.keys;
  std::vector<double> sizes, values;
  double window = 0;
  for (const Curve& curve : surface.curves) {
    if (curve.mask != mask || curve.backward != work.backward) continue;
    sizes.push_back(curve.size), values.push_back(interpolated(curve.keys, curve.excess, logarithm(seen)));
    window = curve.window;
  }
  const double excess = sizes.empty() ? 0 : interpolated(sizes, values, logarithm(work.dim + work.values));
  if (mask != AttentionMask::Window) return excess;
  const double causal = excess_of(surface, work, AttentionMask::Causal);
  if (sizes.empty()) return causal;
  return interpolated({window, std::max(window, logarithm(work.keys))}, {excess, causal}, logarithm(work.window));
}

double AttentionRates::ratio(const Gpu& gpu, const AttentionWork& work) const {
  const auto own = std::ranges::find(surfaces_, gpu.name, &Surface::gpu);
  if (own != surfaces_.end()) return std::exp(excess_of(*own, work, mask_of(work)));
  double sum = 0;
  int count = 0;
  for (const Surface& surface : surfaces_) {
    if (surface.family != &machine_constants(gpu)) continue;
    sum += excess_of(surface, work, mask_of(work));
    ++count;
  }
  return count > 0 ? std::exp(sum / count) : 1;
}

const std::vector<AttentionTable>& shipped_attention_tables() {
  static const std::vector<AttentionTable> tables = shipped_tables("accuracy/attention_rates", parse_attention_table);
  return tables;
}

const AttentionRates& attention_rates() {
  static const AttentionRates rates(shipped_attention_tables());
  return rates;
}

}  // namespace foreshard
