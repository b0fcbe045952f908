#include "gui/document/words.h"

#include <QCoreApplication>
#include <QRegularExpression>
#include <algorithm>
#include <array>
#include <cmath>

#include "gui/document/document.h"
#include "gui/document/search_rows.h"
#include "report/summary/memory_rows.h"
#include "report/words/devices.h"
#include "report/words/span_words.h"

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
    case BubbleCause::Imbalance: return words(QT_TRANSLATE_NOOP("Words", "expert imbalance"));
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
    case BubbleCause::Imbalance:
      return words(QT_TRANSLATE_NOOP("Words", "Another rank of the expert group has more rows to compute."));
  }
  return {};
}

QString category_words(Category category) {
  switch (category) {
    case Category::Parameters: return words(QT_TRANSLATE_NOOP("Words", "parameters"));
    case Category::Gradients: return words(QT_TRANSLATE_NOOP("Words", "gradients"));
    case Category::Optimizer: return words(QT_TRANSLATE_NOOP("Words", "optimizer"));
    case Category::Activations: return words(QT_TRANSLATE_NOOP("Words", "activations"));
    case Category::Transient: return words(QT_TRANSLATE_NOOP("Words", "scratch"));
    case Category::Communication: return words(QT_TRANSLATE_NOOP("Words", "communication"));
    case Category::Framework: return words(QT_TRANSLATE_NOOP("Words", "framework"));
  }
  return {};
}

QString bytes_words(Bytes bytes) {
  static constexpr std::array<const char*, 5> units = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes.value);
  std::size_t unit = 0;
  const auto most = [&] { return unit == 3 ? 10'240 : 1000; };  // memory is compared in GiB
  for (; std::abs(value) >= most() && unit + 1 < units.size(); ++unit) value /= 1024;
  if (std::abs(value) >= 1000) return count_words(std::llround(value)) + " " + QString::fromLatin1(units[unit]);
  const int decimals = unit == 0 || std::abs(value) >= 100 ? 0 : std::abs(value) >= 10 ? 1 : 2;
  return QString::number(value, 'f', decimals) + " " + QString::fromLatin1(units[unit]);
}

// Translates the role names that `lower` writes into plans; others are unchanged.
QString role_words(const std::string& name) {
  static const QRegularExpression stages(QStringLiteral("^stages? ([0-9,.]+)$"));
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
  if (members.size() > 1)
    return words(QT_TRANSLATE_NOOP("Words", "%1 (%2 ranks)")).arg(name, count_words(static_cast<std::int64_t>(members.size())));
  if (members.empty()) return name;
  return words(QT_TRANSLATE_NOOP("Words", "%1 (rank %2)")).arg(name).arg(members.front().value);
}

QString percent_words(double share) { return QString::number(share * 100, 'f', 1) + " %"; }

QString count_words(std::int64_t count) {
  static const QString thin = QString(QChar(0x202f));  // a narrow space at which no line breaks
  QString digits = QString::number(std::abs(count));
  for (qsizetype at = digits.size() - 3; at > 0; at -= 3) digits.insert(at, thin);
  return count < 0 ? "-" + digits : digits;
}

