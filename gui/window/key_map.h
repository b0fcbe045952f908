// KeyMap: every action of the window by its name, with the keys that a person may change. What differs from the standard is
// kept in the settings.
#pragma once

#include <QAction>
#include <QKeySequence>
#include <QObject>
#include <QString>
#include <vector>

class QSettings;

namespace foreshard {

struct KeyEntry {
  QString name = {};  // "view.fit": stable, for the settings
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
  QAction* action(const QString& name) const;  // null when there is none

  // Another action that has these keys already; null: none. The empty sequence belongs to no action.
  const KeyEntry* holder(const QKeySequence& keys, const QAction* but) const;
  void rebind(const QString& name, const QKeySequence& keys);  // takes them from whoever holds them
  void reset();

 private:
  void keep(const KeyEntry& entry);
  QSettings& settings_;
  std::vector<KeyEntry> entries_;
};

// The text of an action without its mnemonic: "&Fit all" -> "Fit all".
QString plain_text(const QAction& action);

}  // namespace foreshard
