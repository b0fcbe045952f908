#include "gui/strategy/choice_change.h"

#include <utility>

#include "gui/strategy/option_field.h"

namespace foreshard {

ChoiceChange::ChoiceChange(Choices before, Choices after, QString knob, Apply apply)
    : QUndoCommand(knob.isEmpty() ? QString() : option_label(knob.toStdString())),
      before_(std::move(before)),
      after_(std::move(after)),
      knob_(std::move(knob)),
      apply_(std::move(apply)),
      when_(std::chrono::steady_clock::now()) {}

void ChoiceChange::undo() { apply_(before_); }

void ChoiceChange::redo() {
  if (!std::exchange(first_, false)) apply_(after_);
}

bool ChoiceChange::mergeWith(const QUndoCommand* other) {
  const auto* next = dynamic_cast<const ChoiceChange*>(other);
  if (next == nullptr || knob_.isEmpty() || next->knob_ != knob_) return false;
  if (next->when_ - when_ > std::chrono::milliseconds(1500)) return false;
  after_ = next->after_;
  when_ = next->when_;
  if (after_ == before_) setObsolete(true);
  return true;
}

}  // namespace foreshard
