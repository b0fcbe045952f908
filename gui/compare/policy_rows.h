// PolicyRows: what `simulate --policy all --json` answers: one row for each runtime policy, as the model of a sortable table.
#pragma once

#include <QAbstractTableModel>
#include <QByteArray>
#include <string>
#include <vector>

#include "core/base/units.h"

namespace foreshard {

struct PolicyLine {                  // one policy
  std::string name = {}, of = {};    // of: the framework whose policy it is
  std::string why_not = {};          // why it was not simulated; empty: it was
  Seconds step = {};                 // time of an iteration
  double per_s = 0;                  // tokens per second, of models without tokens samples
  Bytes peak = {}, arena = {};       // of the fullest GPU: alive at once, and reserved
  Bytes gathered = {}, copied = {};  // per step and GPU: parameters all-gathered; to and from host memory and drives
  bool operator==(const PolicyLine&) const = default;
};

std::vector<PolicyLine> read_policy_rows(const QByteArray& json);  // throws Error

class PolicyRows : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { Name, Of, Step, Slower, PerSecond, Peak, Arena, Gathered, Copied, kColumns };
  static constexpr int kShareRole =
      Qt::UserRole + 1;  // length of a cell's bar: its value over the largest of its column; below 0: no bar
  explicit PolicyRows(QObject* parent = nullptr) : QAbstractTableModel(parent) {}

  const std::vector<PolicyLine>& rows() const { return rows_; }
  void set(std::vector<PolicyLine> rows);
  int fastest() const;  // index of the row with the shortest step; -1: no policy was simulated

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;  // Qt::UserRole: the value to sort by
  QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

 private:
  double value(const PolicyLine& row, int column) const;
  QString text(const PolicyLine& row, int column) const;

  std::vector<PolicyLine> rows_;
};

}  // namespace foreshard
