// KeyMap: every action of the window by name, with its keys. The user can change the keys; keys that differ from the standard are kept
// in the settings.
#pragma once

#include <QAction>
#include <QKeySequence>
#include <QObject>
#include <QString>
#include <vector>

class QSettings;

namespace foreshard {

struct KeyEntry {
  QString name = {};  // "view.fit": the key in the settings, never changes
  QAction* action = nullptr;
  QKeySequence standard = {};
};

class KeyMap : public QObject {
  Q_OBJECT
 public:
  explicit KeyMap(QSettings& settings, QObject* parent = nullptr);  // `settings` must outlive it

  // Registers the action and gives it the keys of the settings, or the standard ones.
  QAction* add(const QString& name, QAction* action, const QKeySequence& standard = {});
  const std::vector<KeyEntry>& entries() const { return entries_; }
  QAction* action(const QString& name) const;  // null: no such action

  // The action other than `but` that has these keys; null: none. The empty sequence belongs to no action.
  const KeyEntry* holder(const QKeySequence& keys, const QAction* but) const;
  void rebind(const QString& name, const QKeySequence& keys);  // an action that had these keys loses them
  void reset();                                                // all actions get their standard keys

 private:
  void keep(const KeyEntry& entry);
  QSettings& settings_;
  std::vector<KeyEntry> entries_;
};

// The text of an action without its mnemonic: "&Fit all" -> "Fit all".
QString plain_text(const QAction& action);

}  // namespace foreshard
