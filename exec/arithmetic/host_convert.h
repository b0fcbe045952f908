// Stored operands of any floating type <-> arrays of the arithmetic type. Used only by exec/host_*.cpp.
#pragma once

#include <cstdint>

#include "exec/device/operand.h"

namespace foreshard::host {

bool is_floating(DType dtype);
// Whether the operand can be used where it lies.
template <class T>
bool is_native(DType dtype);

// Elements [first, first + count) of the operand to `out`, and back with rounding to nearest even.
template <class T>
void load(const Operand& from, std::int64_t first, std::int64_t count, T* out);
template <class T>
void store(const T* in, std::int64_t count, const Operand& to, std::int64_t first);

}  // namespace foreshard::host
