#include "gui/strategy/strategy_panel.h"

#include <QComboBox>
#include <QCompleter>
#include <QCoreApplication>
#include <QFileDialog>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QScrollArea>
#include <QSignalBlocker>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "core/strategy/strategy_options.h"
#include "gui/document/words.h"
#include "gui/strategy/option_field.h"
#include "gui/widgets/auto_spin_box.h"
#include "gui/widgets/engine_words.h"

namespace foreshard {

namespace {

QComboBox* name_box(const QString& accessible) {
  auto* box = new QComboBox;
  box->setEditable(true);
  box->setInsertPolicy(QComboBox::NoInsert);
  box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  box->setMinimumContentsLength(10);
  box->setFocusPolicy(Qt::StrongFocus);
  box->setAccessibleName(accessible);
  box->completer()->setFilterMode(Qt::MatchContains);
  box->completer()->setCompletionMode(QCompleter::PopupCompletion);
  return box;
}

QLabel* wrapped_label(const char* name) {
  auto* label = new QLabel;
  label->setObjectName(name);
  label->setWordWrap(true);
  label->setTextFormat(Qt::PlainText);
  label->setTextInteractionFlags(Qt::TextBrowserInteraction);
  label->hide();
  return label;
}

QString joined(const std::vector<std::string>& settings) {
  QStringList words;
  for (const std::string& setting : settings) words << QString::fromStdString(setting);
  return words.join("; ");
}

void fill(QComboBox* box, const std::vector<std::string>& names) {
  const QSignalBlocker quiet(box);
  const QString text = box->currentText();
  box->clear();
  for (const std::string& name : names) box->addItem(QString::fromStdString(name));
  box->setCurrentText(text);
}

// "--recompute full --zero 1: 41.3 GiB on stage 0" -> "Set recompute to full, Set zero to 1: 41.3 GiB ..."; what names no
// option of ours stays as it is.
QString remedy_words(const QString& remedy) {
  QStringList said;
  const QStringList words = remedy.section(": ", 0, 0).split(' ', Qt::SkipEmptyParts);
  const auto& all = strategy_options();
  for (qsizetype i = 0; i < words.size(); ++i) {
    const auto option = std::ranges::find(all, words[i].toStdString(), &StrategyOption::flag);
    const bool value = i + 1 < words.size() && !words[i + 1].startsWith("--");
    if (option == all.end() || value == (option->type == OptionType::Flag)) return engine_words(remedy);
    const QString name = option_label(option->path);
    said << (value ? StrategyPanel::tr("Set %1 to %2").arg(name, words[++i]) : StrategyPanel::tr("Turn on %1").arg(name));
  }
  const QString rest = remedy.section(": ", 1);
  return said.join(", ") + (rest.isEmpty() ? QString() : ": " + engine_words(rest));
}

}  // namespace

StrategyPanel::StrategyPanel(QWidget* parent) : QWidget(parent) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(make_head());
  groups_ = new QWidget;
  groups_layout_ = new QVBoxLayout(groups_);
  groups_layout_->setContentsMargins(10, 2, 10, 10);
  groups_layout_->setSpacing(4);
  auto* scroll = new QScrollArea;
  scroll->setWidget(groups_);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setFocusPolicy(Qt::NoFocus);  // its fields are stops enough
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  column->addWidget(scroll, 1);
  column->addWidget(make_answer());
  setMinimumWidth(230);
}

