// Converts operands of any floating-point format to arrays of the arithmetic type T (float or double), and back.
#pragma once

#include <cstdint>

#include "exec/device/operand.h"

namespace foreshard::host {

bool is_floating(DType dtype);
// Whether operands of this format have the arithmetic type, so that no conversion is needed.
template <class T>
bool is_native(DType dtype);

// load: elements [first, first + count) of the operand to `out`. store: `in` to these elements, rounded to nearest even.
template <class T>
void load(const Operand& from, std::int64_t first, std::int64_t count, T* out);
template <class T>
void store(const T* in, std::int64_t count, const Operand& to, std::int64_t first);

}  // namespace foreshard::host
