#include "gui/kpi_strip.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QStyle>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "gui/search_rows.h"
#include "gui/words.h"
#include "report/memory_rows.h"

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
  const Summary* o = compared == nullptr ? nullptr : &compared->summary;
  const bool tokens = document.workload.tokens_per_sample > 0;
  std::vector<Kpi> kpis;
  kpis.push_back({KpiStrip::tr("step time"), time_text(s.iteration_time.value),
                  relative(s.iteration_time.value, o ? &o->iteration_time.value : nullptr)});
  kpis.push_back({tokens ? KpiStrip::tr("tokens/s") : KpiStrip::tr("samples/s"),
                  rate_text(tokens ? s.tokens_per_s : s.samples_per_s),
                  relative(s.samples_per_s, o ? &o->samples_per_s : nullptr)});
  kpis.push_back({KpiStrip::tr("MFU"), share_text(s.model_flops_utilization),
                  points(s.model_flops_utilization, o ? &o->model_flops_utilization : nullptr)});
  kpis.push_back(
      {KpiStrip::tr("bubble"), share_text(s.bubble_fraction), points(s.bubble_fraction, o ? &o->bubble_fraction : nullptr)});
  kpis.push_back({KpiStrip::tr("comm. not hidden"), share_text(s.exposed_communication_fraction),
                  points(s.exposed_communication_fraction, o ? &o->exposed_communication_fraction : nullptr)});
  const StageMemory* fullest = fullest_stage(s);
  Kpi memory{KpiStrip::tr("peak memory (%1)").arg(fullest == nullptr ? QString() : role_words(fullest->role)),
             fullest == nullptr ? QStringLiteral("–") : memory_text(peak_of(s, *fullest))};
  if (usable(s) > Bytes{}) memory.aside = KpiStrip::tr("of %1 usable").arg(memory_text(usable(s)));
  memory.alarming = !s.feasible;
  if (!s.feasible) memory.aside = KpiStrip::tr("does not fit");
  kpis.push_back(memory);
  kpis.push_back({KpiStrip::tr("cost / M tokens"),
                  s.cost_per_million_tokens ? QString::number(*s.cost_per_million_tokens, 'f', 3) : QStringLiteral("–"),
                  s.cost_per_million_tokens && o && o->cost_per_million_tokens
                      ? relative(*s.cost_per_million_tokens, &*o->cost_per_million_tokens)
                      : QString()});
  kpis.push_back({KpiStrip::tr("GPUs"), QString::number(s.gpus), KpiStrip::tr("%n stage(s)", nullptr, s.stages)});
  return kpis;
}

KpiStrip::KpiStrip(QWidget* parent) : QWidget(parent) {
  setObjectName("kpi_strip");
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(8, 6, 8, 6);
  row->setSpacing(6);
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
    row->addWidget(tile.box, 1);
    tiles_.push_back(tile);
  }
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
}

void KpiStrip::set_documents(const std::shared_ptr<const Document>& document, const std::shared_ptr<const Document>& compared) {
  const std::vector<Kpi> kpis = document ? kpis_of(*document, compared.get()) : std::vector<Kpi>(kTiles);
  for (std::size_t i = 0; i < tiles_.size(); ++i) {
    const Kpi& kpi = kpis[i];
    Tile& tile = tiles_[i];
    tile.name->setText(kpi.name);
    tile.value->setText(kpi.value);
    tile.aside->setText(kpi.aside);
    tile.box->setAccessibleName(kpi.name + ": " + kpi.value);
    tile.aside->setProperty("wrong", kpi.alarming);
    tile.aside->style()->unpolish(tile.aside);
    tile.aside->style()->polish(tile.aside);
  }
}

}  // namespace foreshard
