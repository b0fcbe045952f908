// Selection: the one thing that a person has picked, shared by all views so that no view calls another.
#pragma once

#include <QObject>
#include <cstdint>

#include "core/base/ids.h"

namespace foreshard {

// Action: all work of one forward, backward or update of a class, named by any span of it.
enum class PickedKind : std::uint8_t { Nothing, Span, Bubble, Class, Link, Action };

struct Picked {
  PickedKind kind = PickedKind::Nothing;
  std::int32_t index = -1;  // in Trace::spans, Document::bubbles, Trace::classes or Trace::links
  RankId rank = {};         // which member of the class was meant; invalid: any of them
  LinkId link = {};         // the same of a class of links
  bool operator==(const Picked&) const = default;
};

class Selection : public QObject {
  Q_OBJECT

 public:
  explicit Selection(QObject* parent = nullptr) : QObject(parent) {}
  Picked picked() const { return picked_; }
  void pick(Picked picked);
  void clear() { pick({}); }

 Q_SIGNALS:
  void changed();

 private:
  Picked picked_ = {};
};

}  // namespace foreshard
