#include "gui/strategy/suggestion_list.h"

#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

#include "gui/document/search_rows.h"

namespace foreshard {

SuggestionList::SuggestionList(const QString& program, QWidget* parent) : QWidget(parent), trial_(program) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(12, 8, 12, 10);
  column->setSpacing(4);
  title_ = new QLabel;
  title_->setWordWrap(true);
  column->addWidget(title_);
  rows_ = new QVBoxLayout;
  rows_->setSpacing(4);
  column->addLayout(rows_);
  connect(&trial_, &SuggestionTrial::changed, this, &SuggestionList::refill);
  hide();
}

void SuggestionList::ask(BubbleCause cause, const Choices& choices, const std::map<std::string, std::string>& resolved,
                         double seconds_now) {
  show();
  trial_.start(ideas_against(cause, choices, resolved), seconds_now);
}

void SuggestionList::clear() {
  trial_.stop();
  hide();
}

void SuggestionList::refill() {
  while (QLayoutItem* item = rows_->takeAt(0)) {
    delete item->widget();
    delete item;
  }
  for (const Suggestion& suggestion : trial_.found()) {
    auto* button = new QPushButton(QString::fromStdString(suggestion.text) + "\n" +
                                   tr("%1 per step, %2 shorter (%3 %)")
                                       .arg(time_text(suggestion.seconds), time_text(suggestion.gain))
                                       .arg(suggestion.gain / (suggestion.seconds + suggestion.gain) * 100, 0, 'f', 1));
    button->setStyleSheet("text-align: left; padding: 5px 8px;");
    button->setAccessibleDescription(tr("Makes this change"));
    connect(button, &QPushButton::clicked, this, [this, choices = suggestion.choices] { Q_EMIT chosen(choices); });
    rows_->addWidget(button);
  }
  const auto tried = static_cast<int>(trial_.tried()), count = static_cast<int>(trial_.count());
  if (trial_.busy())
    title_->setText(tr("Would help (simulating %1 of %2 …)").arg(tried + 1).arg(count));
  else if (trial_.found().empty())
    title_->setText(count == 0 ? tr("No single change is known to help here.")
                               : tr("%n change(s) simulated: none makes a step shorter.", nullptr, count));
  else
    title_->setText(tr("Would help (each simulated):"));
  if (!trial_.busy()) Q_EMIT settled();
}

}  // namespace foreshard
