#include "gui/window/palette_box.h"

#include <QApplication>
#include <QEvent>
#include <QKeyEvent>
#include <QLineEdit>
#include <QListWidget>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/widgets/fuzzy.h"

namespace foreshard {

static constexpr std::size_t kMostShown = 60;

PaletteBox::PaletteBox(QWidget* parent) : QFrame(parent) {
  setObjectName("palette_box");
  setFrameShape(QFrame::StyledPanel);
  setAutoFillBackground(true);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(8, 8, 8, 8);
  line_ = new QLineEdit;
  line_->setClearButtonEnabled(true);
  list_ = new QListWidget;
  list_->setUniformItemSizes(true);
  list_->setFocusPolicy(Qt::NoFocus);
  column->addWidget(line_);
  column->addWidget(list_);
  line_->installEventFilter(this);
  connect(line_, &QLineEdit::textChanged, this, &PaletteBox::refill);
  connect(list_, &QListWidget::itemClicked, this, &PaletteBox::accept);
  hide();
}

void PaletteBox::open(const QString& prompt, std::vector<PaletteEntry> entries) {
  find_ = {};
  entries_ = std::move(entries);
  appear(prompt);
}

void PaletteBox::open_finding(const QString& prompt, Find find) {
  entries_.clear();
  find_ = std::move(find);
  appear(prompt);
}

void PaletteBox::appear(const QString& prompt) {
  if (!isVisible()) before_ = QApplication::focusWidget();
  const QWidget* over = parentWidget();
  const int width = std::min(620, over->width() - 40), height = std::min(420, over->height() - 80);
  setGeometry((over->width() - width) / 2, 56, width, height);
  line_->setPlaceholderText(prompt);
  line_->setAccessibleName(prompt);
  list_->setAccessibleName(prompt);
  line_->clear();
  refill();
  show();
  raise();
  line_->setFocus(Qt::ShortcutFocusReason);
}

void PaletteBox::refill() {
  const QString query = line_->text();
  shown_.clear();
  if (find_) {
    shown_ = find_(query);
  } else {
    std::vector<std::pair<int, const PaletteEntry*>> fits;
    for (const PaletteEntry& entry : entries_)
      if (const int score = fuzzy_score(query, entry.text); score > 0) fits.emplace_back(score, &entry);
    std::stable_sort(fits.begin(), fits.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [score, entry] : fits) shown_.push_back(*entry);
  }
  if (shown_.size() > kMostShown) shown_.resize(kMostShown);
  list_->clear();
  for (const PaletteEntry& entry : shown_)
    list_->addItem(entry.aside.isEmpty() ? entry.text : entry.text + "    " + entry.aside);
  if (shown_.empty()) {
    auto* nothing = new QListWidgetItem(tr("No match."), list_);
    nothing->setFlags(Qt::NoItemFlags);
  } else {
    list_->setCurrentRow(0);
  }
}

void PaletteBox::accept() {
  const int row = list_->currentRow();
  if (row < 0 || row >= static_cast<int>(shown_.size())) return;
  const std::function<void()> act = shown_[static_cast<std::size_t>(row)].act;
  give_back();  // before it acts: what it does may move the keyboard on
  if (act) act();
}

void PaletteBox::give_back() {
  if (before_ && before_->isVisible())
    before_->setFocus(Qt::OtherFocusReason);
  else
    parentWidget()->setFocus(Qt::OtherFocusReason);
  hide();
}

bool PaletteBox::eventFilter(QObject* watched, QEvent* event) {
  if (watched == line_ && event->type() == QEvent::FocusOut) {
    const auto reason = static_cast<QFocusEvent*>(event)->reason();
    if (reason != Qt::PopupFocusReason && reason != Qt::ActiveWindowFocusReason && !underMouse()) hide();
  }
  if (watched != line_ || event->type() != QEvent::KeyPress) return QFrame::eventFilter(watched, event);
  const int key = static_cast<QKeyEvent*>(event)->key();
  const int step = key == Qt::Key_Down       ? 1
                   : key == Qt::Key_Up       ? -1
                   : key == Qt::Key_PageDown ? 10
                   : key == Qt::Key_PageUp   ? -10
                                             : 0;
  if (step != 0) {
    list_->setCurrentRow(std::clamp(list_->currentRow() + step, 0, std::max(0, list_->count() - 1)));
    return true;
  }
  if (key == Qt::Key_Return || key == Qt::Key_Enter) {
    accept();
    return true;
  }
  if (key == Qt::Key_Escape) {
    give_back();
    return true;
  }
  return QFrame::eventFilter(watched, event);
}

}  // namespace foreshard
