#include "gui/document/background.h"

#include <QCoreApplication>

namespace foreshard {

QEvent::Type InternalError::kind() {
  static const int registered = QEvent::registerEventType();
  return static_cast<QEvent::Type>(registered);
}

std::string internal_error_words(const std::string& what) {
  return QCoreApplication::translate("Background", "Internal error: %1. Please report it.")
      .arg(QString::fromStdString(what))
      .toStdString();
}

void report_internal_error(const std::string& what) {
  QCoreApplication::postEvent(QCoreApplication::instance(),
                              new InternalError(QString::fromStdString(internal_error_words(what))));
}

}  // namespace foreshard
