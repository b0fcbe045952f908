// The look of the controls beyond the palette: small words, titles of groups, reasons, tiles.
#pragma once

#include <QString>

#include "gui/widgets/theme.h"

namespace foreshard {

QString style_sheet(const Theme& theme);

}  // namespace foreshard
