// Facts: what is known about the selected object, as labelled values in sections. The inspector shows them.
#pragma once

#include <QString>
#include <optional>
#include <vector>

#include "gui/document/document.h"
#include "gui/document/selection.h"
#include "gui/document/twin.h"

namespace foreshard {

struct Fact {
  QString label = {}, value = {};
  Picked leads_to = {};  // a click on the value selects this; Nothing: the value is not a link
  bool operator==(const Fact&) const = default;
};

struct FactSection {
  QString title = {};
  std::vector<Fact> facts = {};
  bool operator==(const FactSection&) const = default;
};

// Where an operation lies under the roof min(peak, intensity * bandwidth). Williams, Waterman, Patterson: Roofline, CACM 52(4).
struct RooflinePoint {
  double intensity = 0;  // FLOP per byte of device memory traffic
  double attained = 0;   // FLOP/s
  double peak = 0;       // FLOP/s of the device for dense operands in the operation's number format
  double bandwidth = 0;  // byte/s of device memory
  double roof() const;   // FLOP/s attainable at this intensity
  bool operator==(const RooflinePoint&) const = default;
};

struct Facts {
  QString title = {}, explained = {};  // explained: a sentence below the title
  std::vector<FactSection> sections = {};
  std::optional<RooflinePoint> roofline = {};
  bool operator==(const Facts&) const = default;
};

inline constexpr std::size_t kChainShown = 12;  // at most this many lines of a binding chain are listed

// `twin` null: no measurement. If nothing is picked, or something that is not in the document: the facts of the whole run.
Facts facts_of(const Document& document, Picked picked, const Twin* twin);

}  // namespace foreshard
