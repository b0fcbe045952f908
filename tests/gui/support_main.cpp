// The program of the GUI tests: one QApplication, on the offscreen platform unless QT_QPA_PLATFORM says otherwise.
#include <gtest/gtest.h>

#include <QApplication>
#include <QTemporaryDir>

int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  const QTemporaryDir own;  // Qt wants one that nobody else may read
  if (qEnvironmentVariableIsEmpty("XDG_RUNTIME_DIR")) qputenv("XDG_RUNTIME_DIR", own.path().toLocal8Bit());
  const QApplication application(count, arguments);
  return RUN_ALL_TESTS();
}
