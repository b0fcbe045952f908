#include "exec/calibrate/calibrate.h"

#include <algorithm>
#include <map>
#include <utility>

#include "exec/calibrate/calibrate_host.h"
#include "exec/interpreter/execute.h"

namespace foreshard {

namespace {

// Collects measured times of instructions by kind (op, phase, number format, variant, joined) and by size (sizes, memory traffic).
class SampleBook {
 public:
  void add(const Compute& what, Seconds time, bool joined) {
    if (what.shapes.empty() || time.value <= 0) return;
    times_[{word(what.op), what.phase, what.shapes.front().dtype, variant_of(what), joined}][{dims_of(what), what.traffic}]
        .push_back(time.value);
  }

  // If instructions of one kind have different numbers of sizes, only the number with the most samples is kept.
  std::vector<ProfileOp> ops() const {
    std::vector<ProfileOp> all;
    for (const auto& [kind, sizes] : times_) {
      const auto& [op, phase, dtype, variant, joined] = kind;
      std::map<std::size_t, std::size_t> lengths;
      for (const auto& [size, times] : sizes) ++lengths[size.first.size()];
      const auto most = std::max_element(lengths.begin(), lengths.end(), [](auto& a, auto& b) { return a.second < b.second; });
      ProfileOp row{.op = op, .phase = phase, .dtype = dtype, .variant = variant, .joined = joined};
      for (const auto& [size, times] : sizes)
        if (size.first.size() == most->first) row.samples.push_back({size.first, size.second, {mean(times)}});
      all.push_back(std::move(row));
    }
    return all;
  }

  // Each value is the median over the steps of a run. Equal instructions of a plan differ, because the instructions before them leave the
  // caches warm or cold. Predictions sum over many instructions, so the mean is right; a median would drop the cold ones.
  static double mean(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  }

 private:
  using Kind = std::tuple<std::string, Phase, DType, std::string, bool>;
  using Size = std::pair<std::vector<std::int64_t>, Bytes>;
  std::map<Kind, std::map<Size, std::vector<double>>> times_;
};

std::vector<std::int64_t> powers_of_two(std::int64_t least, std::int64_t largest) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = least; size <= largest; size *= 2) sizes.push_back(size);
  return sizes;
}

// Fits latency and bandwidth to the all-reduces of two ranks: time = 2 latency + bytes / bandwidth, as a ring of two has two steps that
// together send the bytes once. Least squares of the relative error, so that small sizes count as much as large ones.
void fit_link(MachineProfile& profile) {
  double aa = 0, ab = 0, bb = 0, a = 0, b = 0;
  for (const ProfileTransfer& at : profile.all_reduces) {
    if (at.ranks != 2) continue;
    const double x = 2 / at.time.value, y = static_cast<double>(at.bytes.value) / at.time.value;
    aa += x * x, ab += x * y, bb += y * y, a += x, b += y;
  }
  const double determinant = aa * bb - ab * ab;
  if (determinant <= 0) return;
  profile.link_latency = {std::max((a * bb - b * ab) / determinant, 1e-9)};
  profile.link_bandwidth = {1 / std::max((b * aa - a * ab) / determinant, 1e-13)};
}

