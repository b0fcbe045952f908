// Which positions of a sequence a context-parallel rank holds. With one chunk per rank, rank r of R holds the r-th of R equal parts. A
// causal model uses two chunks per rank, so that all ranks have equal work: of 2 R equal chunks, rank r holds chunks r and 2 R - 1 - r.
//
//   R = 2, two chunks   positions   0 1 | 2 3 | 4 5 | 6 7
//                       rank        0     1     1     0
//   rows of rank 0: 0 1 6 7, of rank 1: 2 3 4 5; gathered over the ranks: 0 1 6 7 2 3 4 5
//
// Between the two all-to-alls of ContextKind::AllToAll, a rank holds all positions of its part of the heads.
#pragma once

#include <algorithm>
#include <cstdint>

namespace foreshard {

// The positions of consecutive rows, in two runs: row i < length has position first + i, the others second + (i - length).
struct RowPositions {
  std::int64_t first = 0, length = INT64_MAX, second = 0;

  std::int64_t position(std::int64_t row) const { return row < length ? first + row : second + (row - length); }
  // How many of the first `rows` rows have a position less than `position`.
  std::int64_t below(std::int64_t position, std::int64_t rows) const {
    const std::int64_t early = std::min(rows, length);
    return std::clamp<std::int64_t>(position - first, 0, early) + std::clamp<std::int64_t>(position - second, 0, rows - early);
  }
  // The positions of the rows from `row` on.
  RowPositions from(std::int64_t row) const {
    if (length == INT64_MAX) return {.first = first + row};
    return row < length ? RowPositions{first + row, length - row, second} : RowPositions{.first = position(row)};
  }
};

// How `ranks` context-parallel ranks share a sequence.
struct SequenceSplit {
  int ranks = 1, chunks = 1;  // chunks of each rank: 1 or 2; 0: each rank has all positions of a part of the heads

  int parts() const { return chunks == 0 ? 1 : ranks; }  // among which the positions are divided
  // The positions of the rows of `rank`; `rows`: positions that each rank holds.
  RowPositions rows_of(int rank, std::int64_t rows) const {
    if (parts() == 1) return {};
    if (chunks == 1) return {.first = rank * rows};
    const std::int64_t chunk = rows / 2;
    return {.first = rank * chunk, .length = chunk, .second = (2 * ranks - 1 - rank) * chunk};
  }
  // The row of a position if the rows of all ranks are concatenated in rank order.
  std::int64_t gathered_row(std::int64_t position, std::int64_t rows) const {
    if (parts() == 1 || chunks == 1) return position;
    const std::int64_t size = rows / 2, chunk = position / size;
    return chunk < ranks ? chunk * rows + position % size : (2 * ranks - 1 - chunk) * rows + size + position % size;
  }
  bool operator==(const SequenceSplit&) const = default;
};

}  // namespace foreshard
