// LossCurve: a plot of the training loss over steps; points are added while a run goes on.
#pragma once

#include <QWidget>
#include <vector>

#include "gui/widgets/theme.h"

namespace foreshard {

class LossCurve : public QWidget {
  Q_OBJECT
 public:
  explicit LossCurve(QWidget* parent = nullptr);
  void clear();
  void add(double loss);
  const std::vector<double>& losses() const { return losses_; }  // by step
  void set_theme(const Theme& theme);
  QSize sizeHint() const override { return {280, 120}; }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  std::vector<double> losses_ = {};
  Theme theme_ = {};
};

}  // namespace foreshard
