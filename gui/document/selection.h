// Selection: the one object that the user has picked. All views share it, so no view calls another.
#pragma once

#include <QObject>
#include <cstdint>

#include "core/base/ids.h"

namespace foreshard {

// What kind of object is picked. Class: a class of ranks. Action: all work of one forward, backward or update of a class, identified by
// any of its spans.
enum class PickedKind : std::uint8_t { Nothing, Span, Bubble, Class, Link, Action };

struct Picked {
  PickedKind kind = PickedKind::Nothing;
  std::int32_t index = -1;  // by kind: in Trace::spans (also for Action), Document::bubbles, Trace::classes or Trace::links
  RankId rank = {};         // the member of the class that was clicked; invalid: no particular one
  LinkId link = {};         // the member of the class of links that was clicked; invalid: no particular one
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
