// KpiStrip: the numbers that a person looks for first, above the timeline; with a compared result how they differ.
#pragma once

#include <QWidget>
#include <memory>
#include <vector>

#include "gui/document.h"

class QLabel;

namespace foreshard {

struct Kpi {
  QString name = {}, value = {}, aside = {};  // aside: the difference to what is compared, or of what it is a part
  bool alarming = false;
};
std::vector<Kpi> kpis_of(const Document& document, const Document* compared);

class KpiStrip : public QWidget {
  Q_OBJECT
 public:
  explicit KpiStrip(QWidget* parent = nullptr);
  void set_documents(const std::shared_ptr<const Document>& document, const std::shared_ptr<const Document>& compared);

 private:
  struct Tile {
    QWidget* box = nullptr;
    QLabel* name = nullptr;
    QLabel* value = nullptr;
    QLabel* aside = nullptr;
  };
  std::vector<Tile> tiles_;
};

}  // namespace foreshard
