#include "gui/search/search_panel.h"

#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QRegularExpression>
#include <QSortFilterProxyModel>
#include <QSpinBox>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>

#include "core/base/error.h"
#include "core/json/json_edit.h"
#include "gui/document/words.h"
#include "gui/search/pareto_view.h"
#include "gui/widgets/engine_words.h"
#include "strategy/search/search.h"

namespace foreshard {

using namespace std::chrono_literals;

SearchPanel::SearchPanel(const QString& program, QWidget* parent) : QWidget(parent), child_(program) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(8, 8, 8, 8);
  column->setSpacing(6);
  column->addWidget(make_controls());
  scatter_ = new ParetoView(rows_);
  make_table();
  auto* lower = new QWidget;
  auto* lower_column = new QVBoxLayout(lower);
  lower_column->setContentsMargins(0, 0, 0, 0);
  lower_column->setSpacing(4);
  filter_ = new QLineEdit;
  filter_->setPlaceholderText(tr("Filter: 1f1b, recompute, …"));
  filter_->setClearButtonEnabled(true);
  filter_->setAccessibleName(tr("Filter the strategies"));
  connect(filter_, &QLineEdit::textChanged, sorted_, &QSortFilterProxyModel::setFilterFixedString);
  lower_column->addWidget(filter_);
  lower_column->addWidget(table_);
  auto* split = new QSplitter(Qt::Vertical);
  split->addWidget(scatter_);
  split->addWidget(lower);
  split->setStretchFactor(0, 4);
  split->setStretchFactor(1, 5);
  split->setChildrenCollapsible(false);
  column->addWidget(split, 1);
  connect(&child_, &Child::progress, this, [this](double fraction) {
    bar_->setValue(static_cast<int>(fraction * 1000));
    show_state(best_so_far());
  });
  connect(&child_, &Child::told, this, &SearchPanel::take_line);
  connect(&child_, &Child::finished, this, &SearchPanel::take_end);
  connect(scatter_, &ParetoView::picked, this, &SearchPanel::pick);
}

QWidget* SearchPanel::make_controls() {
  auto* controls = new QWidget;
  auto* column = new QVBoxLayout(controls);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(6);
  auto* row = new QHBoxLayout;
  objective_ = new QComboBox;
  for (const std::string& name : objective_names())
    objective_->addItem(QCoreApplication::translate("objectives", name.c_str()), QString::fromStdString(name));
  objective_->setCurrentIndex(objective_->findData("pareto"));
  objective_->setAccessibleName(tr("Objective"));
  objective_->setToolTip(tr("What the search ranks by; pareto: time against memory"));
  refine_ = new QSpinBox;
  refine_->setRange(1, 10'000);
  refine_->setValue(48);
  refine_->setAccessibleName(tr("Number of strategies that are simulated"));
  refine_->setToolTip(tr("How many of the best estimates are checked by an exact simulation"));
  go_ = new QPushButton(tr("Search"));
  go_->setDefault(true);
  connect(go_, &QPushButton::clicked, this, [this] { busy() ? stop() : start(); });
  row->addWidget(objective_, 1);
  row->addWidget(go_);
  column->addLayout(row);
  auto* how_many = new QHBoxLayout;
  auto* label = new QLabel(tr("Simulate the best"));
  label->setBuddy(refine_);
  how_many->addWidget(label);
  how_many->addWidget(refine_);
  how_many->addStretch(1);
  column->addLayout(how_many);
  keep_ = new QCheckBox(tr("Search only around my tp/pp/dp"));
  QStringList varied;
  for (const std::string& path : searched_options()) varied << QString::fromStdString(path);
  keep_->setToolTip(tr("Otherwise the search varies: %1").arg(varied.join(", ")));
  column->addWidget(keep_);
  bar_ = new QProgressBar;
  bar_->setRange(0, 1000);
  bar_->setTextVisible(false);
  bar_->setFixedHeight(6);
  bar_->setAccessibleName(tr("Progress of the search"));
  column->addWidget(bar_);
  state_ = new QLabel(tr("Not searched yet."));
  state_->setObjectName("faint");
  state_->setWordWrap(true);
  column->addWidget(state_);
  return controls;
}

void SearchPanel::make_table() {
  sorted_ = new QSortFilterProxyModel(this);
  sorted_->setSourceModel(&rows_);
  sorted_->setSortRole(Qt::UserRole);
  sorted_->setFilterKeyColumn(-1);
  sorted_->setFilterCaseSensitivity(Qt::CaseInsensitive);
  table_ = new QTableView;
  table_->setModel(sorted_);
  table_->setSortingEnabled(true);
  table_->sortByColumn(SearchRows::Time, Qt::AscendingOrder);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setShowGrid(false);
  table_->setWordWrap(false);
  table_->setAlternatingRowColors(true);
  table_->setAccessibleName(tr("Strategies found"));
  table_->verticalHeader()->hide();
  table_->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 8);
  table_->horizontalHeader()->setHighlightSections(false);
  table_->horizontalHeader()->setMinimumSectionSize(28);
  const auto row_of = [this](const QModelIndex& index) { return sorted_->mapToSource(index).row(); };
  connect(table_, &QTableView::clicked, this, [this, row_of](const QModelIndex& index) {
    pick(row_of(index), QApplication::keyboardModifiers().testFlag(Qt::ControlModifier));
  });
  connect(table_, &QTableView::activated, this, [this, row_of](const QModelIndex& index) { pick(row_of(index), false); });
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          [this, row_of](const QModelIndex& index) { scatter_->set_marked(index.isValid() ? row_of(index) : -1); });
}

