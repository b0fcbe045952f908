#include "gui/inspector/tables.h"

#include <QCoreApplication>
#include <QHeaderView>
#include <QLineEdit>
#include <QSortFilterProxyModel>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "gui/document/span_facts.h"
#include "gui/document/timeline_labels.h"
#include "gui/document/words.h"
#include "report/summary/memory_rows.h"
#include "report/words/span_words.h"

namespace foreshard {

ResultTable::ResultTable(int rows, std::vector<TableColumn> columns, std::function<Picked(int)> about, QObject* parent)
    : QAbstractTableModel(parent), rows_(rows), columns_(std::move(columns)), about_(std::move(about)) {}

int ResultTable::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : rows_; }
int ResultTable::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(columns_.size());
}

QVariant ResultTable::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const TableColumn& column = columns_[static_cast<std::size_t>(index.column())];
  if (role == Qt::DisplayRole) return column.text(index.row());
  if (role == kSortRole) return column.number ? QVariant(column.number(index.row())) : QVariant(column.text(index.row()));
  if (role == Qt::TextAlignmentRole) return QVariant((column.number ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  return {};
}

QVariant ResultTable::headerData(int section, Qt::Orientation orientation, int role) const {
  const bool known = section >= 0 && section < static_cast<int>(columns_.size());
  if (role == Qt::TextAlignmentRole && orientation == Qt::Horizontal && known)
    return QVariant((columns_[static_cast<std::size_t>(section)].number ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  if (role != Qt::DisplayRole || section < 0) return {};
  if (orientation == Qt::Vertical) return section + 1;
  return section < static_cast<int>(columns_.size()) ? columns_[static_cast<std::size_t>(section)].header : QVariant();
}

namespace {

QString words(const char* text) { return QCoreApplication::translate("Tables", text); }

TableColumn time_column(const QString& header, const std::function<Nanoseconds(int)>& value) {
  return {header, [value](int row) { return time_text(value(row)); },
          [value](int row) { return static_cast<double>(value(row).value); }};
}
TableColumn moment_column(const QString& header, const std::function<Nanoseconds(int)>& value) {
  return {header, [value](int row) { return tick_text(value(row), {1000}); },
          [value](int row) { return static_cast<double>(value(row).value); }};
}
TableColumn bytes_column(const QString& header, const std::function<Bytes(int)>& value) {
  return {header, [value](int row) { return bytes_words(value(row)); },
          [value](int row) { return static_cast<double>(value(row).value); }};
}
TableColumn share_column(const QString& header, const std::function<double(int)>& value) {
  return {header, [value](int row) { return percent_words(value(row)); }, value};
}

QString role_title(const Document& document, ClassId who) { return class_words(document.plan(), document.trace(), who); }

}  // namespace

// All, or those that are there in `visible`.
static std::vector<std::int32_t> spans_for_table(const Document& document, TimeRange visible) {
  const std::vector<Span>& spans = document.trace().spans;
  std::vector<std::int32_t> rows;
  const bool all = spans.size() <= kMostTableRows;
  for (std::size_t s = 0; s < spans.size() && rows.size() < kMostTableRows; ++s)
    if (all || (spans[s].end > visible.begin && spans[s].begin < visible.end)) rows.push_back(static_cast<std::int32_t>(s));
  return rows;
}

std::unique_ptr<ResultTable> span_table(const std::shared_ptr<const Document>& document, TimeRange visible) {
  const auto rows =
      std::make_shared<const std::vector<std::int32_t>>(spans_for_table(*document, visible));  // shared by columns
  const auto at = [document, rows](int row) -> const Span& {
    return document->trace().spans[static_cast<std::size_t>((*rows)[static_cast<std::size_t>(row)])];
  };
  std::vector<TableColumn> columns;
  columns.push_back({words("operation"),
                     [document, rows](int row) { return span_title(*document, (*rows)[static_cast<std::size_t>(row)]); },
                     {}});
  columns.push_back({words("stage"), [document, at](int row) { return role_title(*document, at(row).who); }, {}});
  columns.push_back({words("stream"),
                     [document, at](int row) {
                       const Role& role = role_of(document->plan(), document->trace(), at(row).who);
                       return QString::fromStdString(role.streams[at(row).stream.index()].name);
                     },
                     {}});
  columns.push_back(moment_column(words("begin"), [at](int row) { return at(row).begin; }));
  columns.push_back(time_column(words("duration"), [at](int row) { return at(row).end - at(row).begin; }));
  return std::make_unique<ResultTable>(static_cast<int>(rows->size()), std::move(columns), [rows](int row) {
    return Picked{PickedKind::Span, (*rows)[static_cast<std::size_t>(row)], {}};
  });
}

std::unique_ptr<ResultTable> bubble_table(const std::shared_ptr<const Document>& document) {
  const auto at = [document](int row) -> const Bubble& { return document->bubbles[static_cast<std::size_t>(row)]; };
  std::vector<TableColumn> columns;
  columns.push_back({words("cause"), [at](int row) { return cause_words(at(row).cause); }, {}});
  columns.push_back({words("stage"), [document, at](int row) { return role_title(*document, at(row).who); }, {}});
  columns.push_back(moment_column(words("begin"), [at](int row) { return at(row).begin; }));
  columns.push_back(time_column(words("idle"), [at](int row) { return at(row).end - at(row).begin; }));
  columns.push_back(
      {words("ends with"),
       [document, at](int row) { return at(row).before < 0 ? words("the iteration") : span_title(*document, at(row).before); },
       {}});
  return std::make_unique<ResultTable>(static_cast<int>(document->bubbles.size()), std::move(columns), [](int row) {
    return Picked{PickedKind::Bubble, row, {}};
  });
}

std::unique_ptr<ResultTable> stage_table_model(const std::shared_ptr<const Document>& document) {
  const auto memory = [document](int row) {
    const std::size_t role = document->trace().classes[static_cast<std::size_t>(row)].role.index();
    return role < document->summary.memory.size() ? document->summary.memory[role] : StageMemory{};
  };
  std::vector<TableColumn> columns;
  columns.push_back({words("stage"), [document](int row) { return role_title(*document, {row}); }, {}});
  columns.push_back(share_column(words("busy"), [document](int row) {
    const Lane* lane = document->lanes.find({row}, LaneKind::Compute);
    const std::int64_t makespan = document->trace().makespan.value;
    return lane == nullptr || makespan <= 0 ? 0.0
                                            : static_cast<double>(lane->busy_until(makespan)) / static_cast<double>(makespan);
  }));
  for (int c = 0; c < kCategories; ++c)
    columns.push_back(bytes_column(category_words(static_cast<Category>(c)), [document, memory, c](int row) {
      return peak_parts(document->summary, memory(row))[static_cast<std::size_t>(c)];
    }));
  columns.push_back(bytes_column(words("peak incl. framework"),
                                 [document, memory](int row) { return peak_of(document->summary, memory(row)); }));
  columns.push_back(bytes_column(words("worst case of any order"), [document, memory](int row) {
    return memory(row).order_bound > Bytes{} ? memory(row).order_bound + document->summary.fit.framework : Bytes{};
  }));
  columns.push_back(bytes_column(words("reserved arena"), [memory](int row) { return memory(row).with_framework; }));
  return std::make_unique<ResultTable>(static_cast<int>(document->trace().classes.size()), std::move(columns), [](int row) {
    return Picked{PickedKind::Class, row, {}};
  });
}

std::unique_ptr<ResultTable> link_table(const std::shared_ptr<const Document>& document) {
  const auto at = [document](int row) -> const LinkClass& { return document->trace().links[static_cast<std::size_t>(row)]; };
  std::vector<TableColumn> columns;
  columns.push_back({words("link"), [at](int row) { return QString::fromStdString(at(row).name); }, {}});
  columns.push_back({words("links"), [at](int row) { return count_words(static_cast<std::int64_t>(at(row).links.size())); },
                     [at](int row) { return static_cast<double>(at(row).links.size()); }});
  columns.push_back({words("bandwidth"), [at](int row) { return rate_words(at(row).bandwidth.value, "B/s"); },
                     [at](int row) { return at(row).bandwidth.value; }});
  columns.push_back(bytes_column(words("carried"), [at](int row) { return Bytes{static_cast<std::int64_t>(at(row).bytes)}; }));
  columns.push_back(share_column(words("used"), [document, at](int row) {
    const double possible = at(row).bandwidth.value * to_seconds(document->trace().makespan).value;
    return possible > 0 ? at(row).bytes / possible : 0.0;
  }));
  columns.push_back(share_column(words("busy"), [document, at](int row) {
    const double makespan = to_seconds(document->trace().makespan).value;
    return makespan > 0 ? at(row).busy.value / makespan : 0.0;
  }));
  return std::make_unique<ResultTable>(static_cast<int>(document->trace().links.size()), std::move(columns), [](int row) {
    return Picked{PickedKind::Link, row, {}};
  });
}

CompanionTable::CompanionTable(Selection& selection, QWidget* parent) : QWidget(parent), selection_(selection) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  filter_ = new QLineEdit;
  filter_->setPlaceholderText(tr("Filter"));
  filter_->setClearButtonEnabled(true);
  filter_->setAccessibleName(tr("Filter of the table"));
  proxy_ = new QSortFilterProxyModel(this);
  proxy_->setSortRole(ResultTable::kSortRole);
  proxy_->setFilterKeyColumn(-1);
  proxy_->setFilterCaseSensitivity(Qt::CaseInsensitive);
  view_ = new QTableView;
  view_->setModel(proxy_);
  view_->setSortingEnabled(true);
  view_->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);  // the order of the document until a header is clicked
  view_->setSelectionBehavior(QAbstractItemView::SelectRows);
  view_->setSelectionMode(QAbstractItemView::SingleSelection);
  view_->verticalHeader()->setDefaultSectionSize(22);
  view_->verticalHeader()->hide();
  view_->horizontalHeader()->setStretchLastSection(true);
  view_->horizontalHeader()->setResizeContentsPrecision(200);  // rows that are looked at for a width
  view_->setShowGrid(false);
  view_->setAlternatingRowColors(true);
  view_->setAccessibleName(tr("Table"));
  column->addWidget(filter_);
  column->addWidget(view_, 1);
  connect(filter_, &QLineEdit::textChanged, proxy_, &QSortFilterProxyModel::setFilterFixedString);
  connect(filter_, &QLineEdit::textChanged, this, [this] { Q_EMIT filtered(); });
  connect(view_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& now) {
    if (table_ && now.isValid()) selection_.pick(table_->about(proxy_->mapToSource(now).row()));
  });
}

int CompanionTable::rows_shown() const { return proxy_->rowCount(); }

void CompanionTable::set_table(std::unique_ptr<ResultTable> table) {
  proxy_->setSourceModel(table.get());
  table_ = std::move(table);
  if (!table_) return;
  view_->resizeColumnsToContents();
  for (int c = 0; c + 1 < table_->columnCount(); ++c) view_->setColumnWidth(c, std::min(view_->columnWidth(c) + 24, 320));
}

}  // namespace foreshard
