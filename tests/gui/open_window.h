// A window that is shown, active, and has a result: what tests of keys and mouse begin with.
#pragma once

#include <gtest/gtest.h>

#include <QTemporaryDir>
#include <QTest>
#include <memory>

#include "gui/window/main_window.h"

namespace foreshard {

class OpenWindow : public testing::Test {
 protected:
  static Choices small() {
    return {.model = "gpt2-124m",
            .cluster = "dgx-a100",
            .strategy = {{"pp", "2"}, {"dp", "4"}, {"global_batch", "16"}, {"seq", "128"}}};
  }
  MainWindow& open(const QString& program = FORESHARD_PROGRAM) {
    window = std::make_unique<MainWindow>(WindowOptions{.program = program,
                                                        .settings = folder.filePath("s.ini"),
                                                        .session = folder.filePath("session.json"),
                                                        .size = {1600, 1000},
                                                        .tour = false});
    window->set_choices(small(), "test");
    window->show();
    window->activateWindow();
    EXPECT_TRUE(QTest::qWaitForWindowActive(window.get(), 10'000));
    EXPECT_TRUE(settled());
    return *window;
  }
  bool settled() {
    QTest::qWait(250);  // a change is simulated after a moment without another
    return QTest::qWaitFor([&] { return !window->busy(); }, 60'000);
  }
  void press(QWidget* widget, Qt::Key key, Qt::KeyboardModifiers with = {}) {
    widget->setFocus();
    QTest::keyClick(widget, key, with);
  }
  QTemporaryDir folder;
  std::unique_ptr<MainWindow> window;
};

}  // namespace foreshard
