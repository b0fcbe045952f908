// ChoiceChange: one change of the choices as an entry of the undo stack. Changes of the same option in quick succession are merged.
#pragma once

#include <QUndoCommand>
#include <chrono>
#include <functional>

#include "gui/document/choices.h"

namespace foreshard {

class ChoiceChange : public QUndoCommand {
 public:
  using Apply = std::function<void(const Choices&)>;
  // `knob`: path of the changed option; empty: never merged. `apply` is called with the choices to restore.
  ChoiceChange(Choices before, Choices after, QString knob, Apply apply);

  void undo() override;
  void redo() override;
  int id() const override { return 1; }
  bool mergeWith(const QUndoCommand* other) override;

 private:
  Choices before_, after_;
  QString knob_;
  Apply apply_;
  std::chrono::steady_clock::time_point when_;
  bool first_ = true;  // the first redo, by QUndoStack::push, does nothing: the change is already made
};

}  // namespace foreshard