// What the program says of the choices, always as tall as this: no field moves under the mouse when it says more.
QWidget* StrategyPanel::make_answer() {
  auto* words = new QWidget;
  auto* column = new QVBoxLayout(words);
  column->setContentsMargins(10, 6, 10, 6);
  column->setSpacing(4);
  estimate_ = wrapped_label("estimate");
  refusal_ = wrapped_label("refusal");
  refusal_->setTextFormat(Qt::RichText);
  connect(refusal_, &QLabel::linkActivated, this, &StrategyPanel::remedy_chosen);
  column->addWidget(estimate_);
  column->addWidget(refusal_);
  column->addStretch(1);
  auto* answer = new QScrollArea;
  answer->setObjectName("answer");
  answer->setAccessibleName(tr("What the program says of this strategy"));
  answer->setWidget(words);
  answer->setWidgetResizable(true);
  answer->setFrameShape(QFrame::NoFrame);
  answer->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  answer->setFixedHeight(8 * fontMetrics().height());
  return answer;
}

QWidget* StrategyPanel::make_head() {
  auto* head = new QWidget;
  auto* grid = new QGridLayout(head);
  grid->setContentsMargins(10, 10, 10, 6);
  grid->setHorizontalSpacing(8), grid->setVerticalSpacing(5);
  grid->setColumnStretch(1, 1);
  model_ = name_box(tr("Model")), cluster_ = name_box(tr("Cluster"));
  nodes_ = new AutoSpinBox(AutoSpinBox::Steps::Powers);
  nodes_->line()->setPlaceholderText(tr("Auto · from the cluster file"));
  nodes_->setAccessibleName(tr("Nodes"));
  settings_ = new QLineEdit;
  settings_->setObjectName("what_if");
  settings_->setPlaceholderText("cluster.fabric.oversubscription=2");
  settings_->setToolTip(tr("Override any field, e.g. cluster.fabric.oversubscription=2; model.n_layer=48"));
  settings_->setAccessibleName(tr("What if"));
  settings_->setClearButtonEnabled(true);
  int row = 0;
  const auto add = [&](const QString& name, QWidget* editor, const QString& filter) {
    auto* label = new QLabel(name);
    label->setBuddy(editor);
    grid->addWidget(label, row, 0);
    grid->addWidget(editor, row, 1, 1, filter.isEmpty() ? 2 : 1);
    if (!filter.isEmpty()) {
      auto* open = new QToolButton;
      open->setText("…");
      open->setToolTip(tr("Choose a file"));
      open->setAccessibleName(tr("Choose a file: %1").arg(name));
      auto* box = static_cast<QComboBox*>(editor);
      connect(open, &QToolButton::clicked, this, [this, box, name, filter] {
        const QString file = QFileDialog::getOpenFileName(this, name, {}, filter);
        if (!file.isEmpty()) box->setCurrentText(file);
      });
      grid->addWidget(open, row, 2);
    }
    ++row;
  };
  add(tr("Model"), model_, tr("Models (*.json)"));
  add(tr("Cluster"), cluster_, tr("Clusters (*.json)"));
  add(tr("Nodes"), nodes_, {});
  add(tr("What if"), settings_, {});
  connect(model_, &QComboBox::currentTextChanged, this, [this] { read_head("model"); });
  connect(cluster_, &QComboBox::currentTextChanged, this, [this] { read_head("cluster"); });
  connect(nodes_->line(), &QLineEdit::textChanged, this, [this] { read_head("nodes"); });
  connect(settings_, &QLineEdit::textChanged, this, [this] { read_head("settings"); });
  return head;
}

QWidget* StrategyPanel::make_group(const std::string& name, bool open) {
  auto* group = new QWidget;
  auto* column = new QVBoxLayout(group);
  column->setContentsMargins(0, 4, 0, 2);
  column->setSpacing(4);
  auto* title = new QToolButton;
  title->setObjectName("group_title");
  title->setText(QCoreApplication::translate("option groups", name.c_str()));
  title->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  title->setCheckable(true);
  title->setChecked(open);
  title->setArrowType(open ? Qt::DownArrow : Qt::RightArrow);
  title->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  auto* body = new QWidget;
  auto* rows = new QVBoxLayout(body);
  rows->setContentsMargins(0, 0, 0, 0);
  rows->setSpacing(4);
  body->setVisible(open);
  connect(title, &QToolButton::toggled, body, [title, body](bool on) {
    body->setVisible(on);
    title->setArrowType(on ? Qt::DownArrow : Qt::RightArrow);
  });
  column->addWidget(title);
  column->addWidget(body);
  groups_layout_->addWidget(group);
  return body;
}

