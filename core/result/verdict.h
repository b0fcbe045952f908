// Whether a strategy fits the memory that there is (strategy/verdict), as a value that results carry.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/units.h"

namespace foreshard {

struct Verdict {
  enum class Kind : std::uint8_t { Fits, MayFit, DoesNotFit };
  Kind kind = Kind::Fits;
  double probability = 1;           // that a run has enough memory; 0 or 1 where nothing is predicted
  std::string holder = {};          // whose memory decides: a framework's name; empty: the plan's arena
  Bytes needs = {}, capacity = {};  // of the fullest device, in the holder's account: with context and connections
  std::string reason = {};          // what is short, and by how much; empty: it fits
  std::string beneath = {};  // what else is known, such as that this program's own arena would be too large; empty: nothing
  bool operator==(const Verdict&) const = default;
};
const char* name_of(Verdict::Kind kind);                                   // "fits", "may fit", "does not fit"
std::string to_json(const Verdict& verdict);                               // as results carry it in their plan's origin
Verdict parse_verdict(const std::string& text, const std::string& where);  // throws Error

}  // namespace foreshard
