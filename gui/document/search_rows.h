// SearchRows: the strategies that a search has found so far, as a table that sorts and that is the twin of the scatter.
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
  std::optional<double> simulated = {};  // seconds
  Bytes peak = {}, margin = {};
  std::string bound_by = {};
  double seconds() const { return simulated ? *simulated : estimate.value; }
  bool operator==(const SearchRow&) const = default;
};

// One entry of "results" of `search --json`, or of a line {"candidate": {...}}. Throws Error.
SearchRow parse_search_row(const std::string& json, const std::string& where);

// The choices with what a search varies replaced by what the row has.
Choices choices_with(const Choices& base, const Strategy& found);

// Rows that no other row beats in both time and memory, fastest first: indices.
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
  void add(SearchRow row);  // in place of the same strategy, when it is there

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;  // Qt::UserRole: what sorts
  QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

 private:
  std::vector<SearchRow> rows_;
  std::map<std::string, int> places_;  // by the text of the strategy
};

// "20.39 s", "4.07 ms"; "61.2 GiB".
QString time_text(double seconds);
QString memory_text(Bytes bytes);

}  // namespace foreshard
