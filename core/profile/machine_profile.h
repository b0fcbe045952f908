// MachineProfile: what `calibrate` measured on one kind of device. Costs read it instead of datasheets and
// formulas. A file of strict JSON, docs/execution.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "core/profile/learned_costs.h"
#include "core/profile/profile_collectives.h"

namespace foreshard {

// One measured instruction: the sizes of all its shapes, one after the other, and its time alone.
struct ProfileSample {
  std::vector<std::int64_t> dims = {};
  Bytes traffic = {};
  Seconds time = {};
  bool operator==(const ProfileSample&) const = default;
};

// Samples of one kind of compute; `variant` is variant_of(compute).
struct ProfileOp {
  std::string op = {};  // word(Operation)
  Phase phase = Phase::Forward;
  DType dtype = DType::F32;  // of the first shape
  std::string variant = {};
  std::vector<ProfileSample> samples = {};
  bool operator==(const ProfileOp&) const = default;
};

struct ProfileTransfer {
  int ranks = 1;
  Bytes bytes = {};
  Seconds time = {};
  bool operator==(const ProfileTransfer&) const = default;
};

struct MachineProfile {
  static constexpr int kVersion = 2;
  std::string hash = {};         // 16 hexadecimal digits over the text it was read from; not in the file
  std::string device = {};       // the Gpu::name that it is about
  std::string machine = {};      // in words: processor, libraries
  Seconds launch_overhead = {};  // of one instruction that does nothing
  // Between two ranks: a message takes latency + bytes / bandwidth, a collective ring steps of that (fitted to all-reduces). Where there are
  // `collectives` of a class of links, they go before it.
  Seconds link_latency = {};
  BytesPerSecond link_bandwidth = {};
  double collective_share =
      0;  // of the compute units while a collective runs, 0 to 1: computes beside it are 1 / (1 - share) slower
  Bytes outside_memory = {};  // of a rank's device before it allocates anything: context, libraries, kernels; 0: not measured
  std::vector<ProfileTransfer> copies = {};         // inside the device, by size
  std::vector<ProfileTransfer> all_reduces = {};    // by ranks and size; ranks of one process
  std::vector<CollectiveMeasure> collectives = {};  // in the order of comes_before, nothing twice
  std::vector<ProfileOp> ops = {};
  std::optional<LearnedCosts> learned = {};  // factors on predicted costs; such a profile may have nothing else
  bool measured() const { return link_bandwidth.value > 0; }
  bool operator==(const MachineProfile&) const = default;
};

// What tells kernels of one operator apart beside their sizes: the number of shapes, flags and choices among its settings, whether it
// works on a slice, accumulates.
std::string variant_of(const Compute& compute);
std::vector<std::int64_t> dims_of(const Compute& compute);

// Reading back gives the same but for the hash. Throw Error with file, field, found and expected.
std::string to_json(const MachineProfile& profile);
MachineProfile parse_machine_profile(const std::string& text, const std::string& file_name);
MachineProfile load_machine_profile(const std::string& path);

}  // namespace foreshard
