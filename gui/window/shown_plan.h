// ShownPlan: the documents that the window shows: a plan, another plan that it is compared with, and the measured twin.
#pragma once

#include <QObject>
#include <optional>

#include "gui/document/choices.h"
#include "gui/run/simulation.h"
#include "gui/window/plan_views.h"

namespace foreshard {

class DockPanels;
class Notices;

class ShownPlan : public QObject {
  Q_OBJECT
 public:
  ShownPlan(PlanViews& views, DockPanels& docks, Notices& notices, const QString& program);  // all must outlive it

  const std::shared_ptr<const Document>& document() const { return documents_.shown; }
  const std::shared_ptr<const Document>& compared() const { return documents_.compared; }
  const Choices& choices() const { return choices_; }  // that the shown document was made from
  void set_choices(const Choices& choices) { choices_ = choices; }
  const std::optional<Choices>& compared_choices() const { return compared_choices_; }
  const QString& measured_file() const { return measured_file_; }  // empty: none

  void show(std::shared_ptr<const Document> document);
  void show_range_next(std::optional<TimeRange> range) { wanted_range_ = range; }  // to show with the next document
  void show_measured(std::shared_ptr<const Document> measured, const QString& file = {});

  void compare_with(const Choices& choices);  // simulates them and compares the result with the shown plan
  void use_as_baseline();                     // later plans are compared with the shown one
  void clear_baseline();                      // ends the comparison
  bool busy() const { return simulation_.busy(); }
  void stop() { simulation_.cancel(); }

 Q_SIGNALS:
  void shown();
  void began();  // the simulation of the compared plan has started

 private:
  void lay_measured();
  void take_compared(const Simulated& simulated);

  PlanViews& views_;
  DockPanels& docks_;
  Notices& notices_;
  PlanDocuments documents_ = {};
  Choices choices_ = {};
  std::optional<Choices> compared_choices_ = {};
  QString measured_file_;
  std::optional<TimeRange> wanted_range_ = {};
  Simulation simulation_;  // of the compared plan
};

}  // namespace foreshard