QString number_words(double number) {
  const double size = std::abs(number);
  if (size >= 999.5) return count_words(std::llround(number));
  return QString::number(number, 'f', size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

// Translates the instruction names of pipeline steps; the operators of a model keep their names.
QString instruction_words(const std::string& name) {
  static constexpr const char* known[] = {QT_TRANSLATE_NOOP("Words", "receive gradient"),
                                          QT_TRANSLATE_NOOP("Words", "send gradient"),
                                          QT_TRANSLATE_NOOP("Words", "receive input"),
                                          QT_TRANSLATE_NOOP("Words", "send output"),
                                          QT_TRANSLATE_NOOP("Words", "hand over output"),
                                          QT_TRANSLATE_NOOP("Words", "add gradients"),
                                          QT_TRANSLATE_NOOP("Words", "copy gradient"),
                                          QT_TRANSLATE_NOOP("Words", "gradient norm"),
                                          QT_TRANSLATE_NOOP("Words", "clip"),
                                          QT_TRANSLATE_NOOP("Words", "all-gather parameters"),
                                          QT_TRANSLATE_NOOP("Words", "loss scale"),
                                          QT_TRANSLATE_NOOP("Words", "hand over gradient"),
                                          QT_TRANSLATE_NOOP("Words", "sum over tp"),
                                          QT_TRANSLATE_NOOP("Words", "sum of tied embeddings"),
                                          QT_TRANSLATE_NOOP("Words", "sum of norms"),
                                          QT_TRANSLATE_NOOP("Words", "reduce-scatter gradients"),
                                          QT_TRANSLATE_NOOP("Words", "all-reduce shards"),
                                          QT_TRANSLATE_NOOP("Words", "all-reduce gradients")};
  for (const char* one : known)
    if (name == one) return words(one);
  return QString::fromStdString(name);
}

// "47.3", "1 226": in GiB.
QString gib_words(Bytes bytes) {
  return in_gib(bytes) >= 1000 ? count_words(std::llround(in_gib(bytes))) : QString::number(in_gib(bytes), 'f', 1);
}

QString peak_words(const Summary& summary, const StageMemory& stage) {
  const Bytes peak = peak_of(summary, stage), limit = usable(summary);
  if (limit <= Bytes{}) return bytes_words(peak);
  if (in_gib(limit) < 1) return words(QT_TRANSLATE_NOOP("Words", "%1 of %2 usable")).arg(bytes_words(peak), bytes_words(limit));
  return words(QT_TRANSLATE_NOOP("Words", "%1 of %2 GiB usable")).arg(gib_words(peak), gib_words(limit));
}

// The engine's sentence lists every category; a person wants to know where, how much, and what of. What decides is what a stage
// reserves: its arena has gaps that its peak has not.
QString too_much_words(const Summary& summary) {
  const auto fullest = std::ranges::max_element(summary.memory, {}, &StageMemory::with_framework);
  if (fullest == summary.memory.end()) return QString::fromStdString(summary.infeasible_reason);
  const auto most = std::ranges::max_element(fullest->peak);
  QString stage = role_words(fullest->role);
  if (!stage.isEmpty()) stage[0] = stage[0].toUpper();
  return words(QT_TRANSLATE_NOOP("Words", "%1 does not fit: %2 reserved, %3 usable (%4 too much). Most of it: %5, %6."))
      .arg(stage, memory_text(fullest->with_framework), memory_text(usable(summary)), memory_text(-summary.fit.margin),
           category_words(static_cast<Category>(most - fullest->peak.begin())), memory_text(*most));
}

QString rate_words(const Document& document) {
  return document.workload.tokens_per_sample > 0 ? words(QT_TRANSLATE_NOOP("Words", "tokens per second"))
                                                 : words(QT_TRANSLATE_NOOP("Words", "samples per second"));
}

QString device_text(const Document& document) {
  const std::string device = device_words(document.result);
  if (device == kUnknownDevice) return words(QT_TRANSLATE_NOOP("Words", "an unknown device"));
  return QString::fromStdString(device);
}

// Qt's HTML may break a line at every space except this one.
QString rich_words(const QString& text) { return text.toHtmlEscaped().replace(QChar(0x202f), QChar(QChar::Nbsp)); }

QString path_words(PathKind kind) {
  switch (kind) {
    case PathKind::Compute: return words(QT_TRANSLATE_NOOP("Words", "compute"));
    case PathKind::Collective: return words(QT_TRANSLATE_NOOP("Words", "collectives"));
    case PathKind::Transfer: return words(QT_TRANSLATE_NOOP("Words", "transfers between stages"));
    case PathKind::Copy: return words(QT_TRANSLATE_NOOP("Words", "copies"));
    case PathKind::Waiting: return words(QT_TRANSLATE_NOOP("Words", "waiting"));
  }
  return {};
}

}  // namespace foreshard
