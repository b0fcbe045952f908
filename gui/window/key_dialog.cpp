#include "gui/window/key_dialog.h"

#include <QDialogButtonBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeySequenceEdit>
#include <QLabel>
#include <QPushButton>
#include <QTableWidget>
#include <QVBoxLayout>

namespace foreshard {

KeyDialog::KeyDialog(KeyMap& keys, QWidget* parent) : QDialog(parent), keys_(keys) {
  setWindowTitle(tr("Keyboard"));
  resize(560, 600);
  auto* column = new QVBoxLayout(this);
  table_ = new QTableWidget;
  table_->setColumnCount(2);
  table_->setHorizontalHeaderLabels({tr("action"), tr("keys")});
  table_->horizontalHeader()->setSectionResizeMode(0, QHeaderView::Stretch);
  table_->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  table_->verticalHeader()->hide();
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setShowGrid(false);
  table_->setAlternatingRowColors(true);
  table_->setAccessibleName(tr("Actions and their keys"));
  column->addWidget(table_);
  auto* row = new QHBoxLayout;
  edit_ = new QKeySequenceEdit;
  edit_->setAccessibleName(tr("New keys"));
  auto* set = new QPushButton(tr("Set"));
  auto* clear = new QPushButton(tr("Clear"));
  row->addWidget(new QLabel(tr("New keys")));
  row->addWidget(edit_, 1);
  row->addWidget(set);
  row->addWidget(clear);
  column->addLayout(row);
  warning_ = new QLabel;
  warning_->setObjectName("reason");
  warning_->setWordWrap(true);
  column->addWidget(warning_);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close);
  auto* standard = buttons->addButton(tr("Reset all to defaults"), QDialogButtonBox::ResetRole);
  column->addWidget(buttons);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::accept);
  connect(standard, &QPushButton::clicked, this, [this] {
    keys_.reset();
    fill();
  });
  connect(set, &QPushButton::clicked, this, &KeyDialog::take);
  connect(clear, &QPushButton::clicked, this, [this] {
    edit_->clear();
    take();
  });
  connect(edit_, &QKeySequenceEdit::keySequenceChanged, this, [this](const QKeySequence& keys) {
    const int at = table_->currentRow();
    const QAction* own = at < 0 ? nullptr : keys_.entries()[static_cast<std::size_t>(at)].action;
    const KeyEntry* other = keys_.holder(keys, own);
    warning_->setText(other == nullptr ? QString()
                                       : tr("%1 has these keys now and would lose them.").arg(plain_text(*other->action)));
  });
  fill();
}

void KeyDialog::fill() {
  const int at = std::max(0, table_->currentRow());
  table_->setRowCount(static_cast<int>(keys_.entries().size()));
  int row = 0;
  for (const KeyEntry& entry : keys_.entries()) {
    table_->setItem(row, 0, new QTableWidgetItem(plain_text(*entry.action)));
    table_->setItem(row++, 1, new QTableWidgetItem(entry.action->shortcut().toString(QKeySequence::NativeText)));
  }
  table_->setCurrentCell(at, 0);
}

void KeyDialog::take() {
  const int row = table_->currentRow();
  if (row < 0) return;
  keys_.rebind(keys_.entries()[static_cast<std::size_t>(row)].name, edit_->keySequence());
  fill();
}

}  // namespace foreshard
