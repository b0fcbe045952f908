// KpiStrip: the numbers that a person looks for first, above the timeline; with a compared result how they differ.
#pragma once

#include <QWidget>
#include <functional>
#include <memory>
#include <vector>

#include "gui/document/document.h"

class QGridLayout;
class QLabel;

namespace foreshard {

struct Kpi {
  QString name = {}, value = {}, aside = {};  // aside: the difference to what is compared, or of what it is a part
  bool alarming = false;
  QString short_name = {}, short_aside = {};  // where there is little room; empty: the same
};
// Differences only where both train the same model; the first tile names the baseline.
std::vector<Kpi> kpis_of(const Document& document, const Document* compared);

class KpiStrip : public QWidget {
  Q_OBJECT
 public:
  explicit KpiStrip(QWidget* parent = nullptr);
  void set_documents(const std::shared_ptr<const Document>& document, const std::shared_ptr<const Document>& compared);

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void lay_out();  // one row, or two where the window is narrow
  void fit();
  struct Tile {
    QWidget* box = nullptr;
    QLabel* name = nullptr;
    QLabel* value = nullptr;
    QLabel* aside = nullptr;
  };
  std::vector<Tile> tiles_;
  std::vector<Kpi> kpis_;
  QGridLayout* grid_ = nullptr;
  int columns_ = 0;
};

// `value` with as many digits as have room, never without its unit: "615.69 ms", "616 ms".
QString with_fewer_digits(const QString& value, const std::function<bool(const QString&)>& has_room);

}  // namespace foreshard
