// Quantities with units in files and options.
#include <charconv>
#include <cmath>
#include <span>
#include <string_view>

#include "core/base/error.h"
#include "core/json/json.h"

namespace foreshard {

namespace {

// value * times / over. Times and fractions divide, so "3 us" is the double nearest to 3e-6.
struct Unit {
  std::string_view name;
  double times = 1, over = 1;
};

constexpr double kibi = 1024, mebi = kibi * kibi, gibi = mebi * kibi, tebi = gibi * kibi;
constexpr Unit byte_units[] = {{"B"},        {"kB", 1e3},   {"KB", 1e3},   {"MB", 1e6},   {"GB", 1e9},
                               {"TB", 1e12}, {"KiB", kibi}, {"MiB", mebi}, {"GiB", gibi}, {"TiB", tebi}};
constexpr Unit bandwidth_units[] = {{"B/s"},          {"kB/s", 1e3},    {"MB/s", 1e6},    {"GB/s", 1e9},    {"TB/s", 1e12},
                                    {"KiB/s", kibi},  {"MiB/s", mebi},  {"GiB/s", gibi},  {"TiB/s", tebi},  {"b/s", 1, 8},
                                    {"kb/s", 1e3, 8}, {"Mb/s", 1e6, 8}, {"Gb/s", 1e9, 8}, {"Tb/s", 1e12, 8}};
constexpr Unit time_units[] = {{"s"}, {"ms", 1, 1e3}, {"us", 1, 1e6}, {"ns", 1, 1e9}};
constexpr Unit flops_units[] = {{"FLOP/s"},        {"MFLOP/s", 1e6},  {"GFLOP/s", 1e9},
                                {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}, {"EFLOP/s", 1e18}};

struct Quantity {
  double number = 0;
  const Unit* unit = nullptr;  // null: no unit in the text
  double value() const { return unit ? number * unit->times / unit->over : number; }
};

std::string wish(const std::string& what, std::span<const Unit> units) {
  std::string list;
  for (const Unit& u : units) list += (list.empty() ? "" : ", ") + std::string(u.name);
  return what + " of at least 0 with a unit (" + list + ")";
}

// Empty when the text is not a finite number of at least 0 followed by nothing or a unit.
std::optional<Quantity> split(std::string_view text, std::span<const Unit> units) {
  Quantity q;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), q.number);
  if (problem != std::errc() || !std::isfinite(q.number) || q.number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  if (text.empty()) return q;
  for (const Unit& u : units)
    if (u.name == text) q.unit = &u;
  if (!q.unit || !std::isfinite(q.value())) return std::nullopt;
  return q;
}

double read(const JsonReader& json, const std::string& what, std::span<const Unit> units) {
  if (json.is_number()) return json.as_double(0);
  if (!json.is_string()) json.fail(wish(what, units));
  const std::optional<Quantity> q = split(json.as_string(), units);
  if (!q || !q->unit) json.fail(wish(what, units));
  return q->value();
}

// Whole bytes; doubles hold every count below 2^53 = 8 PiB exactly.
std::optional<Bytes> whole_bytes(const std::optional<Quantity>& q) {
  if (!q || q->value() > 9e15) return std::nullopt;
  const double rounded = std::round(q->value());
  if ((!q->unit || q->unit->times == 1) && rounded != q->number) return std::nullopt;  // half a byte
  return Bytes{static_cast<std::int64_t>(rounded)};
}

}  // namespace

Bytes JsonReader::as_bytes() const {
  if (is_number()) return {as_int(0)};
  const std::optional<Quantity> q = is_string() ? split(as_string(), byte_units) : std::nullopt;
  const std::optional<Bytes> bytes = q && q->unit ? whole_bytes(q) : std::nullopt;
  if (!bytes) fail(wish("a size", byte_units));
  return *bytes;
}

BytesPerSecond JsonReader::as_bandwidth() const { return {read(*this, "a bandwidth", bandwidth_units)}; }
Seconds JsonReader::as_seconds() const { return {read(*this, "a time", time_units)}; }
FlopsPerSecond JsonReader::as_flops() const { return {read(*this, "a rate", flops_units)}; }

Bytes parse_bytes(const std::string& text, const std::string& where, const std::string& field) {
  const std::optional<Bytes> bytes = whole_bytes(split(text, byte_units));
  if (!bytes) throw Error(where, field, "\"" + text + "\"", wish("a size", byte_units));
  return *bytes;
}

}  // namespace foreshard
