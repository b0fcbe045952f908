#include "report/words/palette.h"

#include <fmt/format.h>

#include <cmath>

namespace foreshard {

Cell cell_of(const Action& action) {
  if (action.does.empty()) return Cell::Other;
  if (action.does.size() > 1) return Cell::Both;
  switch (action.does.front().work) {
    case Work::F: return Cell::Forward;
    case Work::B:
    case Work::I: return Cell::Backward;
    case Work::W: return Cell::WeightGradient;
    case Work::Update: return Cell::Update;
  }
  return Cell::Other;
}

Colour colour_of(Cell cell) {
  switch (cell) {
    case Cell::Forward: return {120, 190, 230};
    case Cell::Backward: return {236, 176, 60};
    case Cell::WeightGradient: return {64, 176, 146};
    case Cell::Both: return {160, 150, 214};
    case Cell::Update: return {84, 90, 100};
    case Cell::Other: return {176, 182, 190};
  }
  return {};
}

const char* name_of(Cell cell) {
  switch (cell) {
    case Cell::Forward: return "forward";
    case Cell::Backward: return "backward";
    case Cell::WeightGradient: return "weight gradient";
    case Cell::Both: return "forward and backward";
    case Cell::Update: return "update";
    case Cell::Other: return "other";
  }
  return "?";
}

Colour colour_of(BubbleCause cause) {
  switch (cause) {
    case BubbleCause::WarmUp: return {120, 130, 150};
    case BubbleCause::Drain: return {120, 130, 150};
    case BubbleCause::Dependency: return {150, 96, 30};
    case BubbleCause::ExposedCommunication: return {196, 62, 28};
    case BubbleCause::Straggler: return {120, 50, 150};
    case BubbleCause::Barrier: return {60, 66, 76};
    case BubbleCause::Imbalance: return {0, 120, 110};
  }
  return {};
}

Colour colour_of(Category category) {
  switch (category) {
    case Category::Parameters: return {70, 130, 180};
    case Category::Gradients: return {140, 196, 230};
    case Category::Optimizer: return {80, 168, 140};
    case Category::Activations: return {236, 176, 60};
    case Category::Transient: return {222, 140, 110};
    case Category::Communication: return {206, 150, 186};
    case Category::Framework: return {196, 200, 206};
  }
  return {};
}

const char* name_of(Category category) {
  switch (category) {
    case Category::Parameters: return "parameters";
    case Category::Gradients: return "gradients";
    case Category::Optimizer: return "optimizer";
    case Category::Activations: return "activations";
    case Category::Transient: return "transient";
    case Category::Communication: return "communication";
    case Category::Framework: return "framework";
  }
  return "?";
}

const char* words_of(Category category) { return category == Category::Transient ? "scratch" : name_of(category); }

std::string hex(Colour colour) { return fmt::format("#{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue); }

static double luminance(Colour colour) {
  const auto linear = [](std::uint8_t channel) {
    const double c = channel / 255.0;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(colour.red) + 0.7152 * linear(colour.green) + 0.0722 * linear(colour.blue);
}

Colour label_on(Colour background) {
  const double l = luminance(background) + 0.05;
  return l / (luminance(kInk) + 0.05) >= (luminance(kWhite) + 0.05) / l ? kInk : kWhite;
}

}  // namespace foreshard
