// Small shell scripts that stand for the foreshard program: they answer, crash, hang or talk nonsense.
#pragma once

#include <gtest/gtest.h>

#include <QFile>
#include <QString>
#include <QTemporaryDir>

namespace foreshard {

class FakeProgram {
 public:
  // The body of a shell script; "$1" is the verb.
  explicit FakeProgram(const QString& body) {
    QFile file(path());
    EXPECT_TRUE(file.open(QIODevice::WriteOnly));
    file.write("#!/bin/sh\n" + body.toUtf8() + "\n");
    file.close();
    file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
  }
  QString path() const { return folder_.filePath("foreshard"); }
  QString beside(const QString& name) const { return folder_.filePath(name); }

 private:
  QTemporaryDir folder_;
};

}  // namespace foreshard
