#include "gui/inspector/kpi_strip.h"

#include <QGridLayout>
#include <QLabel>
#include <QRegularExpression>
#include <QResizeEvent>
#include <QStyle>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "gui/document/delta.h"
#include "gui/document/search_rows.h"
#include "gui/document/words.h"
#include "report/summary/memory_rows.h"

namespace foreshard {

static constexpr int kTiles = 8;

static QString share_text(double share) { return QString::number(share * 100, 'f', 1) + " %"; }

static QString rate_text(double rate) {
  if (rate >= 1e6) return QString::number(rate / 1e6, 'f', 2) + " M";
  if (rate >= 1e4) return QString::number(rate / 1e3, 'f', 1) + " k";
  return QString::number(rate, 'f', rate >= 100 ? 0 : 1);
}

// "−2.9 %"; empty when nothing is compared or it is the same.
static QString relative(double now, const double* other) {
  if (other == nullptr || *other == 0 || !std::isfinite(now / *other)) return {};
  const double change = now / *other - 1;
  if (std::abs(change) < 5e-5) return KpiStrip::tr("same");
  return (change > 0 ? "+" : "−") + QString::number(std::abs(change) * 100, 'f', 1) + " %";
}

static QString points(double now, const double* other) {
  if (other == nullptr) return {};
  const double change = now - *other;
  if (std::abs(change) < 5e-5) return KpiStrip::tr("same");
  return KpiStrip::tr("%1 points").arg((change > 0 ? "+" : "−") + QString::number(std::abs(change) * 100, 'f', 1));
}

std::vector<Kpi> kpis_of(const Document& document, const Document* compared) {
  const Summary& s = document.summary;
  const Alike sort = compared == nullptr ? Alike::OtherModel : alike(*compared, document);
  const bool same = compared != nullptr && sort == Alike::Yes;
  const Summary* o = same ? &compared->summary : nullptr;
  const bool tokens = document.workload.tokens_per_sample > 0;
  std::vector<Kpi> kpis;
  kpis.push_back({KpiStrip::tr("step time"), time_text(s.iteration_time.value),
                  relative(s.iteration_time.value, o ? &o->iteration_time.value : nullptr)});
  kpis.back().short_aside = kpis.back().aside;
  if (same) kpis.back().aside += KpiStrip::tr(" · A %1").arg(time_text(compared->summary.iteration_time.value));
  if (compared != nullptr && sort == Alike::OtherModel)
    kpis.back().aside = KpiStrip::tr("A: another model (%1)").arg(QString::fromStdString(compared->model)),
    kpis.back().short_aside = KpiStrip::tr("A: other model");
  else if (compared != nullptr && sort == Alike::OtherDevice)
    kpis.back().aside = KpiStrip::tr("A: another device (%1)").arg(device_text(*compared)),
    kpis.back().short_aside = KpiStrip::tr("A: other device");
  kpis.push_back({tokens ? KpiStrip::tr("tokens/s") : KpiStrip::tr("samples/s"),
                  rate_text(tokens ? s.tokens_per_s : s.samples_per_s),
                  relative(s.samples_per_s, o ? &o->samples_per_s : nullptr)});
  kpis.push_back({KpiStrip::tr("MFU"), share_text(s.flops.model_utilization),
                  points(s.flops.model_utilization, o ? &o->flops.model_utilization : nullptr)});
  kpis.push_back(
      {KpiStrip::tr("bubble"), share_text(s.bubble.fraction), points(s.bubble.fraction, o ? &o->bubble.fraction : nullptr)});
  kpis.push_back({KpiStrip::tr("comm. not hidden"), share_text(s.communication.exposed),
                  points(s.communication.exposed, o ? &o->communication.exposed : nullptr)});
  kpis.back().short_name = KpiStrip::tr("not hidden");
  const StageMemory* fullest = fullest_stage(s);
  Kpi memory{KpiStrip::tr("peak memory (%1)").arg(fullest == nullptr ? QString() : role_words(fullest->role)),
             fullest == nullptr ? QStringLiteral("–") : memory_text(peak_of(s, *fullest))};
  memory.short_name = KpiStrip::tr("peak memory");
  if (usable(s) > Bytes{}) memory.aside = KpiStrip::tr("of %1 usable").arg(memory_text(usable(s)));
  memory.alarming = !s.feasible;
  if (!s.feasible) memory.aside = KpiStrip::tr("does not fit");
  kpis.push_back(memory);
  kpis.push_back({tokens ? KpiStrip::tr("cost / M tokens") : KpiStrip::tr("cost / M samples"),
                  s.cost_per_million_tokens ? QString::number(*s.cost_per_million_tokens, 'f', 3) : QStringLiteral("–"),
                  s.cost_per_million_tokens && o && o->cost_per_million_tokens
                      ? relative(*s.cost_per_million_tokens, &*o->cost_per_million_tokens)
                      : QString()});
  kpis.back().short_name = tokens ? KpiStrip::tr("cost / M tok.") : KpiStrip::tr("cost / M sam.");
  kpis.push_back({KpiStrip::tr("GPUs"), count_words(s.gpus), KpiStrip::tr("%n stage(s)", nullptr, s.stages)});
  if (const int all = document.cluster ? gpu_count(*document.cluster) : 0; all > s.gpus && s.gpus > 0) {
    kpis.back().aside = KpiStrip::tr("of %1 used").arg(count_words(all));
    kpis.back().alarming = true;
    const QString of_all = share_text(s.flops.model_utilization * s.gpus / all);
    kpis[2].aside = KpiStrip::tr("%1 of the cluster").arg(of_all);
    kpis[2].short_aside = KpiStrip::tr("%1 of all").arg(of_all);
    kpis[2].alarming = true;
  }
  return kpis;
}

KpiStrip::KpiStrip(QWidget* parent) : QWidget(parent) {
  setObjectName("kpi_strip");
  grid_ = new QGridLayout(this);
  grid_->setContentsMargins(8, 6, 8, 6);
  grid_->setSpacing(6);
  for (int i = 0; i < kTiles; ++i) {
    Tile tile{.box = new QWidget, .name = new QLabel, .value = new QLabel, .aside = new QLabel};
    tile.box->setObjectName("kpi");
    tile.box->setAttribute(Qt::WA_StyledBackground);
    tile.name->setObjectName("kpi_name"), tile.value->setObjectName("kpi_value"), tile.aside->setObjectName("kpi_aside");
    auto* column = new QVBoxLayout(tile.box);
    column->setContentsMargins(8, 5, 4, 5);
    column->setSpacing(0);
    for (QLabel* label : {tile.name, tile.value, tile.aside}) {
      label->setTextInteractionFlags(Qt::TextSelectableByMouse);
      label->setMinimumWidth(0);
      label->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
      column->addWidget(label);
    }
    tiles_.push_back(tile);
  }
  lay_out();
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
}

void KpiStrip::set_documents(const std::shared_ptr<const Document>& document, const std::shared_ptr<const Document>& compared) {
  kpis_ = document ? kpis_of(*document, compared.get()) : std::vector<Kpi>(kTiles);
  for (std::size_t i = 0; i < tiles_.size(); ++i) {
    const Kpi& kpi = kpis_[i];
    Tile& tile = tiles_[i];
    tile.name->setText(kpi.name);
    tile.box->setToolTip(kpi.name.isEmpty() ? QString() : kpi.name + ": " + kpi.value + "\n" + kpi.aside);
    tile.box->setAccessibleName(kpi.name + ": " + kpi.value);
    tile.aside->setProperty("wrong", kpi.alarming);
    tile.aside->style()->unpolish(tile.aside);
    tile.aside->style()->polish(tile.aside);
  }
  fit();
}

// The two with the longest names and asides are wider in one row.
static int stretch_of(int column, int columns) { return columns == kTiles && (column == 4 || column == 5) ? 6 : 5; }

void KpiStrip::lay_out() {
  const int columns = width() < kTiles * 92 ? kTiles / 2 : kTiles;
  if (columns == columns_) return;
  columns_ = columns;
  for (std::size_t i = 0; i < tiles_.size(); ++i)
    grid_->addWidget(tiles_[i].box, static_cast<int>(i) / columns, static_cast<int>(i) % columns);
  for (int c = 0; c < kTiles; ++c) grid_->setColumnStretch(c, c < columns ? stretch_of(c, columns) : 0);
}

void KpiStrip::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  lay_out();
  fit();
}

