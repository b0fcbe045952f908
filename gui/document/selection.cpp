#include "gui/document/selection.h"

namespace foreshard {

void Selection::pick(Picked picked) {
  if (picked == picked_) return;
  picked_ = picked;
  Q_EMIT changed();
}

}  // namespace foreshard
