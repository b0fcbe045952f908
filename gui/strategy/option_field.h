// OptionField: one option in the strategy panel: its name, an editor for its type that can be left at Auto, and the reason why its value
// is invalid.
#pragma once

#include <QLabel>
#include <QString>
#include <QWidget>

#include "gui/strategy/panel_options.h"

class QComboBox;
class QLineEdit;

namespace foreshard {

class OptionField : public QWidget {
  Q_OBJECT
 public:
  explicit OptionField(const PanelOption& option, QWidget* parent = nullptr);

  const PanelOption& option() const { return option_; }
  QString text() const;                // as typed; empty: Auto
  void set_text(const QString& text);  // emits no signal
  bool valid() const { return complaint_.isEmpty(); }
  QString reason() const;                   // why it is marked as wrong; empty: it is not marked
  void set_resolved(const QString& value);  // the value that Auto stands for; empty: unknown
  void set_reason(const QString& reason);   // from the program; empty: none. An unreadable value is shown first
  void focus_editor();

 Q_SIGNALS:
  void edited();  // by the user

 private:
  void make_choice();
  void make_line();
  void check();
  void show_auto();
  void show_reason();

  PanelOption option_;
  QLabel* name_ = nullptr;
  QComboBox* choice_ = nullptr;  // either choice_ or line_ is null
  QLineEdit* line_ = nullptr;
  QString resolved_, complaint_, reason_;
};

// The label of the option, translated: "virtual_stages" -> "virtual stages".
QString option_label(const std::string& path);
QString option_help(const PanelOption& option);  // its tooltip, translated

}  // namespace foreshard
