// The fitted constants: numbers of the cost model that were fitted to measured training runs. accuracy/constants.json lists each with its
// mechanism, the sources of the rows that it was fitted to, and how certain it is. scripts/cross_validate.py leaves out one source at a
// time and fits again, to show how well they predict unseen rows. Numbers of datasheets and of kernel benchmarks are in
// strategy/kernels/machine_constants.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace foreshard {

struct FittedConstant {
  std::string name = {}, mechanism = {};
  double value = 0;                         // times in seconds
  double low = 0, high = 0;                 // the range in which the error of its rows is at most a tenth above its minimum
  double without = 0;                       // the value to assume if no measured row depended on it
  std::vector<std::string> fitted_on = {};  // names of sources in data/measured
  bool operator==(const FittedConstant&) const = default;
};

// Throws Error for unknown keys, two constants of one name, a value outside its range, or a constant without sources.
std::vector<FittedConstant> parse_fitted_constants(const std::string& text, const std::string& file_name);

// The shipped table; read once.
const std::vector<FittedConstant>& fitted_constants();
// The value of the constant in the shipped table; empty: none of that name.
std::optional<double> find_fitted(const std::string& name);
double fitted(const std::string& name);  // throws Error when the table has no such name

// The constants that the time of every kernel needs, looked up once.
struct ProductConstants {
  double sustained = 1;  // share of a short benchmark's rate that training sustains under the power limit
  // Share of the shorter of arithmetic and memory traffic that does not overlap with the longer (OpTime::total).
  double exposed = 0;
};
const ProductConstants& product_constants();

}  // namespace foreshard
