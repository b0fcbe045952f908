// Delta: the numbers of two results a and b, row by row, and the first moment at which their schedules differ.
#pragma once

#include <QString>
#include <optional>
#include <vector>

#include "gui/document/document.h"

namespace foreshard {

// Whether two results can be compared. With other models no difference is meaningful. With other devices (report/words/devices.h) only
// those of quantities that do not depend on time are.
enum class Alike : std::uint8_t { Yes, OtherModel, OtherDevice };
Alike alike(const Document& a, const Document& b);

enum class DeltaUnit : std::uint8_t { Time, Bytes, Share, Rate, Count };

struct DeltaRow {
  QString label = {};
  DeltaUnit unit = DeltaUnit::Time;
  double a = 0, b = 0;  // in the unit above: seconds, bytes, shares 0..1, per second, counts
  bool less_is_better = true;
  double change() const;  // (b - a) / a, 0 when a is 0; for shares b - a
  bool operator==(const DeltaRow&) const = default;
};

QString delta_text(const DeltaRow& row, double value);  // `value` (a or b) with its unit
QString change_text(const DeltaRow& row);               // "+3.2 %", "-1.1 points"
bool can_change(const DeltaRow& row, Alike documents);  // whether the difference of this row is meaningful

// Iteration time, rates, idle time by cause, communication, memory, and forward and backward time of each stage that both have.
std::vector<DeltaRow> delta_rows(const Document& a, const Document& b);

// The earliest begin, in `a`, of an action on a compute stream that is missing in `b` or begins there more than `tolerance` earlier or
// later. Actions are matched by role and order. None: no action differs.
std::optional<Nanoseconds> first_divergence(const Document& a, const Document& b, Nanoseconds tolerance = {0});

}  // namespace foreshard
