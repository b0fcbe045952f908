// OptionField: one knob of the strategy panel: its name, an editor that fits its type and can be left at Auto, and why its value
// cannot be.
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
  void set_text(const QString& text);  // without a signal
  bool valid() const { return complaint_.isEmpty(); }
  QString reason() const;                   // why it is marked as wrong; empty: it is not
  void set_resolved(const QString& value);  // what Auto came to; empty: not known
  void set_reason(const QString& reason);   // of the engine; empty: none. A wrong value of its own goes before it
  void focus_editor();

 Q_SIGNALS:
  void edited();

 private:
  void make_choice();
  void make_line();
  void check();
  void show_auto();
  void show_reason();

  PanelOption option_;
  QLabel* name_ = nullptr;
  QComboBox* choice_ = nullptr;  // exactly one of the two is there
  QLineEdit* line_ = nullptr;
  QString resolved_, complaint_, reason_;
};

// "virtual_stages" -> "virtual stages", in the language of the program.
QString option_label(const std::string& path);
QString option_help(const PanelOption& option);

}  // namespace foreshard