void SearchPanel::set_theme(const Theme& theme) { scatter_->set_theme(theme); }

void SearchPanel::set_refined(int count) { refine_->setValue(count); }

void SearchPanel::start() {
  searched_ = choices_;
  rows_.clear();
  scatter_->set_marked(-1);
  const std::vector<std::string> free = keep_->isChecked() ? std::vector<std::string>() : searched_options();
  QStringList words = {"search"};
  for (const std::string& word : job_words(searched_, free)) words << QString::fromStdString(word);
  words << "--objective" << objective_->currentData().toString() << "--refine" << QString::number(refine_->value());
  words << "--rows"
        << "1000"
        << "--json"
        << "--progress"
        << "json";
  bar_->setValue(0);
  go_->setText(tr("Stop"));
  show_state(tr("Searching …"));
  clock_.start();
  child_.start(words, 120s);
}

void SearchPanel::stop() {
  if (busy()) child_.cancel();
}

void SearchPanel::take_line(const QByteArray& json) {
  if (!json.contains("\"candidate\"")) return;
  try {
    const std::string candidate = json_value(json.toStdString(), "candidate", "search");
    rows_.add(parse_search_row(candidate, "search"));
  } catch (const Error& error) {
    Q_EMIT said(QString::fromStdString(error.what()));
  }
}

QString SearchPanel::best_so_far() const {
  const auto& rows = rows_.rows();
  const auto best = std::min_element(rows.begin(), rows.end(),
                                     [](const SearchRow& a, const SearchRow& b) { return a.seconds() < b.seconds(); });
  const double seconds = static_cast<double>(clock_.elapsed()) / 1000;
  const double fraction = bar_->value() / 1000.0;
  QString text = best == rows.end()
                     ? tr("Screening …")
                     : tr("%n found, best %1", nullptr, static_cast<int>(rows.size())).arg(time_text(best->seconds()));
  if (fraction > 0.05 && fraction < 1 && seconds > 1)
    text += " · " + tr("%1 s left").arg(static_cast<int>(seconds * (1 - fraction) / fraction + 1));
  return text;
}

void SearchPanel::take_end(const ChildOutcome& outcome) {
  go_->setText(tr("Search"));
  bar_->setValue(outcome.end == ChildEnd::Done ? 1000 : 0);
  try {
    if (outcome.end == ChildEnd::Done) {
      const JsonReader json = JsonReader::parse(outcome.out.toStdString(), "search");
      if (json.has("feasible") && !json.at("feasible").as_bool()) {
        show_state(QString::fromStdString(json.at("infeasible_reason").as_string()));
      } else {
        // Those that were not told on the way: all of them, by a program that tells nothing.
        const QJsonArray results = QJsonDocument::fromJson(outcome.out).object().value("results").toArray();
        for (const auto row : results)
          rows_.add(parse_search_row(QJsonDocument(row.toObject()).toJson().toStdString(), "search"));
        show_state(
            tr("%1 strategies in %2 s, %3 checked exactly, best %4")
                .arg(count_words(json.at("enumerated").as_int()))
                .arg(static_cast<double>(clock_.elapsed()) / 1000, 0, 'f', 1)
                .arg(count_words(json.at("refined").as_int()))
                .arg(time_text(rows_.rows().empty()
                                   ? 0
                                   : rows_.rows()[static_cast<std::size_t>(pareto_front(rows_.rows()).front())].seconds())));
      }
    } else if (outcome.end == ChildEnd::Cancelled) {
      show_state(tr("Stopped. Results so far are kept. ") + best_so_far());
    } else {
      const QString message = engine_words(without_force(outcome.message));
      show_state(message);
      Q_EMIT failed(message);
    }
  } catch (const Error& error) {
    show_state(QString::fromStdString(error.what()));
    Q_EMIT said(QString::fromStdString(error.what()));
  }
  table_->resizeColumnsToContents();
  Q_EMIT finished();
}

void SearchPanel::pick(int row, bool compare) {
  if (row < 0 || row >= rows_.rowCount()) return;
  scatter_->set_marked(row);
  const QModelIndex place = sorted_->mapFromSource(rows_.index(row, 0));
  table_->setCurrentIndex(place);
  const Choices choices = choices_with(searched_, rows_.rows()[static_cast<std::size_t>(row)].strategy);
  if (compare)
    Q_EMIT compare_asked(choices);
  else
    Q_EMIT load_asked(choices);
}

// A number and its unit stay on one line.
void SearchPanel::show_state(const QString& text) {
  static const QRegularExpression unit(QStringLiteral("([0-9]) (?=\\S)"));
  state_->setText(engine_words(text).replace(unit, QStringLiteral("\\1\u00a0")));
}

}  // namespace foreshard
