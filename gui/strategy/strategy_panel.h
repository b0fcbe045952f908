// StrategyPanel: fields for the model, the cluster and every option of a strategy that the foreshard program lists. Each option can be left
// at Auto. A wrong or infeasible value is marked, and a box below the fields says why.
#pragma once

#include <QStringList>
#include <QWidget>
#include <map>
#include <vector>

#include "gui/document/choices.h"
#include "gui/strategy/panel_options.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QToolButton;
class QVBoxLayout;

namespace foreshard {

class AutoSpinBox;
class OptionField;

class StrategyPanel : public QWidget {
  Q_OBJECT
 public:
  explicit StrategyPanel(QWidget* parent = nullptr);

  void set_options(const std::vector<PanelOption>& options);  // keeps the choices
  void set_names(const std::vector<std::string>& models, const std::vector<std::string>& clusters);

  Choices choices() const { return choices_; }
  void set_choices(const Choices& choices);  // emits no signal
  bool valid() const;                        // every value can be read; the strategy may still be infeasible

  // Shows why the choices are infeasible and marks the field that `reason` names. Empty: nothing is wrong. `would_help`: proposed changes,
  // shown as links. `details`: a tooltip.
  void show_refusal(const QString& reason, const QStringList& would_help, const QString& details = {});
  void show_estimate(const QString& text, bool warning);
  void show_resolved(const std::map<std::string, std::string>& values);  // path -> the value that Auto stands for

  QStringList option_names() const;  // for the command palette
  void focus_option(const QString& path);
  OptionField* field(const std::string& path) const;

 Q_SIGNALS:
  // After each change by the user: `path` of the option, or "model", "cluster", "nodes", "settings".
  void edited(const foreshard::Choices& choices, const QString& path);
  void remedy_chosen(const QString& remedy);  // the user clicked a proposed change

 private:
  QWidget* make_head();
  QWidget* make_group(const std::string& name, bool open);
  void read_field(const std::string& path);
  void read_head(const QString& path);
  QWidget* make_answer();
  QString wrong_in_head() const;
  void show_refused();

  Choices choices_;
  std::string last_edited_;
  std::map<std::string, OptionField*> fields_;
  std::vector<std::string> order_;
  QComboBox* model_ = nullptr;
  QComboBox* cluster_ = nullptr;
  AutoSpinBox* nodes_ = nullptr;
  QLineEdit* settings_ = nullptr;
  QLabel* estimate_ = nullptr;
  QLabel* refusal_ = nullptr;
  QString refused_ = {};  // the reason, untranslated
  QStringList would_help_ = {};
  QWidget* groups_ = nullptr;
  QVBoxLayout* groups_layout_ = nullptr;
};

}  // namespace foreshard
