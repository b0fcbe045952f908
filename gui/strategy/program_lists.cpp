#include "gui/strategy/program_lists.h"

#include "core/base/error.h"
#include "gui/run/child.h"
#include "gui/strategy/panel_options.h"
#include "gui/strategy/strategy_panel.h"

namespace foreshard {

using namespace std::chrono_literals;

ProgramLists::ProgramLists(const QString& program, StrategyPanel& panel) : program_(program), panel_(panel) {}

void ProgramLists::ask() {
  for (const char* what : {"options", "models", "topologies"}) {
    auto* child = new Child(program_, this);
    ++waiting_;
    connect(child, &Child::finished, this, [this, child, what = std::string(what)](const ChildOutcome& outcome) {
      child->deleteLater();
      --waiting_;
      if (outcome.end != ChildEnd::Done) {
        Q_EMIT failed(tr("foreshard list %1: %2").arg(QString::fromStdString(what), outcome.message));
        return;
      }
      try {
        take(what, outcome.out.toStdString());
      } catch (const Error& error) {
        Q_EMIT failed(QString::fromStdString(error.what()));
      }
    });
    child->start({"list", what, "--json"}, 30s);
  }
}

void ProgramLists::take(const std::string& what, const std::string& text) {
  const std::string where = "foreshard list " + what;
  if (what == "options") {
    panel_.set_options(parse_panel_options(text, where));
    Q_EMIT options_set();
  } else {
    names_[what] = parse_names(text, where);
    panel_.set_names(models(), topologies());
  }
}

}  // namespace foreshard
