// ProgramLists: asks the foreshard program for its options, models and topologies, and gives them to the strategy panel.
#pragma once

#include <QObject>
#include <map>
#include <string>
#include <vector>

namespace foreshard {

class StrategyPanel;

class ProgramLists : public QObject {
  Q_OBJECT
 public:
  ProgramLists(const QString& program, StrategyPanel& panel);  // `panel` must outlive it
  void ask();                                                  // starts child processes; the answers come later
  bool busy() const { return waiting_ > 0; }
  const std::vector<std::string>& models() { return names_["models"]; }
  const std::vector<std::string>& topologies() { return names_["topologies"]; }

 Q_SIGNALS:
  void options_set();  // the panel has its options
  void failed(const QString& message);

 private:
  void take(const std::string& what, const std::string& text);

  QString program_;
  StrategyPanel& panel_;
  int waiting_ = 0;
  std::map<std::string, std::vector<std::string>> names_ = {};  // "models" or "topologies" -> names
};

}  // namespace foreshard
