#include "gui/compare/policy_rows.h"

#include <algorithm>
#include <limits>

#include "core/json/json.h"
#include "gui/document/search_rows.h"
#include "gui/document/words.h"
#include "gui/widgets/engine_words.h"

namespace foreshard {

static const QString kNothing = QStringLiteral("–");

std::vector<PolicyLine> read_policy_rows(const QByteArray& json) {
  std::vector<PolicyLine> rows;
  for (const JsonReader& policy : JsonReader::parse(json.toStdString(), "simulate --policy all").at("policies").elements()) {
    PolicyLine row{.name = policy.at("policy").as_string(), .of = policy.at("of").as_string()};
    if (!policy.at("feasible").as_bool()) {
      row.why_not = policy.at("infeasible_reason").as_string();
      rows.push_back(std::move(row));
      continue;
    }
    const auto bytes = [&](const char* key) {
      return Bytes{policy.at(key).as_int(0, std::numeric_limits<std::int64_t>::max())};
    };
    const auto number = [&](const char* key) { return policy.at(key).as_double(0, 1e18); };
    row.step = {number("iteration_time_s")};
    row.per_s = number("tokens_per_s") > 0 ? number("tokens_per_s") : number("samples_per_s");
    row.peak = bytes("live_peak_bytes"), row.arena = bytes("arena_bytes");
    row.gathered = bytes("gathered_bytes"), row.copied = bytes("copied_bytes");
    rows.push_back(std::move(row));
  }
  return rows;
}

void PolicyRows::set(std::vector<PolicyLine> rows) {
  beginResetModel();
  rows_ = std::move(rows);
  endResetModel();
}

int PolicyRows::fastest() const {
  int best = -1;
  for (int r = 0; r < static_cast<int>(rows_.size()); ++r) {
    const auto step = [&](int row) { return rows_[static_cast<std::size_t>(row)].step.value; };
    if (rows_[static_cast<std::size_t>(r)].why_not.empty() && (best < 0 || step(r) < step(best))) best = r;
  }
  return best;
}

int PolicyRows::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(rows_.size()); }

int PolicyRows::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : kColumns; }

double PolicyRows::value(const PolicyLine& row, int column) const {
  switch (column) {
    case Step:
    case Slower: return row.step.value;
    case PerSecond: return row.per_s;
    case Peak: return static_cast<double>(row.peak.value);
    case Arena: return static_cast<double>(row.arena.value);
    case Gathered: return static_cast<double>(row.gathered.value);
    case Copied: return static_cast<double>(row.copied.value);
    default: return -1;
  }
}

QString PolicyRows::text(const PolicyLine& row, int column) const {
  if (column == Name) return QString::fromStdString(row.name);
  if (column == Of) return QString::fromStdString(row.of);
  if (!row.why_not.empty()) return column == Step ? engine_words(QString::fromStdString(row.why_not)) : QString();
  const double best = rows_[static_cast<std::size_t>(fastest())].step.value;
  switch (column) {
    case Step: return time_text(row.step.value);
    case Slower:
      return row.step.value <= best ? tr("fastest") : QString("+%1 %").arg(100 * (row.step.value / best - 1), 0, 'f', 1);
    case PerSecond: return count_words(static_cast<std::int64_t>(row.per_s));
    case Peak: return memory_text(row.peak);
    case Arena: return memory_text(row.arena);
    case Gathered: return row.gathered.value > 0 ? memory_text(row.gathered) : kNothing;
    case Copied: return row.copied.value > 0 ? memory_text(row.copied) : kNothing;
    default: return {};
  }
}

QVariant PolicyRows::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  const PolicyLine& row = rows_[static_cast<std::size_t>(index.row())];
  const int column = index.column();
  const bool names = column == Name || column == Of;
  switch (role) {
    case Qt::DisplayRole: return text(row, column);
    case Qt::ToolTipRole: return row.why_not.empty() ? QVariant() : engine_words(QString::fromStdString(row.why_not));
    case Qt::TextAlignmentRole:
      return QVariant(Qt::AlignVCenter | (names || !row.why_not.empty() ? Qt::AlignLeft : Qt::AlignRight));
    case Qt::UserRole:
      if (names) return text(row, column);
      return row.why_not.empty() ? value(row, column) : std::numeric_limits<double>::max();  // sorted by time, these come last
    case kShareRole: {
      if (!row.why_not.empty() || names || column == Slower) return -1.0;
      double most = 0;
      for (const PolicyLine& other : rows_) most = std::max(most, value(other, column));
      return most > 0 ? value(row, column) / most : 0.0;
    }
    default: return {};
  }
}

QVariant PolicyRows::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  const QString titles[] = {tr("Policy"), tr("Of"),    tr("Step"),     tr("Slower by"), tr("Per second"),
                            tr("Peak"),   tr("Arena"), tr("Gathered"), tr("Copied")};
  const QString what[] = {tr("Name of the runtime policy, as --policy takes it"),
                          tr("The framework whose runtime works so"),
                          tr("Time of an iteration"),
                          tr("Over the fastest policy"),
                          tr("Tokens, of models without tokens samples"),
                          tr("The most that is alive at once on the fullest GPU"),
                          tr("What the fullest GPU reserves"),
                          tr("Parameters that a GPU gathers in a step"),
                          tr("What a GPU copies to and from host memory and drives in a step")};
  if (role == Qt::DisplayRole) return titles[section];
  if (role == Qt::ToolTipRole) return what[section];
  if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignVCenter | (section <= Of ? Qt::AlignLeft : Qt::AlignRight));
  return {};
}

}  // namespace foreshard
