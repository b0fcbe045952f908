// SearchRows: the strategies that a search has found so far, as the model of a sortable table. The scatter plot shows the same rows.
#pragma once

#include <QAbstractTableModel>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/json/json.h"
#include "core/strategy/strategy.h"
#include "gui/document/choices.h"

namespace foreshard {

struct SearchRow {
  Strategy strategy = {};  // resolved
  Seconds estimate = {};
  std::optional<double> simulated = {};  // seconds; none: not simulated
  Bytes peak = {}, margin = {};          // peak memory of a device, and what it leaves free
  std::string bound_by = {};
  double seconds() const { return simulated ? *simulated : estimate.value; }
  bool operator==(const SearchRow&) const = default;
};

// Reads one entry of "results" of `search --json`, or of a line {"candidate": {...}}. `where` names the source in errors. Throws Error.
SearchRow parse_search_row(const std::string& json, const std::string& where);

// `base` with every option that a search varies replaced by its value in `found`.
Choices choices_with(const Choices& base, const Strategy& found);

// Indices of the rows that no other row beats in both time and memory, fastest first.
std::vector<int> pareto_front(const std::vector<SearchRow>& rows);

class SearchRows : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column {
    Time,
    Simulated,
    Peak,
    Free,
    Tp,
    Cp,
    Pp,
    Virtual,
    Dp,
    Ep,
    MicroBatch,
    Schedule,
    Zero,
    Recompute,
    Sequence,
    Bound,
    kColumns
  };
  explicit SearchRows(QObject* parent = nullptr) : QAbstractTableModel(parent) {}

  const std::vector<SearchRow>& rows() const { return rows_; }
  void clear();
  void add(SearchRow row);  // replaces a row of the same strategy

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;  // Qt::UserRole: the value to sort by
  QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

 private:
  std::vector<SearchRow> rows_;
  std::map<std::string, int> places_;  // text of a strategy -> index in rows_
};

// "20.39 s", "4.07 ms"; memory as "61.2 GiB".
QString time_text(double seconds);
QString memory_text(Bytes bytes);

}  // namespace foreshard
