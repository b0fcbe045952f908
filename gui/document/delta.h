// Delta: two results in numbers, row by row, and the first moment at which they part.
#pragma once

#include <QString>
#include <optional>
#include <vector>

#include "gui/document/document.h"

namespace foreshard {

// Of another model nothing is a difference, of another device (report/words/devices.h) only what no time is in.
enum class Alike : std::uint8_t { Yes, OtherModel, OtherDevice };
Alike alike(const Document& a, const Document& b);

enum class DeltaUnit : std::uint8_t { Time, Bytes, Share, Rate, Count };

struct DeltaRow {
  QString label = {};
  DeltaUnit unit = DeltaUnit::Time;
  double a = 0, b = 0;  // seconds, bytes, shares 0..1, per second, pieces
  bool less_is_better = true;
  double change() const;  // (b - a) / a; of shares b - a; 0 when a is 0
  bool operator==(const DeltaRow&) const = default;
};

QString delta_text(const DeltaRow& row, double value);
QString change_text(const DeltaRow& row);  // "+3.2 %", "-1.1 points"
bool can_change(const DeltaRow& row, Alike documents);

// Iteration time, rates, idle time by cause, communication, memory, and the iteration's work per stage where both have it.
std::vector<DeltaRow> delta_rows(const Document& a, const Document& b);

// The earliest begin, in the time of `a`, of an action on a compute stream that begins elsewhere in `b` by more than `tolerance`
// or is not there. Actions are matched by stage and order. None: they never part.
std::optional<Nanoseconds> first_divergence(const Document& a, const Document& b, Nanoseconds tolerance = {0});

}  // namespace foreshard
