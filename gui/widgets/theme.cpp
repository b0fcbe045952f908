#include "gui/widgets/theme.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace foreshard {

namespace {

QColor blend(QColor a, QColor b, double share_of_b) {
  const auto part = [&](int x, int y) { return static_cast<int>(std::lround(x * (1 - share_of_b) + y * share_of_b)); };
  return {part(a.red(), b.red()), part(a.green(), b.green()), part(a.blue(), b.blue())};
}

// Saturated fills glare over large areas: 14 % of a dark background, 12 % of white.
QColor soft(const Theme& theme, QColor hue) {
  switch (theme.name) {
    case ThemeName::Dark: return blend(hue, theme.background, 0.14);
    case ThemeName::Light: return blend(hue, Qt::white, 0.12);
    case ThemeName::HighContrast: return hue;
  }
  return hue;
}

double luminance(QColor colour) {
  const auto linear = [](double c) { return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); };
  return 0.2126 * linear(colour.redF()) + 0.7152 * linear(colour.greenF()) + 0.0722 * linear(colour.blueF());
}

}  // namespace

Theme theme_of(ThemeName name) {
  switch (name) {
    case ThemeName::Dark:
      return {.name = name,
              .background = {0x14, 0x17, 0x1c},
              .panel = {0x1b, 0x1f, 0x26},
              .raised = {0x24, 0x29, 0x32},
              .text = {0xe6, 0xe9, 0xee},
              .faint = {0x97, 0xa0, 0xae},
              .rule = {0x31, 0x37, 0x42},
              .accent = {0x6c, 0xb6, 0xff},
              .cursor = {0xff, 0xff, 0xff},
              .limit = {0xff, 0x6b, 0x6b},
              .bubble = {0x2a, 0x21, 0x26},
              .hatch = {0xff, 0x6b, 0x4a}};
    case ThemeName::Light:
      return {.name = name,
              .background = {0xff, 0xff, 0xff},
              .panel = {0xf4, 0xf6, 0xf9},
              .raised = {0xe9, 0xec, 0xf1},
              .text = {0x1e, 0x24, 0x2c},
              .faint = {0x5c, 0x66, 0x74},
              .rule = {0xdb, 0xe0, 0xe7},
              .accent = {0x0b, 0x66, 0xc3},
              .cursor = {0x11, 0x14, 0x18},
              .limit = {0xbe, 0x28, 0x1e},
              .bubble = {0xf6, 0xe9, 0xe4},
              .hatch = {0xc4, 0x3e, 0x1c}};
    case ThemeName::HighContrast:
      return {.name = name,
              .background = {0x00, 0x00, 0x00},
              .panel = {0x00, 0x00, 0x00},
              .raised = {0x14, 0x14, 0x14},
              .text = {0xff, 0xff, 0xff},
              .faint = {0xe0, 0xe0, 0xe0},
              .rule = {0x80, 0x80, 0x80},
              .accent = {0xff, 0xe6, 0x00},
              .cursor = {0xff, 0xff, 0xff},
              .limit = {0xff, 0x50, 0x50},
              .bubble = {0x00, 0x00, 0x00},
              .hatch = {0xff, 0x8a, 0x50}};
  }
  return {};
}

QColor Theme::of(Cell cell) const {
  switch (cell) {
    case Cell::Forward: return soft(*this, {0x56, 0xb4, 0xe9});
    case Cell::Backward: return soft(*this, {0xe6, 0x9f, 0x00});
    case Cell::WeightGradient: return soft(*this, {0x0a, 0xb0, 0x82});
    case Cell::Both: return soft(*this, {0x8c, 0x7a, 0xc8});
    case Cell::Update: return name == ThemeName::Light ? QColor(0x3a, 0x42, 0x4e) : QColor(0xe4, 0xe7, 0xec);
    case Cell::Other: return name == ThemeName::Light ? QColor(0xa8, 0xb0, 0xbb) : QColor(0x7c, 0x86, 0x94);
  }
  return {};
}

QColor Theme::of(BubbleCause cause) const {
  const bool light = name == ThemeName::Light;
  switch (cause) {
    case BubbleCause::WarmUp: return light ? QColor(0x5b, 0x6b, 0x86) : QColor(0x9a, 0xab, 0xc6);
    case BubbleCause::Drain: return light ? QColor(0x5b, 0x6b, 0x86) : QColor(0x9a, 0xab, 0xc6);
    case BubbleCause::Dependency: return light ? QColor(0x9a, 0x62, 0x00) : QColor(0xe2, 0xb0, 0x60);
    case BubbleCause::ExposedCommunication: return hatch;
    case BubbleCause::Straggler: return light ? QColor(0x85, 0x3a, 0xa4) : QColor(0xd0, 0x90, 0xf0);
    case BubbleCause::Barrier: return light ? QColor(0x4a, 0x50, 0x5a) : QColor(0xb8, 0xc0, 0xcc);
    case BubbleCause::Imbalance: return light ? QColor(0x00, 0x6e, 0x66) : QColor(0x5a, 0xd0, 0xc2);
  }
  return {};
}

