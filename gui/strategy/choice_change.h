// ChoiceChange: one turn of a knob as an entry of the undo stack. Turns of the same knob within a moment become one.
#pragma once

#include <QUndoCommand>
#include <chrono>
#include <functional>

#include "gui/document/choices.h"

namespace foreshard {

class ChoiceChange : public QUndoCommand {
 public:
  using Apply = std::function<void(const Choices&)>;
  // `knob` names what was turned; empty: merges with nothing.
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
  bool first_ = true;  // the panel shows it already when it is pushed
};

}  // namespace foreshard
