// StrategyPanel: model, cluster and every option of the strategy, made from what the program lists of itself. Each field can be
// left at Auto; what cannot be is marked, and a box below the fields says why.
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

  void set_options(const std::vector<PanelOption>& options);  // keeps what is chosen
  void set_names(const std::vector<std::string>& models, const std::vector<std::string>& clusters);

  Choices choices() const { return choices_; }
  void set_choices(const Choices& choices);  // without a signal
  bool valid() const;                        // every value can be read; the combination may still be impossible

  // What the engine says of the whole; the field that it speaks of is marked. Empty: nothing is wrong. `details` are shown when the
  // mouse asks for them.
  void show_refusal(const QString& reason, const QStringList& would_help, const QString& details = {});
  void show_estimate(const QString& text, bool warning);
  void show_resolved(const std::map<std::string, std::string>& values);  // what Auto came to

  QStringList option_names() const;  // for the command palette
  void focus_option(const QString& path);
  OptionField* field(const std::string& path) const;

 Q_SIGNALS:
  // After each change by a person: `path` of the option, or "model", "cluster", "nodes", "settings".
  void edited(const foreshard::Choices& choices, const QString& path);
  void remedy_chosen(const QString& remedy);

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
  QString refused_ = {};  // in the words of the engine
  QStringList would_help_ = {};
  QWidget* groups_ = nullptr;
  QVBoxLayout* groups_layout_ = nullptr;
};

}  // namespace foreshard
