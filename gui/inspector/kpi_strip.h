// KpiStrip: the most important numbers of a result as tiles above the timeline, with their differences to a compared result.
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
  QString name = {}, value = {}, aside = {};  // aside: the difference to the compared result, or the total that it is part of
  bool alarming = false;                      // drawn as a warning
  QString short_name = {}, short_aside = {};  // for a narrow tile; empty: the long ones
};
// `compared` null: none. Differences are given only if both train the same model. The first tile names the baseline.
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

// `value` with as many decimals as `has_room` allows, always with its unit: "615.69 ms", "616 ms".
QString with_fewer_digits(const QString& value, const std::function<bool(const QString&)>& has_room);

}  // namespace foreshard
