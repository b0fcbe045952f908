#include "gui/inspector/table_page.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/document/words.h"
#include "gui/inspector/tables.h"

namespace foreshard {

TablePage::TablePage(TimeAxis& axis, Selection& selection, QWidget* parent) : QWidget(parent), axis_(axis) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(10, 6, 10, 6);
  kind_ = new QComboBox;
  kind_->setAccessibleName(tr("What the table lists"));
  kind_->addItems({tr("operations (timeline)"), tr("idle time (timeline)"), tr("stages (memory)"), tr("links (topology)")});
  note_ = new QLabel;
  note_->setObjectName("faint");
  auto* row = new QHBoxLayout;
  row->addWidget(kind_);
  row->addWidget(note_, 1);
  column->addLayout(row);
  table_ = new CompanionTable(selection);
  column->addWidget(table_, 1);
  connect(table_, &CompanionTable::filtered, this, &TablePage::count_rows);
  later_.setSingleShot(true);
  later_.setInterval(250);
  connect(kind_, &QComboBox::currentIndexChanged, this, &TablePage::refill);
  connect(&later_, &QTimer::timeout, this, &TablePage::refill);
  connect(&axis_, &TimeAxis::visible_changed, this, [this] {
    if (document_ && document_->trace().spans.size() > kMostTableRows) stale_ = true, later_.start();
  });
}

void TablePage::set_document(std::shared_ptr<const Document> document) {
  document_ = std::move(document);
  table_->set_table(nullptr);
  stale_ = true;
  if (isVisible()) refill();
}

void TablePage::show_kind(TableKind kind) {
  kind_->setCurrentIndex(static_cast<int>(kind));
  if (stale_) refill();
}

TableKind TablePage::kind() const { return static_cast<TableKind>(std::clamp(kind_->currentIndex(), 0, kTableKinds - 1)); }

QString TablePage::note() const { return note_->text(); }

const ResultTable* TablePage::table() const { return table_->table(); }

void TablePage::showEvent(QShowEvent*) {
  if (stale_) refill();
}

void TablePage::refill() {
  note_->clear();
  if (!document_) return table_->set_table(nullptr);
  if (!isVisible()) {
    stale_ = true;
    return;
  }
  stale_ = false;
  switch (kind()) {
    case TableKind::Operations: table_->set_table(span_table(document_, axis_.visible())); break;
    case TableKind::Bubbles: table_->set_table(bubble_table(document_)); break;
    case TableKind::Stages: table_->set_table(stage_table_model(document_)); break;
    case TableKind::Links: table_->set_table(link_table(document_)); break;
  }
  count_rows();
}

void TablePage::count_rows() {
  if (!document_ || table_->table() == nullptr) return note_->clear();
  const auto all = static_cast<int>(document_->trace().spans.size()), listed = table_->table()->rowCount(),
             shown = table_->rows_shown();
  if (shown < listed)
    note_->setText(tr("%1 of %2 rows").arg(count_words(shown), count_words(listed)));
  else if (kind() == TableKind::Operations && listed < all)
    note_->setText(tr("%1 of %2 operations: those in the visible time, at most %3")
                       .arg(count_words(listed), count_words(all), count_words(kMostTableRows)));
  else
    note_->setText(listed == 1 ? tr("1 row") : tr("%1 rows").arg(count_words(listed)));
}

}  // namespace foreshard
