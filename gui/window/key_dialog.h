// KeyDialog: a dialog that lists the keys of all actions and changes them.
#pragma once

#include <QDialog>

#include "gui/window/key_map.h"

class QKeySequenceEdit;
class QLabel;
class QTableWidget;

namespace foreshard {

class KeyDialog : public QDialog {
  Q_OBJECT
 public:
  explicit KeyDialog(KeyMap& keys, QWidget* parent = nullptr);

 private:
  void fill();
  void take();
  KeyMap& keys_;
  QTableWidget* table_ = nullptr;
  QKeySequenceEdit* edit_ = nullptr;
  QLabel* warning_ = nullptr;
};

}  // namespace foreshard
