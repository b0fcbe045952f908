// CompareView: compares two results a and b, or a prediction and its measurement: two timelines on one time axis, one timeline with both in
// each row, or a table of differences.
#pragma once

#include <QWidget>
#include <memory>

#include "gui/document/delta.h"
#include "gui/document/document.h"
#include "gui/document/selection.h"
#include "gui/document/time_axis.h"
#include "gui/widgets/theme.h"

class QLabel;
class QTableWidget;

namespace foreshard {

class TimelineView;

enum class CompareMode : std::uint8_t { Stacked, Overlaid, Delta };

class CompareView : public QWidget {
  Q_OBJECT

 public:
  CompareView(TimeAxis& axis, Selection& selection, QWidget* parent = nullptr);  // both must outlive it

  void set_documents(std::shared_ptr<const Document> a, std::shared_ptr<const Document> b);  // either may be null
  void set_mode(CompareMode mode);
  CompareMode mode() const { return mode_; }
  void set_theme(const Theme& theme);
  bool jump_to_divergence();  // shows the first divergence; false: there is none
  TimelineView* first() const { return above_; }
  TimelineView* second() const { return below_; }

 protected:
  void showEvent(QShowEvent* event) override;  // fills the view when it is first visible

 private:
  void refill();
  void fill_delta();
  QString title_of(const Document& document, const Document* against) const;

  TimeAxis& axis_;
  Selection other_ = Selection();                    // the selection in b; its indices are not valid in a
  std::shared_ptr<const Document> a_ = {}, b_ = {};  // shared with the other views
  CompareMode mode_ = CompareMode::Stacked;
  bool stale_ = true;
  Theme theme_ = {};
  QLabel *title_a_ = nullptr, *title_b_ = nullptr;
  TimelineView *above_ = nullptr, *below_ = nullptr;
  QTableWidget* table_ = nullptr;
};

}  // namespace foreshard