void StrategyPanel::set_options(const std::vector<PanelOption>& options) {
  delete groups_->layout();
  qDeleteAll(groups_->findChildren<QWidget*>(QString(), Qt::FindDirectChildrenOnly));
  groups_layout_ = new QVBoxLayout(groups_);
  groups_layout_->setContentsMargins(10, 2, 10, 10);
  groups_layout_->setSpacing(2);
  fields_.clear(), order_.clear();
  std::map<std::string, QWidget*> bodies;
  for (const PanelOption& option : options) {
    QWidget*& body = bodies[option.group];
    if (body == nullptr) body = make_group(option.group, bodies.size() <= 3);  // the first three are what one turns
    auto* made = new OptionField(option);
    body->layout()->addWidget(made);
    fields_[option.path] = made;
    order_.push_back(option.path);
    connect(made, &OptionField::edited, this, [this, path = option.path] { read_field(path); });
  }
  groups_layout_->addStretch(1);
  set_choices(choices_);
}

void StrategyPanel::set_names(const std::vector<std::string>& models, const std::vector<std::string>& clusters) {
  fill(model_, models);
  fill(cluster_, clusters);
}

void StrategyPanel::set_choices(const Choices& choices) {
  choices_ = choices;
  const QSignalBlocker a(model_), b(cluster_), c(nodes_->line()), d(settings_);
  model_->setCurrentText(QString::fromStdString(choices.model));
  cluster_->setCurrentText(QString::fromStdString(choices.cluster));
  if (const QString nodes = choices.nodes > 0 ? QString::number(choices.nodes) : QString(); nodes != nodes_->line()->text())
    nodes_->line()->setText(nodes);
  settings_->setText(joined(choices.settings));
  settings_->setCursorPosition(0);  // its beginning is seen
  for (const auto& [path, made] : fields_) {
    const auto found = choices.strategy.find(path);
    made->set_text(found == choices.strategy.end() ? QString() : QString::fromStdString(found->second));
  }
  show_refused();
}

void StrategyPanel::read_field(const std::string& path) {
  const std::string value = fields_.at(path)->text().toStdString();
  last_edited_ = path;
  if (value.empty())
    choices_.strategy.erase(path);
  else
    choices_.strategy[path] = value;
  show_refused();
  Q_EMIT edited(choices_, QString::fromStdString(path));
}

void StrategyPanel::read_head(const QString& path) {
  last_edited_ = path.toStdString();
  const bool another = path == "model" && model_->findText(model_->currentText(), Qt::MatchFixedString) >= 0;
  if (another) {  // a name of the list: what was set of the model before is not its
    const QSignalBlocker quiet(settings_);
    const Choices next = with_model(choices_, model_->currentText().trimmed().toStdString());
    if (next.settings != choices_.settings) settings_->setText(joined(next.settings));
  }
  choices_.model = model_->currentText().trimmed().toStdString();
  choices_.cluster = cluster_->currentText().trimmed().toStdString();
  choices_.nodes = std::max(0, nodes_->line()->text().toInt());
  choices_.settings.clear();
  for (const QString& part : settings_->text().split(';', Qt::SkipEmptyParts))
    if (const QString setting = part.trimmed(); !setting.isEmpty()) choices_.settings.push_back(setting.toStdString());
  show_refused();
  Q_EMIT edited(choices_, path);
}

