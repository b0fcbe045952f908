// The Qt style sheet for what a palette cannot express: small text, titles of groups, error reasons, tiles.
#pragma once

#include <QString>

#include "gui/widgets/theme.h"

namespace foreshard {

QString style_sheet(const Theme& theme);

}  // namespace foreshard
