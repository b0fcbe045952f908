#include "gui/document/search_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/json/json_edit.h"
#include "core/strategy/strategy_options.h"
#include "gui/document/words.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/search/search.h"

namespace foreshard {

SearchRow parse_search_row(const std::string& text, const std::string& where) {
  const JsonReader json = JsonReader::parse(text, where);
  SearchRow row;
  row.strategy = parse_strategy(json_value(text, "strategy", where), where);
  row.estimate = {json.at("estimate").at("time_s").as_double(0)};
  if (const JsonReader simulated = json.at("simulated"); !simulated.is_null()) row.simulated = simulated.as_double(0);
  row.peak = {json.at("peak_memory_bytes").as_int()};
  row.margin = {json.at("margin_bytes").as_int()};
  row.bound_by = json.at("bound_by").as_string();
  return row;
}

Choices choices_with(const Choices& base, const Strategy& found) {
  Choices choices = base;
  const Strategy defaults = with_preset(Model{}, {.framework = found.framework});  // what leaving a field open says
  for (const std::string& path : searched_options()) {
    const StrategyOption* option = find_option(path);
    if (option == nullptr) continue;
    const std::string value = option->get(found);
    if (value == option->get(defaults) || value == "auto")
      choices.strategy.erase(path);
    else
      choices.strategy[path] = value;
  }
  return choices;
}

std::vector<int> pareto_front(const std::vector<SearchRow>& rows) {
  std::vector<int> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  const auto row = [&](int i) -> const SearchRow& { return rows[static_cast<std::size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return std::pair(row(a).seconds(), row(a).peak.value) < std::pair(row(b).seconds(), row(b).peak.value);
  });
  std::vector<int> front;
  for (const int i : order)
    if (front.empty() || row(i).peak < row(front.back()).peak) front.push_back(i);
  return front;
}

QString time_text(double seconds) {
  const double size = std::abs(seconds);
  if (size >= 100) return count_words(std::llround(seconds)) + " s";
  if (size >= 1) return QString::number(seconds, 'f', 2) + " s";
  if (size >= 1e-3) return QString::number(seconds * 1e3, 'f', 2) + " ms";
  return QString::number(seconds * 1e6, 'f', 1) + " µs";
}

QString memory_text(Bytes bytes) {
  const double size = static_cast<double>(bytes.value);
  if (std::abs(size) >= 1000.0 * (1 << 30)) return bytes_words(bytes);
  if (std::abs(size) >= 0.1 * (1 << 30)) return QString::number(size / (1 << 30), 'f', 1) + " GiB";
  return QString::number(size / (1 << 20), 'f', 1) + " MiB";
}

void SearchRows::clear() {
  beginResetModel();
  rows_.clear();
  places_.clear();
  endResetModel();
}

void SearchRows::add(SearchRow row) {
  const auto [place, fresh] = places_.try_emplace(to_json(row.strategy), static_cast<int>(rows_.size()));
  if (fresh) {
    beginInsertRows({}, place->second, place->second);
    rows_.push_back(std::move(row));
    endInsertRows();
    return;
  }
  SearchRow& old = rows_[static_cast<std::size_t>(place->second)];
  if (old.simulated && !row.simulated) row.simulated = old.simulated;
  if (old == row) return;
  old = std::move(row);
  Q_EMIT dataChanged(index(place->second, 0), index(place->second, kColumns - 1));
}

int SearchRows::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(rows_.size()); }

int SearchRows::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : kColumns; }

static QVariant sort_key(const SearchRow& row, int column) {
  const Strategy& s = row.strategy;
  switch (static_cast<SearchRows::Column>(column)) {
    case SearchRows::Time: return row.estimate.value;
    case SearchRows::Simulated: return row.simulated ? *row.simulated : 1e300;
    case SearchRows::Peak: return static_cast<qlonglong>(row.peak.value);
    case SearchRows::Free: return static_cast<qlonglong>(row.margin.value);
    case SearchRows::Tp: return s.tp;
    case SearchRows::Cp: return s.cp;
    case SearchRows::Pp: return s.pp;
    case SearchRows::Virtual: return s.virtual_stages;
    case SearchRows::Dp: return s.dp;
    case SearchRows::Ep: return s.experts.ep * s.experts.etp;
    case SearchRows::MicroBatch: return static_cast<qlonglong>(s.batch.micro);
    case SearchRows::Schedule: return s.pipeline.schedule ? name_of(*s.pipeline.schedule) : "";
    case SearchRows::Zero: return s.zero.stage * 2 + (s.communication.overlap.value_or(Overlap{}).parameters ? 1 : 0);
    case SearchRows::Recompute: return QString::fromStdString(to_text(s.recompute));
    case SearchRows::Sequence: return s.sequence_parallel;
    case SearchRows::Bound: return QString::fromStdString(row.bound_by);
    case SearchRows::kColumns: break;
  }
  return {};
}

