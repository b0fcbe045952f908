// Measured times of flash attention, a file per GPU in accuracy/attention_rates. As those of products (kernel_rates.h) they are kept as ratios
// to the formula (attention_formula.h), which carries on where no measurement reaches. docs/cost-model.md, "Flash attention".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/cluster/cluster.h"
#include "strategy/kernels/attention_formula.h"

namespace foreshard {

enum class AttentionMask : std::uint8_t { Causal, Full, Window };  // Window: causal, of fewer keys than there are
AttentionMask mask_of(const AttentionWork& work);

// Times of one mask and one size of heads by the number of keys; as many queries.
struct AttentionLine {
  AttentionMask mask = AttentionMask::Causal;
  std::int64_t window = 0, batch = 1, heads = 1, kv_heads = 1, dim = 0, value_dim = 0;
  std::vector<std::int64_t> keys = {};               // rising
  std::vector<Seconds> forward = {}, backward = {};  // [keys], with launches, in 16 bits; 0: not measured
  bool operator==(const AttentionLine&) const = default;
};
struct AttentionTable {
  std::string gpu = {};  // catalogue name
  std::string source = {};
  std::vector<AttentionLine> lines = {};
  bool operator==(const AttentionTable&) const = default;
};
// Throws Error.
AttentionTable parse_attention_table(const std::string& text, const std::string& file_name);

AttentionWork work_of(const AttentionLine& line, std::size_t point, bool backward);
// The kernel alone, as measured: without launches and the passes beside it; 0: not measured.
Seconds measured_attention(const Gpu& gpu, const AttentionLine& line, std::size_t point, bool backward);

class AttentionRates {
 public:
  explicit AttentionRates(const std::vector<AttentionTable>& tables);  // of the catalogue's GPUs

  // Measured time over the formula's, of the arithmetic and traffic of the newest kernel. Its logarithm is
  //   a GPU with a table  its own, exact at measured points; between them linear in the logarithm of the number of keys, then of the size of a
  //                       head, and beyond them that of the border; of a window longer than the measured one, between that and causal, linear
  //                       in the logarithm of the window
  //   without             the mean of those of the GPUs with the same constants (MachineConstants)
  //   none of these       1
  double ratio(const Gpu& gpu, const AttentionWork& work) const;

 private:
  struct Curve {
    AttentionMask mask = AttentionMask::Causal;
    bool backward = false;
    double window = 0, size = 0;                 // log2: keys of a window; elements of a query head and a value head
    std::vector<double> keys = {}, excess = {};  // log2; ln(measured / formula)
  };
  struct Surface {
    std::string gpu = {};
    const void* family = nullptr;    // the constants of its kind of GPU
    std::vector<Curve> curves = {};  // by rising size
  };
  static double excess_of(const Surface& surface, const AttentionWork& work, AttentionMask mask);
  std::vector<Surface> surfaces_ = {};
};

// The shipped tables.
const AttentionRates& attention_rates();
const std::vector<AttentionTable>& shipped_attention_tables();

}  // namespace foreshard
