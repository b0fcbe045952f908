// CompareView: two results, or a prediction and its measurement, stacked or overlaid on one axis, or as a table of differences.
#pragma once

#include <QWidget>
#include <memory>

#include "gui/document.h"
#include "gui/selection.h"
#include "gui/theme.h"
#include "gui/time_axis.h"

namespace foreshard {

enum class CompareMode : std::uint8_t { Stacked, Overlaid, Delta };

class CompareView : public QWidget {
  Q_OBJECT

 public:
  CompareView(TimeAxis& axis, Selection& selection, QWidget* parent = nullptr);  // both must outlive it

  void set_documents(std::shared_ptr<const Document> a, std::shared_ptr<const Document> b);  // either may be null
  void set_mode(CompareMode mode);
  void set_theme(const Theme& theme);

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  TimeAxis& axis_;
  Selection& selection_;
  std::shared_ptr<const Document> a_ = {}, b_ = {};  // shared with the other views
  CompareMode mode_ = CompareMode::Stacked;
  Theme theme_ = {};
};

}  // namespace foreshard
