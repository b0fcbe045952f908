#include "gui/compare/compare_view.h"

#include <QFileInfo>
#include <QHeaderView>
#include <QLabel>
#include <QTableWidget>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/document/timeline_labels.h"
#include "gui/document/words.h"
#include "gui/timeline/timeline_view.h"

namespace foreshard {

CompareView::CompareView(TimeAxis& axis, Selection& selection, QWidget* parent)
    : QWidget(parent), axis_(axis), theme_(theme_of(ThemeName::Dark)) {
  setAccessibleName(tr("Comparison"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  title_a_ = new QLabel;
  title_b_ = new QLabel;
  above_ = new TimelineView(axis, selection);
  above_->set_legend(false);
  below_ = new TimelineView(axis, other_);
  table_ = new QTableWidget(0, 4);
  table_->setHorizontalHeaderLabels({tr("what"), "A", "B", tr("change")});
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  table_->verticalHeader()->hide();
  table_->verticalHeader()->setDefaultSectionSize(24);
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setShowGrid(false);
  table_->setFrameShape(QFrame::NoFrame);
  table_->setAccessibleName(tr("Table of differences"));
  for (QLabel* title : {title_a_, title_b_}) {
    title->setContentsMargins(10, 4, 10, 4);
    title->setTextFormat(Qt::PlainText);
    title->setWordWrap(true);  // a long one does not make the window wider
    title->setAutoFillBackground(true);
  }
  for (QWidget* part : std::initializer_list<QWidget*>{title_a_, above_, title_b_, below_, table_}) column->addWidget(part);
  table_->hide();
  column->setStretchFactor(above_, 1);
  column->setStretchFactor(below_, 1);
  column->setStretchFactor(table_, 1);
  set_theme(theme_);
  refill();
}

void CompareView::set_documents(std::shared_ptr<const Document> a, std::shared_ptr<const Document> b) {
  a_ = std::move(a);
  b_ = std::move(b);
  refill();
}

void CompareView::showEvent(QShowEvent*) {
  if (stale_) refill();
}

void CompareView::set_mode(CompareMode mode) {
  mode_ = mode;
  refill();
}

void CompareView::set_theme(const Theme& theme) {
  theme_ = theme;
  above_->set_theme(theme);
  below_->set_theme(theme);
  for (QLabel* title : {title_a_, title_b_}) {
    QPalette colours = qt_palette(theme);
    colours.setColor(QPalette::Window, theme.raised);
    title->setPalette(colours);
  }
  table_->setPalette(qt_palette(theme));
  fill_delta();
}

QString CompareView::title_of(const Document& document, const Document* against) const {
  QString words;
  if (document.trace().origin == Origin::Measured) words = tr("measured on %1").arg(device_text(document));
  if (words.isEmpty())
    words = document.path.empty() ? tr("plan") : QFileInfo(QString::fromStdString(document.path)).completeBaseName();
  if (!document.model.empty()) words += ", " + QString::fromStdString(document.model);
  if (!document.cluster_name.empty()) words += tr(" on ") + QString::fromStdString(document.cluster_name);
  words += "   " + time_text(document.trace().makespan);
  if (against == nullptr) return words;
  switch (alike(*against, document)) {
    case Alike::Yes: break;
    case Alike::OtherModel: return words + "   " + tr("another model than A: no differences are told");
    case Alike::OtherDevice:
      return words + "   " + tr("another device than %1: times are not comparable").arg(device_text(*against));
  }
  const DeltaRow row{{}, DeltaUnit::Time, against->summary.iteration_time.value, document.summary.iteration_time.value, true};
  return words + "   " + change_text(row);
}

// In the overlay B is the thin row below each row of A. The axis shows the union of both.
void CompareView::refill() {
  Nanoseconds end = {1};
  if (a_) end = std::max(end, a_->trace().makespan);
  if (b_) end = std::max(end, b_->trace().makespan);
  axis_.set_extent({{0}, end});
  stale_ = !isVisible();
  if (stale_) return;
  above_->set_document(a_);
  below_->set_document(mode_ == CompareMode::Stacked ? b_ : nullptr);
  const bool overlaid = mode_ == CompareMode::Overlaid && a_ && b_;
  if (overlaid)
    above_->set_twin(program_hash(a_->plan()) == program_hash(b_->plan()) ? match_twin(*a_, b_) : lay_beside(*a_, b_));
  axis_.set_extent({{0}, end});
  title_a_->setText(a_ ? "A   " + title_of(*a_, nullptr) : tr("A   no baseline yet: Plan > Use as baseline"));
  title_b_->setText(b_ ? "B   " + title_of(*b_, a_.get())
                       : tr("B   nothing yet: Ctrl+click a plan of the search, or load a measured result"));
  auto* column = qobject_cast<QVBoxLayout*>(layout());
  column->removeWidget(title_b_);
  column->insertWidget(mode_ == CompareMode::Stacked ? 2 : 1, title_b_);
  const bool delta = mode_ == CompareMode::Delta;
  above_->setVisible(!delta);
  above_->set_legend(overlaid);
  below_->setVisible(mode_ == CompareMode::Stacked);
  table_->setVisible(delta);
  fill_delta();
}

void CompareView::fill_delta() {
  const std::vector<DeltaRow> rows = a_ && b_ ? delta_rows(*a_, *b_) : std::vector<DeltaRow>();
  const Alike documents = a_ && b_ ? alike(*a_, *b_) : Alike::Yes;
  table_->setRowCount(static_cast<int>(rows.size()));
  for (int r = 0; r < static_cast<int>(rows.size()); ++r) {
    const DeltaRow& row = rows[static_cast<std::size_t>(r)];
    const QStringList cells = {row.label, delta_text(row, row.a), delta_text(row, row.b),
                               can_change(row, documents) ? change_text(row) : QStringLiteral("–")};
    for (int c = 0; c < 4; ++c) {
      auto* item = new QTableWidgetItem(cells[c]);
      item->setTextAlignment((c == 0 ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
      const bool better = (row.change() < 0) == row.less_is_better;
      if (c == 3 && can_change(row, documents) && cells[c] != "=" && row.unit != DeltaUnit::Count)
        item->setForeground(better ? theme_.of(Cell::WeightGradient) : theme_.limit);
      table_->setItem(r, c, item);
    }
  }
}

bool CompareView::jump_to_divergence() {
  if (!a_ || !b_) return false;
  const auto when = first_divergence(*a_, *b_, {a_->trace().makespan.value / 1000});
  if (!when) return false;
  const std::int64_t half = std::max<std::int64_t>(axis_.extent().length().value / 40, 1);
  axis_.show({{when->value - half}, {when->value + half}});
  axis_.set_cursor(when);
  return true;
}

}  // namespace foreshard