QString StrategyPanel::wrong_in_head() const {
  const QString nodes = nodes_->line()->text().trimmed();
  bool number = true;
  if (!nodes.isEmpty() && (nodes.toInt(&number) <= 0 || !number))
    return tr("Nodes: \"%1\" is not a whole number from 1.").arg(nodes);
  for (const std::string& setting : choices_.settings)
    if (setting.find('=') == std::string::npos || setting.find('.') == std::string::npos)
      return tr("\"%1\" is not of the form PATH=VALUE.").arg(QString::fromStdString(setting));
  return {};
}

bool StrategyPanel::valid() const {
  return wrong_in_head().isEmpty() && !choices_.model.empty() && !choices_.cluster.empty() &&
         std::all_of(fields_.begin(), fields_.end(), [](const auto& entry) { return entry.second->valid(); });
}

void StrategyPanel::show_refusal(const QString& reason, const QStringList& would_help, const QString& details) {
  refusal_->setToolTip(engine_words(details));
  refused_ = reason;
  would_help_ = reason.isEmpty() ? QStringList() : would_help;
  // A shortage of memory names a stage and categories: it is the whole strategy's.
  const std::string meant =
      reason.isEmpty() || reason.contains("GiB") ? std::string() : option_meant(reason.toStdString(), last_edited_, order_);
  for (const auto& [path, made] : fields_) made->set_reason(path == meant ? engine_words(reason) : QString());
  show_refused();
}

// A line may end after each comma: the panel is narrow, and lists of choices have no spaces.
static QString breakable(const QString& text) { return rich_words(text).replace(",", ",&#8203;"); }

void StrategyPanel::show_refused() {
  QStringList lines;
  if (const QString wrong = wrong_in_head(); !wrong.isEmpty()) lines << QStringLiteral("⚠ ") + breakable(wrong);
  for (const std::string& path : order_)
    if (const OptionField* made = fields_.at(path); !made->valid())
      lines << QStringLiteral("⚠ <b>%1</b>: ").arg(option_label(path).toHtmlEscaped()) + breakable(made->reason());
  if (lines.isEmpty() && !refused_.isEmpty()) {
    lines << QStringLiteral("⚠ ") + breakable(engine_words(refused_));
    QString title = refused_.contains("GiB") ? tr("To make it fit:") : tr("What would help:");
    for (const QString& remedy : would_help_) {
      Choices scratch = choices_;
      const QString words = remedy_words(remedy).toHtmlEscaped();
      const bool can = apply_remedy(scratch, remedy.toStdString());
      if (can && scratch == choices_) continue;  // is so already
      if (!title.isEmpty()) lines << std::exchange(title, {});
      lines << "• " + (can ? "<a href=\"" + remedy.toHtmlEscaped() + "\">" + words + "</a>" : words);
    }
  }
  refusal_->setText(lines.join("<br>"));
  refusal_->setVisible(!lines.isEmpty());
}

void StrategyPanel::show_estimate(const QString& text, bool warning) {
  estimate_->setText(text);
  estimate_->setProperty("wrong", warning);
  estimate_->setVisible(!text.isEmpty());
}

void StrategyPanel::show_resolved(const std::map<std::string, std::string>& values) {
  for (const auto& [path, made] : fields_) {
    const auto found = values.find(path);
    made->set_resolved(found == values.end() ? QString() : QString::fromStdString(found->second));
  }
}

QStringList StrategyPanel::option_names() const {
  QStringList names;
  for (const std::string& path : order_) names << QString::fromStdString(path);
  return names;
}

OptionField* StrategyPanel::field(const std::string& path) const {
  const auto found = fields_.find(path);
  return found == fields_.end() ? nullptr : found->second;
}

void StrategyPanel::focus_option(const QString& path) {
  OptionField* const made = field(path.toStdString());
  if (made == nullptr) return;
  for (QWidget* up = made->parentWidget(); up != nullptr && up != groups_; up = up->parentWidget())
    if (auto* title = up->findChild<QToolButton*>("group_title", Qt::FindDirectChildrenOnly)) title->setChecked(true);
  made->focus_editor();
}

}  // namespace foreshard