QColor Theme::of(Category category) const {
  switch (category) {
    case Category::Parameters:
      return soft(*this, name == ThemeName::Light ? QColor(0x00, 0x72, 0xb2) : QColor(0x3a, 0x8f, 0xd0));
    case Category::Gradients: return soft(*this, {0x56, 0xb4, 0xe9});
    case Category::Optimizer: return soft(*this, {0x0a, 0xb0, 0x82});
    case Category::Activations: return soft(*this, {0xe6, 0x9f, 0x00});
    case Category::Transient: return soft(*this, {0xe0, 0x7a, 0x48});
    case Category::Communication: return soft(*this, {0xcc, 0x79, 0xa7});
    case Category::Framework: return soft(*this, {0x8a, 0x8f, 0x98});
  }
  return {};
}

QColor Theme::transfer() const { return name == ThemeName::Light ? QColor(0x00, 0x72, 0xb2) : QColor(0x3d, 0x9a, 0xe0); }
QColor Theme::collective() const { return soft(*this, {0xd5, 0x5e, 0x00}); }
QColor Theme::in_line() const { return soft(*this, {0xcc, 0x79, 0xa7}); }
QColor Theme::dispatch() const { return soft(*this, {0xb8, 0x4f, 0xd6}); }
QColor Theme::combine() const { return soft(*this, {0x8f, 0xc9, 0x2e}); }
QColor Theme::copy() const { return soft(*this, {0x2a, 0xa8, 0x9a}); }

// Anchors read off the cividis map (Nunez et al. 2018, PLoS ONE 13(7)); straight lines between them.
QColor Theme::heat(double share) const {
  static const std::array<QColor, 6> anchors = {QColor(0x24, 0x3c, 0x6e), QColor(0x45, 0x54, 0x6c), QColor(0x6a, 0x6c, 0x71),
                                                QColor(0x93, 0x8b, 0x73), QColor(0xc3, 0xb3, 0x69), QColor(0xfd, 0xe7, 0x37)};
  static const std::array<QColor, 6> on_white = {QColor(0xe6, 0xea, 0xef), QColor(0xc9, 0xc2, 0x8e), QColor(0xb0, 0xa4, 0x55),
                                                 QColor(0x86, 0x80, 0x6e), QColor(0x4e, 0x59, 0x6e), QColor(0x0c, 0x2a, 0x66)};
  const std::array<QColor, 6>& map = name == ThemeName::Light ? on_white : anchors;  // little use is near the background
  const double at = std::clamp(std::isfinite(share) ? share : 0.0, 0.0, 1.0) * (map.size() - 1);
  const auto low = std::min(static_cast<std::size_t>(at), map.size() - 2);
  return blend(map[low], map[low + 1], at - static_cast<double>(low));
}

QColor Theme::label_on(QColor under) const {
  const QColor dark(0x0c, 0x0f, 0x14);
  const double l = luminance(under) + 0.05;
  return l / (luminance(dark) + 0.05) >= 1.05 / l ? dark : QColor(Qt::white);
}

QPalette qt_palette(const Theme& theme) {
  QPalette out;
  out.setColor(QPalette::Window, theme.panel);
  out.setColor(QPalette::WindowText, theme.text);
  out.setColor(QPalette::Base, theme.background);
  out.setColor(QPalette::AlternateBase, theme.panel);
  out.setColor(QPalette::Text, theme.text);
  out.setColor(QPalette::PlaceholderText, theme.faint);
  out.setColor(QPalette::Button, theme.raised);
  out.setColor(QPalette::ButtonText, theme.text);
  out.setColor(QPalette::ToolTipBase, theme.raised);
  out.setColor(QPalette::ToolTipText, theme.text);
  out.setColor(QPalette::Highlight, theme.accent);
  out.setColor(QPalette::HighlightedText, theme.label_on(theme.accent));
  out.setColor(QPalette::Link, theme.accent);
  out.setColor(QPalette::Mid, theme.rule);
  out.setColor(QPalette::Dark, theme.rule);
  for (const auto role : {QPalette::Text, QPalette::WindowText, QPalette::ButtonText})
    out.setColor(QPalette::Disabled, role, theme.faint);
  return out;
}

}  // namespace foreshard
