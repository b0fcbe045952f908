#include "gui/window/key_map.h"

#include <QRegularExpression>
#include <QSettings>

namespace foreshard {

static QString key_of(const QString& name) { return "keys/" + name; }

KeyMap::KeyMap(QSettings& settings, QObject* parent) : QObject(parent), settings_(settings) {}

QAction* KeyMap::add(const QString& name, QAction* action, const QKeySequence& standard) {
  entries_.push_back({name, action, standard});
  const QVariant kept = settings_.value(key_of(name));
  action->setShortcut(kept.isValid() ? QKeySequence(kept.toString(), QKeySequence::PortableText) : standard);
  action->setObjectName(name);
  return action;
}

QAction* KeyMap::action(const QString& name) const {
  for (const KeyEntry& entry : entries_)
    if (entry.name == name) return entry.action;
  return nullptr;
}

const KeyEntry* KeyMap::holder(const QKeySequence& keys, const QAction* but) const {
  if (keys.isEmpty()) return nullptr;
  for (const KeyEntry& entry : entries_)
    if (entry.action != but && entry.action->shortcut() == keys) return &entry;
  return nullptr;
}

void KeyMap::keep(const KeyEntry& entry) {
  if (entry.action->shortcut() == entry.standard)
    settings_.remove(key_of(entry.name));
  else
    settings_.setValue(key_of(entry.name), entry.action->shortcut().toString(QKeySequence::PortableText));
}

void KeyMap::rebind(const QString& name, const QKeySequence& keys) {
  for (const KeyEntry& entry : entries_) {
    if (entry.name != name) continue;
    if (const KeyEntry* other = holder(keys, entry.action)) {
      other->action->setShortcut({});
      keep(*other);
    }
    entry.action->setShortcut(keys);
    keep(entry);
  }
}

void KeyMap::reset() {
  for (const KeyEntry& entry : entries_) {
    entry.action->setShortcut(entry.standard);
    keep(entry);
  }
}

QString plain_text(const QAction& action) {
  QString text = action.text();
  static const QRegularExpression suffix(QStringLiteral("\\(&\\w\\)"));  // the way of Chinese menus
  text.remove(suffix);
  text.remove('&');
  return text.remove(QStringLiteral("…")).trimmed();
}

}  // namespace foreshard
