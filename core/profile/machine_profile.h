// MachineProfile: costs that `calibrate` measured on one kind of device. The cost model uses them instead of datasheets and formulas. The
// file is strict JSON (docs/execution.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "core/profile/learned_costs.h"
#include "core/profile/profile_collectives.h"

namespace foreshard {

// One measured Compute: dims_of(compute), memory traffic and isolated time.
struct ProfileSample {
  std::vector<std::int64_t> dims = {};
  Bytes traffic = {};
  Seconds time = {};
  bool operator==(const ProfileSample&) const = default;
};

// The samples of one kind of Compute, which differ in their sizes only.
struct ProfileOp {
  std::string op = {};  // word(Operation)
  Phase phase = Phase::Forward;
  DType dtype = DType::F32;  // of the first shape
  std::string variant = {};  // variant_of(compute)
  bool joined = false;  // of a product together with its GELU, as one (core/plan/joined_products.h); sizes are the product's
  std::vector<ProfileSample> samples = {};
  bool operator==(const ProfileOp&) const = default;
};

struct ProfileTransfer {  // a copy (ranks 1) or an all-reduce of `bytes`
  int ranks = 1;
  Bytes bytes = {};
  Seconds time = {};
  bool operator==(const ProfileTransfer&) const = default;
};

struct MachineProfile {
  static constexpr int kVersion = 2;
  std::string hash = {};         // text_hash of the text that it was read from; not in the file
  std::string device = {};       // Gpu::name of the measured device
  std::string machine = {};      // in words: processor, libraries
  Seconds launch_overhead = {};  // of one instruction that does nothing
  // Between two ranks: a message takes latency + bytes / bandwidth, and a collective is a ring of such messages. Fitted to all-reduces. For
  // classes of links with measurements in `collectives`, those are used instead.
  Seconds link_latency = {};
  BytesPerSecond link_bandwidth = {};
  double collective_share =
      0;  // share of compute units that a collective takes, 0 to 1: concurrent computation takes 1 / (1 - share) times as long
  // Device memory in use before a rank allocates anything (context, libraries, kernels); 0: not measured.
  Bytes outside_memory = {};
  std::vector<ProfileTransfer> copies = {};         // inside the device, by size
  std::vector<ProfileTransfer> all_reduces = {};    // by ranks and size; ranks of one process
  std::vector<CollectiveMeasure> collectives = {};  // ordered by comes_before, without duplicates
  std::vector<ProfileOp> ops = {};
  std::optional<LearnedCosts> learned = {};  // factors on predicted costs; a profile may consist of these only
  bool measured() const { return link_bandwidth.value > 0; }
  bool operator==(const MachineProfile&) const = default;
};

// What selects a kernel of the operator besides sizes, as text: number of shapes, kernel_words, and whether it works on a slice or
// accumulates.
std::string variant_of(const Compute& compute);
std::vector<std::int64_t> dims_of(const Compute& compute);  // the dimensions of all its shapes, concatenated

// What to_json writes reads back equal except for `hash`. Throw Error with file, field, value found and what was expected.
std::string to_json(const MachineProfile& profile);
MachineProfile parse_machine_profile(const std::string& text, const std::string& file_name);
MachineProfile load_machine_profile(const std::string& path);

}  // namespace foreshard
