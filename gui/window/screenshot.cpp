#include "gui/window/screenshot.h"

#include <QCoreApplication>
#include <QImage>
#include <QTimer>
#include <algorithm>

#include "core/base/error.h"
#include "gui/compare/policy_view.h"
#include "gui/search/search_panel.h"
#include "gui/timeline/timeline_view.h"

namespace foreshard {

const QStringList& shot_views() {
  static const QStringList views = {"window",  "timeline", "memory",    "topology", "search",
                                    "compare", "policies", "inspector", "table",    "run"};
  return views;
}

Screenshot::Screenshot(MainWindow& window, ShotRequest request) : window_(window), request_(std::move(request)) {
  window_.resize(request_.width, request_.height);
  connect(&window_, &MainWindow::settled, this, [this] {
    if (!std::exchange(prepared_, true)) {
      prepare();
      if (window_.busy()) return;  // `settled` comes again
    }
    QTimer::singleShot(700, this, &Screenshot::shoot);  // views paint in workers of their own
  });
}

// Brings the view into a state worth showing.
void Screenshot::prepare() {
  if (!window_.problem().isEmpty()) return;  // told as it is: a search without a job would complain of something else
  const auto document = window_.document();
  if (request_.view == "search") {
    window_.search_panel()->set_refined(16);  // enough to see, soon enough to wait for
    window_.search_panel()->start();
  }
  if (request_.view == "compare") {
    Choices other = window_.workspace().choices;
    other.strategy["virtual_stages"] = std::string("2");
    other.strategy["schedule"] = "interleaved-1f1b";
    window_.compare_with(other);
  }
  if (request_.view == "policies") window_.policies()->start();
  if (request_.view == "inspector" && document && !document->bubbles.empty()) {
    const auto worst = std::max_element(document->bubbles.begin(), document->bubbles.end(),
                                        [](const Bubble& a, const Bubble& b) { return a.end - a.begin < b.end - b.begin; });
    window_.selection().pick(
        {.kind = PickedKind::Bubble, .index = static_cast<std::int32_t>(worst - document->bubbles.begin())});
  }
  window_.view(request_.view);
}

void Screenshot::shoot() {
  if (const QString problem = window_.problem(); !problem.isEmpty()) {
    Q_EMIT done(problem);
    return;
  }
  if (request_.kind) {
    try {
      window_.export_to(*request_.kind, request_.file);
      Q_EMIT done({});
    } catch (const Error& error) {
      Q_EMIT done(QString::fromStdString(error.what()));
    }
    return;
  }
  QWidget* const view = window_.view(request_.view);
  if (view == nullptr) {
    Q_EMIT done(tr("no view is called %1").arg(request_.view));
    return;
  }
  if (auto* timeline = window_.findChild<TimelineView*>()) timeline->wait_for_levels();
  QCoreApplication::processEvents();
  // A part of the window is shown within the window, because it is read together with its surroundings.
  const bool alone = request_.view == "timeline" || request_.view == "memory" || request_.view == "topology";
  const QPixmap picture = alone ? view->grab() : window_.grab();
  Q_EMIT done(picture.save(request_.file, "PNG") ? QString() : tr("%1 cannot be written").arg(request_.file));
}

}  // namespace foreshard
