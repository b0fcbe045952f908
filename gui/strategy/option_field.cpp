#include "gui/strategy/option_field.h"

#include <QComboBox>
#include <QCompleter>
#include <QCoreApplication>
#include <QGridLayout>
#include <QLineEdit>
#include <QSignalBlocker>
#include <QStyle>
#include <QWheelEvent>

#include "gui/document/choices.h"
#include "gui/widgets/auto_spin_box.h"
#include "gui/widgets/engine_words.h"

namespace foreshard {

namespace {

// The mouse wheel scrolls the panel; it must not change an option that passes under the mouse.
class CalmComboBox : public QComboBox {
 public:
  using QComboBox::QComboBox;

 protected:
  void wheelEvent(QWheelEvent* event) override { hasFocus() ? QComboBox::wheelEvent(event) : event->ignore(); }
};

bool is_degree(const std::string& path) {
  for (const char* degree : {"dp", "tp", "pp", "cp", "micro_batch", "global_batch", "seq", "zero_group", "vocab_multiple"})
    if (path == degree) return true;
  return false;
}

QString translated(const char* room, const std::string& text) {
  return text.empty() ? QString() : QCoreApplication::translate(room, text.c_str());
}

}  // namespace

QString option_label(const std::string& path) {
  std::string words = path;
  for (char& c : words)
    if (c == '_') c = ' ';
  return translated("option names", words);
}

QString option_help(const PanelOption& option) {
  QString text = translated("option help", option.help);
  if (!option.constraint.empty()) text += "\n" + translated("option help", option.constraint);
  return text;
}

OptionField::OptionField(const PanelOption& option, QWidget* parent) : QWidget(parent), option_(option) {
  auto* grid = new QGridLayout(this);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setHorizontalSpacing(8), grid->setVerticalSpacing(1);
  grid->setColumnStretch(0, 11), grid->setColumnStretch(1, 12);
  name_ = new QLabel(option_label(option_.path));
  name_->setObjectName("option_name");
  name_->setToolTip(option_help(option_));
  QWidget* editor = nullptr;
  switch (option_.type) {
    case OptionType::Choice:
    case OptionType::Flag: make_choice(), editor = choice_; break;
    case OptionType::Integer: {
      auto* spin = new AutoSpinBox(is_degree(option_.path) ? AutoSpinBox::Steps::Powers : AutoSpinBox::Steps::Ones);
      spin->set_first(QString::fromStdString(option_.otherwise).toDouble());
      line_ = spin->line(), editor = spin;
      break;
    }
    case OptionType::Number:
    case OptionType::Text:
    case OptionType::Bytes:
    case OptionType::List: make_line(), editor = line_; break;
  }
  if (line_ != nullptr) connect(line_, &QLineEdit::textChanged, this, [this] { check(), Q_EMIT edited(); });
  name_->setBuddy(editor);
  editor->setToolTip(option_help(option_));
  editor->setAccessibleName(option_label(option_.path));
  editor->setAccessibleDescription(option_help(option_));
  editor->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  editor->setMinimumWidth(60);
  grid->addWidget(name_, 0, 0);
  grid->addWidget(editor, 0, 1);
  show_auto();
}

void OptionField::make_choice() {
  choice_ = new CalmComboBox;
  choice_->setFocusPolicy(Qt::StrongFocus);
  choice_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  choice_->setMinimumContentsLength(6);
  choice_->addItem(QString(), QVariant(QString()));
  for (const std::string& value : option_.values) {
    if (value == "auto") continue;  // the same as leaving it at Auto
    const QString text =
        option_.type == OptionType::Flag ? (value == "true" ? tr("on") : tr("off")) : QString::fromStdString(value);
    choice_->addItem(text, QString::fromStdString(value));
  }
  connect(choice_, &QComboBox::currentIndexChanged, this, [this] { check(), Q_EMIT edited(); });
}

void OptionField::make_line() {
  line_ = new QLineEdit;
  line_->setClearButtonEnabled(true);
  if (option_.values.empty()) return;
  QStringList words;
  for (const std::string& value : option_.values) words << QString::fromStdString(value);
  auto* completer = new QCompleter(words, line_);
  completer->setCaseSensitivity(Qt::CaseInsensitive);
  line_->setCompleter(completer);
}

QString OptionField::text() const { return choice_ != nullptr ? choice_->currentData().toString() : line_->text().trimmed(); }

void OptionField::set_text(const QString& text) {
  if (choice_ != nullptr) {
    const QSignalBlocker quiet(choice_);
    int index = text.isEmpty() ? 0 : choice_->findData(text);
    if (index < 0) {  // a word of a newer file: kept, and complained about by whoever knows
      choice_->addItem(text, text);
      index = choice_->count() - 1;
    }
    choice_->setCurrentIndex(index);
  } else if (text != line_->text()) {
    const QSignalBlocker quiet(line_);
    line_->setText(text);
  }
  check();
}

void OptionField::check() {
  const QString value = text();
  complaint_.clear();
  if (!value.isEmpty()) complaint_ = engine_words(QString::fromStdString(complaint_about(option_.path, value.toStdString())));
  show_reason();
}

void OptionField::set_resolved(const QString& value) {
  resolved_ = value;
  show_auto();
}

void OptionField::show_auto() {
  QString value = resolved_.isEmpty() ? QString::fromStdString(option_.otherwise) : resolved_;
  if (option_.type == OptionType::Flag) value = value == "true" ? tr("on") : tr("off");
  if (value == "auto") value.clear();
  if (resolved_.isEmpty() && option_.type == OptionType::Integer && value == "0") value.clear();  // 0: it depends
  const QString text = value.isEmpty() ? tr("Auto") : tr("Auto · %1").arg(value);
  if (choice_ != nullptr)
    choice_->setItemText(0, text);
  else
    line_->setPlaceholderText(text);
}

void OptionField::set_reason(const QString& reason) {
  reason_ = reason;
  show_reason();
}

// Where the panel says it: a line below the field would move all fields after it under the mouse.
void OptionField::show_reason() {
  const QString text = reason();
  QWidget* editor = choice_ != nullptr ? static_cast<QWidget*>(choice_) : line_;
  editor->setToolTip(text.isEmpty() ? option_help(option_) : text);
  name_->setProperty("wrong", !text.isEmpty());
  name_->style()->unpolish(name_);
  name_->style()->polish(name_);
}

QString OptionField::reason() const { return complaint_.isEmpty() ? reason_ : complaint_; }

void OptionField::focus_editor() {
  if (choice_ != nullptr)
    choice_->setFocus(Qt::ShortcutFocusReason);
  else
    line_->setFocus(Qt::ShortcutFocusReason);
}

}  // namespace foreshard
