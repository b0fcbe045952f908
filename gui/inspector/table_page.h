// TablePage: one page with the tables of all views. They hold what the pictures show, as text that can be sorted, filtered and read by a
// screen reader.
#pragma once

#include <QTimer>
#include <QWidget>
#include <memory>

#include "gui/document/document.h"
#include "gui/document/selection.h"
#include "gui/document/time_axis.h"

class QComboBox;
class QLabel;

namespace foreshard {

class CompanionTable;
class ResultTable;

enum class TableKind : std::uint8_t { Operations, Bubbles, Stages, Links };
inline constexpr int kTableKinds = 4;

class TablePage : public QWidget {
  Q_OBJECT
 public:
  TablePage(TimeAxis& axis, Selection& selection, QWidget* parent = nullptr);  // both must outlive it

  void set_document(std::shared_ptr<const Document> document);  // null: empty
  void show_kind(TableKind kind);
  TableKind kind() const;
  const ResultTable* table() const;
  QString note() const;  // a sentence: how many rows there are and how many are listed

 protected:
  void showEvent(QShowEvent* event) override;  // makes the table when it is first visible

 private:
  void refill();
  void count_rows();

  TimeAxis& axis_;
  std::shared_ptr<const Document> document_ = {};  // shared with the views
  QComboBox* kind_ = nullptr;
  QLabel* note_ = nullptr;
  CompanionTable* table_ = nullptr;
  QTimer later_;
  bool stale_ = true;
};

}  // namespace foreshard