class HostMeasures : public DeviceMeasures {
 public:
  void products(DType dtype, std::int64_t rows, const std::vector<std::int64_t>& sizes,
                const std::function<void(const Compute&, Seconds)>& tell) override {
    measure_products(dtype, rows, sizes, tell);
  }
  void instructions(const Plan& plan, int steps, const TellCompute& tell) override {
    const auto answer =
        execute(plan, {.steps = std::max(steps, 2), .time = TimeMode::Emulated, .patience = std::chrono::milliseconds(60'000)});
    const auto* done = std::get_if<Execution>(&answer);
    if (!done) throw Error(std::get<Infeasible>(answer).reason);
    for (const Span& span : done->result.trace.spans) {
      const Role& role = plan.roles[done->result.trace.classes[span.who.index()].role.index()];
      const Segment& segment = plan.segments[role.actions[static_cast<std::size_t>(span.action)].segment.index()];
      const auto* compute = std::get_if<Compute>(&segment.instructions[static_cast<std::size_t>(span.instruction)].what);
      if (compute) tell(*compute, to_seconds(span.end - span.begin), false);
    }
  }
  Seconds start() override { return measure_start(); }
  std::vector<ProfileTransfer> copies() override { return measure_copies(); }
  std::vector<ProfileTransfer> all_reduces() override { return measure_all_reduces(); }
  std::string machine() override { return machine_words(); }
};

// The measurements of one calibration, and what they have found so far.
class Calibration {
 public:
  Calibration(const std::vector<Plan>& probes, const CalibrateOptions& options, DeviceMeasures& measures)
      : probes_(probes), options_(options), measures_(measures), profile_{.device = options.device} {}

  bool run() {  // false: cancelled
    profile_.machine = measures_.machine();
    profile_.outside_memory = measures_.outside_memory();
    if (!goes_on(0)) return false;
    // First what is short: a profile without links is none, one without some of the instructions is.
    profile_.launch_overhead = measures_.start();
    profile_.copies = measures_.copies();
    if (!goes_on(1)) return false;
    profile_.all_reduces = measures_.all_reduces();
    fit_link(profile_);
    profile_.collective_share = measures_.collective_share();
    if (!goes_on(1)) return false;
    for (const DType dtype : options_.dtypes)
      for (const std::int64_t rows : sizes_) {
        measures_.products(dtype, rows, sizes_, [this](const Compute& what, Seconds time) { book_.add(what, time, false); });
        if (!goes_on(0.25)) return false;
      }
    for (const Plan& probe : probes_) {
      measure(probe);
      if (!goes_on(1)) return false;
    }
    return true;
  }
  MachineProfile found() const {
    MachineProfile profile = profile_;
    profile.ops = book_.ops();
    return profile;
  }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void measure(const Plan& probe) {
    try {
      measures_.instructions(probe, options_.steps,
                             [this](const Compute& what, Seconds time, bool joined) { book_.add(what, time, joined); });
      failed_ = false;
    } catch (const DeviceError& error) {
      if (std::exchange(failed_, true)) throw;
      notes_.push_back(std::string("the rest of a probe is not measured: ") + error.what());
    }
  }
  bool goes_on(double part) {
    done_ += part;
    if (options_.progress) options_.progress(std::min(done_ / parts_, 1.0));
    return !options_.cancel || !options_.cancel->load();
  }

  const std::vector<Plan>& probes_;
  const CalibrateOptions& options_;
  DeviceMeasures& measures_;
  MachineProfile profile_;
  SampleBook book_ = {};
  std::vector<std::string> notes_ = {};
  bool failed_ = false;  // the last probe
  const std::vector<std::int64_t> sizes_ = powers_of_two(options_.least_product, options_.largest_product);
  const double parts_ =
      static_cast<double>(probes_.size()) + static_cast<double>(options_.dtypes.size() * sizes_.size()) / 4 + 2;
  double done_ = 0;
};

}  // namespace

std::optional<MachineProfile> calibrate(const std::vector<Plan>& probes, const CalibrateOptions& options,
                                        std::vector<std::string>* notes) {
  HostMeasures host;
  DeviceMeasures& measures = options.measures ? *options.measures : host;
  Calibration calibration(probes, options, measures);
  try {
    if (!calibration.run()) return {};
  } catch (const DeviceError&) {
    if (const MachineProfile found = calibration.found(); options.keep && found.measured()) options.keep(found);
    throw;
  }
  if (notes) {
    *notes = calibration.notes();
    for (std::string& note : measures.notes()) notes->push_back(std::move(note));
  }
  return calibration.found();
}

}  // namespace foreshard