static QString shown(const SearchRow& row, int column) {
  const QVariant key = sort_key(row, column);
  switch (static_cast<SearchRows::Column>(column)) {
    case SearchRows::Time: return time_text(row.estimate.value);
    case SearchRows::Simulated: return row.simulated ? time_text(*row.simulated) : QStringLiteral("–");
    case SearchRows::Peak: return memory_text(row.peak);
    case SearchRows::Free: return memory_text(row.margin);
    case SearchRows::Zero:
      return QString::number(row.strategy.zero.stage) +
             (row.strategy.zero.stage > 0 && row.strategy.communication.overlap.value_or(Overlap{}).parameters ? "+" : "");
    case SearchRows::Ep:
      return QString::number(row.strategy.experts.ep) +
             (row.strategy.experts.etp > 1 ? "x" + QString::number(row.strategy.experts.etp) : "");
    case SearchRows::Sequence: return row.strategy.sequence_parallel ? SearchRows::tr("yes") : SearchRows::tr("no");
    case SearchRows::Tp:
    case SearchRows::Cp:
    case SearchRows::Pp:
    case SearchRows::Virtual:
    case SearchRows::Dp:
    case SearchRows::MicroBatch:
    case SearchRows::Schedule:
    case SearchRows::Recompute:
    case SearchRows::Bound:
    case SearchRows::kColumns: break;
  }
  return key.toString();
}

QVariant SearchRows::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount() || index.column() >= kColumns) return {};
  const SearchRow& row = rows_[static_cast<std::size_t>(index.row())];
  const bool words = index.column() == Schedule || index.column() == Recompute || index.column() == Bound;
  if (role == Qt::DisplayRole) return shown(row, index.column());
  if (role == Qt::UserRole) return sort_key(row, index.column());
  if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignVCenter | (words ? Qt::AlignLeft : Qt::AlignRight));
  return {};
}

QVariant SearchRows::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= kColumns) return {};
  if (role == Qt::ToolTipRole) {
    static const char* const whole[] = {QT_TR_NOOP("estimated time of one step"),
                                        QT_TR_NOOP("simulated time of one step"),
                                        QT_TR_NOOP("peak memory of the GPU that needs most"),
                                        QT_TR_NOOP("memory that stays free beside the reserve"),
                                        QT_TR_NOOP("tensor parallel"),
                                        QT_TR_NOOP("context parallel"),
                                        QT_TR_NOOP("pipeline ranks"),
                                        QT_TR_NOOP("virtual stages"),
                                        QT_TR_NOOP("data parallel"),
                                        QT_TR_NOOP("GPUs that share the experts of a layer, and each of them"),
                                        QT_TR_NOOP("micro-batch"),
                                        QT_TR_NOOP("schedule"),
                                        QT_TR_NOOP("ZeRO stage; +: parameters overlapped"),
                                        QT_TR_NOOP("recomputation"),
                                        QT_TR_NOOP("sequence parallel"),
                                        QT_TR_NOOP("what holds it up")};
    return tr(whole[section]);
  }
  if (role == Qt::TextAlignmentRole) {
    const bool words = section == Schedule || section == Recompute || section == Bound;
    return QVariant(Qt::AlignVCenter | (words ? Qt::AlignLeft : Qt::AlignRight));
  }
  if (role != Qt::DisplayRole) return {};
  static const char* const heads[] = {QT_TR_NOOP("estimate"),
                                      QT_TR_NOOP("simulated"),
                                      QT_TR_NOOP("peak"),
                                      QT_TR_NOOP("free"),
                                      "tp",
                                      "cp",
                                      "pp",
                                      "v",
                                      "dp",
                                      "ep",
                                      "mb",
                                      QT_TR_NOOP("schedule"),
                                      "ZeRO",
                                      QT_TR_NOOP("recompute"),
                                      "sp",
                                      QT_TR_NOOP("bound by")};
  return tr(heads[section]);
}

}  // namespace foreshard
