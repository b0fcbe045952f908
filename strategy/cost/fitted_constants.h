// Numbers of the cost model that were fitted on measured training runs: one table, accuracy/constants.json, each with its
// mechanism, the rows it was fitted on and how certain it is. Leaving a source out and fitting again says what they are
// worth (scripts/cross_validate.py). Numbers of datasheets and of kernel benchmarks are in strategy/cost/machine_constants.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace foreshard {

struct FittedConstant {
  std::string name = {}, mechanism = {};
  double value = 0;                         // times are seconds
  double low = 0, high = 0;                 // where the error of its rows stays within a tenth of its least
  double without = 0;                       // what one would take without any row that it matters to
  std::vector<std::string> fitted_on = {};  // sources of data/measured
  bool operator==(const FittedConstant&) const = default;
};

// Throws Error: unknown keys, a value outside of its range, two of one name.
std::vector<FittedConstant> parse_fitted_constants(const std::string& text, const std::string& file_name);

// The shipped table; read once.
const std::vector<FittedConstant>& fitted_constants();
std::optional<double> find_fitted(const std::string& name);
double fitted(const std::string& name);  // throws Error when the table has no such name

// Those that every kernel asks for.
struct ProductConstants {
  double library_choice = 1;   // the kernel that the library picks, against the best of a search over shapes and kernels
  double sustained_level = 1;  // of a short benchmark's rate, what training keeps: level * (watts per TFLOP/s)^exponent
  double sustained_exponent = 0;
  double exposed = 0;  // of the shorter of arithmetic and traffic
};
const ProductConstants& product_constants();

}  // namespace foreshard
