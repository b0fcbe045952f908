#include "gui/compare/policy_view.h"

#include <QApplication>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QSortFilterProxyModel>
#include <QStyledItemDelegate>
#include <QTableView>
#include <QVBoxLayout>

#include "core/base/error.h"
#include "gui/document/search_rows.h"
#include "gui/widgets/engine_words.h"

namespace foreshard {

using namespace std::chrono_literals;

namespace {

// Paints a bar as long as the cell's share below its text.
class BarDelegate : public QStyledItemDelegate {
 public:
  BarDelegate(const Theme& theme, QObject* parent) : QStyledItemDelegate(parent), theme_(theme) {}
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    QStyledItemDelegate::paint(painter, option, index);
    const double share = index.data(PolicyRows::kShareRole).toDouble();
    if (share <= 0) return;
    const QRect cell = option.rect.adjusted(4, 0, -4, -2);
    const int length = std::max(1, static_cast<int>(share * cell.width()));
    painter->fillRect(QRect(cell.right() - length + 1, cell.bottom() - 2, length, 3), theme_.accent);
  }

 private:
  const Theme& theme_;
};

}  // namespace

Choices with_policy(Choices choices, const std::string& name) {
  choices.strategy["policy"] = name;
  choices.strategy.erase("zero");
  return choices;
}

PolicyView::PolicyView(const QString& program, QWidget* parent)
    : QWidget(parent), child_(program), theme_(theme_of(ThemeName::Dark)) {
  setAccessibleName(tr("Runtime policies"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(10, 0, 10, 8);
  column->setSpacing(6);
  auto* row = new QHBoxLayout;
  go_ = new QPushButton(tr("Simulate all policies"));
  go_->setObjectName("simulate_policies");
  go_->setToolTip(tr("The chosen job under the runtime policy of every framework; each has a ZeRO stage of its own"));
  connect(go_, &QPushButton::clicked, this, [this] { busy() ? stop() : start(); });
  state_ = new QLabel(tr("Not simulated yet."));
  state_->setObjectName("faint");
  state_->setTextFormat(Qt::PlainText);
  state_->setWordWrap(true);
  row->addWidget(go_);
  row->addWidget(state_, 1);
  column->addLayout(row);
  make_table();
  column->addWidget(table_, 1);
  connect(&child_, &Child::finished, this, &PolicyView::take_end);
}

void PolicyView::make_table() {
  sorted_ = new QSortFilterProxyModel(this);
  sorted_->setSourceModel(&rows_);
  sorted_->setSortRole(Qt::UserRole);
  table_ = new QTableView;
  table_->setModel(sorted_);
  table_->setItemDelegate(new BarDelegate(theme_, table_));
  table_->setSortingEnabled(true);
  table_->sortByColumn(PolicyRows::Step, Qt::AscendingOrder);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setShowGrid(false);
  table_->setAccessibleName(tr("Runtime policies side by side"));
  table_->verticalHeader()->hide();
  table_->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 12);
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  for (const int names : {PolicyRows::Name, PolicyRows::Of})
    table_->horizontalHeader()->setSectionResizeMode(names, QHeaderView::ResizeToContents);
  table_->horizontalHeader()->setHighlightSections(false);
  const auto row_of = [this](const QModelIndex& index) { return sorted_->mapToSource(index).row(); };
  connect(table_, &QTableView::clicked, this, [this, row_of](const QModelIndex& index) {
    pick(row_of(index), QApplication::keyboardModifiers().testFlag(Qt::ControlModifier));
  });
  connect(table_, &QTableView::activated, this, [this, row_of](const QModelIndex& index) { pick(row_of(index), false); });
  connect(table_->horizontalHeader(), &QHeaderView::sortIndicatorChanged, this, [this] { span_refusals(); });
}

// The reason of a policy that was not simulated takes the columns of its numbers.
void PolicyView::span_refusals() {
  table_->clearSpans();
  for (int shown = 0; shown < sorted_->rowCount(); ++shown) {
    const int row = sorted_->mapToSource(sorted_->index(shown, 0)).row();
    if (!rows_.rows()[static_cast<std::size_t>(row)].why_not.empty())
      table_->setSpan(shown, PolicyRows::Step, 1, PolicyRows::kColumns - PolicyRows::Step);
  }
}

void PolicyView::set_choices(const Choices& choices) {
  choices_ = choices;
  if (busy() || rows_.rows().empty()) return;
  // Only the policy and its ZeRO stage may differ: a click on a row changes them.
  if (!(with_policy(choices_, "auto") == with_policy(simulated_, "auto")))
    state_->setText(tr("The choices have changed since: simulate again."));
}

void PolicyView::set_theme(const Theme& theme) {
  theme_ = theme;
  table_->viewport()->update();
}

void PolicyView::start() {
  simulated_ = choices_;
  QStringList words = {"simulate"};
  for (const std::string& word : job_words(simulated_, {"policy", "zero"})) words << QString::fromStdString(word);
  words << "--policy"
        << "all"
        << "--json";
  go_->setText(tr("Stop"));
  state_->setText(tr("Simulating …"));
  child_.start(words);
  Q_EMIT began();
}

void PolicyView::stop() {
  if (busy()) child_.cancel();
}

void PolicyView::take_end(const ChildOutcome& outcome) {
  go_->setText(tr("Simulate all policies"));
  if (outcome.end == ChildEnd::Cancelled) return state_->setText(tr("Stopped."));
  if (outcome.end != ChildEnd::Done) {
    const QString message = engine_words(outcome.message);
    state_->setText(message);
    Q_EMIT said(message);
    return;
  }
  try {
    rows_.set(read_policy_rows(outcome.out));
  } catch (const Error& error) {
    state_->setText(QString::fromStdString(error.what()));
    Q_EMIT said(QString::fromStdString(error.what()));
    return;
  }
  span_refusals();
  const int best = rows_.fastest();
  if (best < 0) return state_->setText(tr("No policy is possible with these choices."));
  const PolicyLine& fastest = rows_.rows()[static_cast<std::size_t>(best)];
  state_->setText(tr("%1 is the fastest: %2. A click loads a policy, Ctrl+click compares it with the shown plan.")
                      .arg(QString::fromStdString(fastest.name), time_text(fastest.step.value)));
}

void PolicyView::pick(int row, bool compare) {
  if (row < 0 || row >= rows_.rowCount() || !rows_.rows()[static_cast<std::size_t>(row)].why_not.empty()) return;
  const Choices choices = with_policy(simulated_, rows_.rows()[static_cast<std::size_t>(row)].name);
  if (compare)
    Q_EMIT compare_asked(choices);
  else
    Q_EMIT load_asked(choices);
}

}  // namespace foreshard
