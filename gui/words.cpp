#include "gui/words.h"

#include <QCoreApplication>
#include <QRegularExpression>
#include <array>
#include <cmath>

#include "report/span_words.h"

namespace foreshard {

static QString words(const char* text) { return QCoreApplication::translate("Words", text); }

QString cause_words(BubbleCause cause) {
  switch (cause) {
    case BubbleCause::WarmUp: return words(QT_TRANSLATE_NOOP("Words", "warm-up"));
    case BubbleCause::Drain: return words(QT_TRANSLATE_NOOP("Words", "drain"));
    case BubbleCause::Dependency: return words(QT_TRANSLATE_NOOP("Words", "dependency"));
    case BubbleCause::ExposedCommunication: return words(QT_TRANSLATE_NOOP("Words", "exposed communication"));
    case BubbleCause::Straggler: return words(QT_TRANSLATE_NOOP("Words", "straggler"));
    case BubbleCause::Barrier: return words(QT_TRANSLATE_NOOP("Words", "barrier"));
  }
  return {};
}

QString cause_explained(BubbleCause cause) {
  switch (cause) {
    case BubbleCause::WarmUp:
      return words(QT_TRANSLATE_NOOP("Words", "The pipeline is filling: this stage has not seen its first backward yet."));
    case BubbleCause::Drain:
      return words(
          QT_TRANSLATE_NOOP("Words", "The pipeline is emptying: this stage has no forward left to fill the wait with."));
    case BubbleCause::Dependency:
      return words(QT_TRANSLATE_NOOP("Words", "Another stage was still computing what this one needs next."));
    case BubbleCause::ExposedCommunication:
      return words(QT_TRANSLATE_NOOP("Words", "Data was on the wire and nothing was left to compute meanwhile."));
    case BubbleCause::Straggler:
      return words(QT_TRANSLATE_NOOP("Words", "A slower rank of the same stage came late to a collective."));
    case BubbleCause::Barrier:
      return words(QT_TRANSLATE_NOOP("Words", "The work is done; the step ends when the last rank is done."));
  }
  return {};
}

QString category_words(Category category) {
  switch (category) {
    case Category::Parameters: return words(QT_TRANSLATE_NOOP("Words", "parameters"));
    case Category::Gradients: return words(QT_TRANSLATE_NOOP("Words", "gradients"));
    case Category::Optimizer: return words(QT_TRANSLATE_NOOP("Words", "optimizer"));
    case Category::Activations: return words(QT_TRANSLATE_NOOP("Words", "activations"));
    case Category::Transient: return words(QT_TRANSLATE_NOOP("Words", "transient"));
    case Category::Communication: return words(QT_TRANSLATE_NOOP("Words", "communication"));
    case Category::Framework: return words(QT_TRANSLATE_NOOP("Words", "framework"));
  }
  return {};
}

QString bytes_words(Bytes bytes) {
  static constexpr std::array<const char*, 5> units = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes.value);
  std::size_t unit = 0;
  for (; std::abs(value) >= 1000 && unit + 1 < units.size(); ++unit) value /= 1024;
  const int decimals = unit == 0 || std::abs(value) >= 100 ? 0 : std::abs(value) >= 10 ? 1 : 2;
  return QString::number(value, 'f', decimals) + " " + QString::fromLatin1(units[unit]);
}

// Names of roles stand in plans; those that `lower` gives are known, others stay as they are.
QString role_words(const std::string& name) {
  static const QRegularExpression stages(QStringLiteral("^stages? ([0-9,]+)$"));
  QString text = QString::fromStdString(name);
  const auto found = stages.match(text);
  if (!found.hasMatch()) return text;
  return (found.captured(1).contains(',') ? words(QT_TRANSLATE_NOOP("Words", "stages %1"))
                                          : words(QT_TRANSLATE_NOOP("Words", "stage %1")))
      .arg(found.captured(1));
}

QString class_words(const Plan& plan, const Trace& trace, ClassId who) {
  const std::vector<RankId>& members = trace.classes[who.index()].members;
  QString name = role_words(role_of(plan, trace, who).name);
  if (members.size() > 1) return words(QT_TRANSLATE_NOOP("Words", "%1 (%2 ranks)")).arg(name).arg(members.size());
  if (members.empty()) return name;
  return words(QT_TRANSLATE_NOOP("Words", "%1 (rank %2)")).arg(name).arg(members.front().value);
}

QString percent_words(double share) { return QString::number(share * 100, 'f', 1) + " %"; }

}  // namespace foreshard
