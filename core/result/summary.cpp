#include "core/result/summary.h"

namespace foreshard {

const char* name_of(BubbleCause cause) {
  switch (cause) {
    case BubbleCause::WarmUp: return "warm_up";
    case BubbleCause::Drain: return "drain";
    case BubbleCause::Dependency: return "dependency";
    case BubbleCause::ExposedCommunication: return "exposed_communication";
    case BubbleCause::Straggler: return "straggler";
    case BubbleCause::Barrier: return "barrier";
    case BubbleCause::Imbalance: return "imbalance";
  }
  return "?";
}

}  // namespace foreshard
