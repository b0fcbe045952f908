// Theme: every colour of the program in three variants. Okabe-Ito hues, softened over large areas, label colours by WCAG
// contrast. Kinds that colour-blind readers could confuse also differ by lane, letter or hatch.
#pragma once

#include <QColor>
#include <QPalette>
#include <cstdint>

#include "core/result/memory_timeline.h"
#include "core/result/summary.h"
#include "report/words/palette.h"

namespace foreshard {

enum class ThemeName : std::uint8_t { Dark, Light, HighContrast };

struct Theme {
  ThemeName name = ThemeName::Dark;
  QColor background = {}, panel = {}, raised = {};  // the drawing area, panels around it, gutters and headers
  QColor text = {}, faint = {}, rule = {};          // text, less important text, grid lines
  QColor accent = {}, cursor = {}, limit = {};      // selection, the common cursor, capacity and errors
  QColor bubble = {}, hatch = {};                   // tint and strokes of idle time

  QColor of(Cell cell) const;
  QColor of(BubbleCause cause) const;
  QColor of(Category category) const;
  QColor transfer() const;    // exchanges between stages
  QColor collective() const;  // on a communication stream
  QColor in_line() const;     // a collective on the compute stream
  QColor dispatch() const;    // tokens to their experts, on any stream
  QColor combine() const;     // results of experts, back
  QColor copy() const;
  QColor heat(double share) const;           // the colour of a share 0..1: dark to bright, similar to cividis
  QColor label_on(QColor background) const;  // the text colour with enough contrast on `background`
  bool operator==(const Theme&) const = default;
};

Theme theme_of(ThemeName name);
QPalette qt_palette(const Theme& theme);

}  // namespace foreshard
