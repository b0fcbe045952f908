// RegisterRow: a row of a matrix in the registers of one or more warps, so that a kernel that passes over a row several times reads it from
// memory only once.
#pragma once

#include "exec/cuda/kernels/packs.h"

namespace foreshard::gpu {

// `warps_of_row` warps share a row. Lane l of the w-th of them holds packs l + 32 w, l + 32 w + 32 warps_of_row, ... A thread block has
// kThreads threads. number(): the row; has(k): whether this thread has a k-th pack; column(k), at(k): first column of that pack, and its
// index in the array.
template <Type type>
class RegisterRow {
 public:
  GPU_MEMBER RegisterRow(std::int64_t rows, std::int64_t columns, int warps_of_row)
      : columns_(static_cast<int>(columns)), step_(kPack<type> * kWarp * warps_of_row) {
    const int rows_of_block = warps() / warps_of_row, team = warp() / warps_of_row;
    number_ = static_cast<int>(block()) * rows_of_block + team;
    first_ = kPack<type> * ((warp() - team * warps_of_row) * kWarp + lane());
    if (number_ >= rows) columns_ = 0;  // there is no such row; its warps still take part in the barriers
  }
  GPU_MEMBER int number() const { return number_; }
  GPU_MEMBER bool has(int k) const { return column(k) < columns_; }
  GPU_MEMBER int column(int k) const { return first_ + k * step_; }
  GPU_MEMBER int at(int k) const { return number_ * columns_ + column(k); }

 private:
  int columns_, step_, number_, first_;
};

// Calls body(k) for each pack of the row that this thread has.
template <Type type, class Body>
GPU_FUNCTION void each_pack(const RegisterRow<type>& row, Body body) {
  GPU_UNROLL
  for (int k = 0; k < kHeldPacks; ++k)
    if (row.has(k)) body(k);
}

// Sum or maximum over the threads of a row, with the same bits in all of them.
GPU_FUNCTION float row_fold(float x, bool maximum, int warps_of_row, GPU_SHARED_VIEW(float, kMostWarps) parts) {
  x = maximum ? warp_maximum(x) : warp_sum(x);
  if (warps_of_row == 1) return x;
  GPU_BARRIER();  // the entries of an earlier sum have been read
  if (lane() == 0) parts[warp()] = x;
  GPU_BARRIER();
  const int first = warp() / warps_of_row * warps_of_row;
  float total = parts[first];
  for (int w = first + 1; w < first + warps_of_row; ++w) {
    const float part = parts[w];
    total = maximum ? fmaxf(total, part) : total + part;
  }
  return total;
}

}  // namespace foreshard::gpu