void KpiStrip::fit() {
  const QMargins margins = grid_->contentsMargins();
  const int all = width() - margins.left() - margins.right() - grid_->spacing() * (columns_ - 1);
  int stretches = 0;
  for (int c = 0; c < columns_; ++c) stretches += stretch_of(c, columns_);
  for (std::size_t i = 0; i < kpis_.size(); ++i) {
    const int tile_width = all * stretch_of(static_cast<int>(i) % columns_, columns_) / stretches - 12;
    const auto has_room = [&](const QLabel* label) {
      return [label, tile_width](const QString& text) { return label->fontMetrics().horizontalAdvance(text) <= tile_width; };
    };
    const Tile& tile = tiles_[i];
    for (QLabel* label : {tile.name, tile.value, tile.aside}) label->ensurePolished();
    tile.value->setText(with_fewer_digits(kpis_[i].value, has_room(tile.value)));
    const auto put = [&](QLabel* label, const QString& text, const QString& shorter) {
      const QString& one = shorter.isEmpty() || has_room(label)(text) ? text : shorter;
      label->setText(label->fontMetrics().elidedText(one, Qt::ElideRight, tile_width));
    };
    put(tile.aside, kpis_[i].aside, kpis_[i].short_aside);
    put(tile.name, kpis_[i].name, kpis_[i].short_name);
  }
}

QString with_fewer_digits(const QString& value, const std::function<bool(const QString&)>& has_room) {
  static const QRegularExpression number_and_unit(QStringLiteral("^([0-9]+)\\.([0-9]+)( .*)?$"));
  const auto parts = number_and_unit.match(value);
  QString text = value;
  for (qsizetype decimals = parts.captured(2).size() - 1; parts.hasMatch() && decimals >= 0 && !has_room(text); --decimals)
    text = QString::number((parts.captured(1) + "." + parts.captured(2)).toDouble(), 'f', static_cast<int>(decimals)) +
           parts.captured(3);
  return text;
}

}  // namespace foreshard
