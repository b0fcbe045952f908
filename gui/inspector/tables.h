// Tables: the accessible counterpart of each view. ResultTable is a read-only model whose cells come from a document. Every row knows the
// object that it is about, so selecting the row picks that object.
#pragma once

#include <QAbstractTableModel>
#include <QWidget>
#include <functional>
#include <memory>
#include <vector>

#include "gui/document/document.h"
#include "gui/document/selection.h"
#include "gui/document/time_axis.h"

class QLineEdit;
class QSortFilterProxyModel;
class QTableView;

namespace foreshard {

struct TableColumn {
  QString header = {};
  std::function<QString(int row)> text = {};
  std::function<double(int row)> number = {};  // the value to sort by, the cell is right-aligned; none: sort by text
};

class ResultTable : public QAbstractTableModel {
  Q_OBJECT

 public:
  static constexpr int kSortRole = Qt::UserRole;
  ResultTable(int rows, std::vector<TableColumn> columns, std::function<Picked(int row)> about, QObject* parent = nullptr);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;
  Picked about(int row) const { return about_ ? about_(row) : Picked{}; }

 private:
  int rows_;
  std::vector<TableColumn> columns_;
  std::function<Picked(int)> about_;
};

inline constexpr std::size_t kMostTableRows = 50'000;  // of operations: sorting more would block the window

// Each table shares ownership of the document.
// Operations, as in the timeline. If there are more than kMostTableRows, the first kMostTableRows that intersect `visible`.
std::unique_ptr<ResultTable> span_table(const std::shared_ptr<const Document>& document, TimeRange visible);
std::unique_ptr<ResultTable> bubble_table(const std::shared_ptr<const Document>& document);  // idle time, as in the timeline
std::unique_ptr<ResultTable> stage_table_model(
    const std::shared_ptr<const Document>& document);                                      // stages, with memory and busy time
std::unique_ptr<ResultTable> link_table(const std::shared_ptr<const Document>& document);  // links, as in the topology

// A table with an input line that filters it. Moving to a row picks its object.
class CompanionTable : public QWidget {
  Q_OBJECT

 public:
  explicit CompanionTable(Selection& selection, QWidget* parent = nullptr);  // `selection` must outlive it
  void set_table(std::unique_ptr<ResultTable> table);                        // null: empty
  QTableView* view() const { return view_; }
  const ResultTable* table() const { return table_.get(); }
  int rows_shown() const;  // how many rows pass the filter

 Q_SIGNALS:
  void filtered();

 private:
  Selection& selection_;
  std::unique_ptr<ResultTable> table_ = {};
  QSortFilterProxyModel* proxy_ = nullptr;
  QTableView* view_ = nullptr;
  QLineEdit* filter_ = nullptr;
};

}  // namespace foreshard
