#include "gui/widgets/language.h"

#include <QCoreApplication>
#include <QFontDatabase>
#include <QLibraryInfo>
#include <QLocale>
#include <QSettings>

// Outside a namespace: the resources of a static library have to be asked for by name.
static void open_translations() { Q_INIT_RESOURCE(translations); }

namespace foreshard {

bool speaks(const std::string& code) { return code == "en" || code == "zh_CN"; }

bool can_show(const std::string& code) {
  return code != "zh_CN" || !QFontDatabase::families(QFontDatabase::SimplifiedChinese).isEmpty();
}

std::string chosen_language() {
  const QString kept = QSettings("foreshard", "foreshard-gui").value("language").toString();
  const std::string wanted = !kept.isEmpty()                                    ? kept.toStdString()
                             : QLocale::system().language() == QLocale::Chinese ? "zh_CN"
                                                                                : "en";
  return can_show(wanted) ? wanted : "en";
}

Language::Language(const std::string& code) {
  open_translations();
  const QString name = QString::fromStdString(speaks(code) ? code : "en");
  QLocale::setDefault(QLocale(name));
  if (own_.load(":/i18n/foreshard_" + name + ".qm")) QCoreApplication::installTranslator(&own_);
  if (options_.load(":/i18n/options_" + name + ".qm")) QCoreApplication::installTranslator(&options_);
  if (name != "en" && qt_.load("qtbase_" + name, QLibraryInfo::path(QLibraryInfo::TranslationsPath)))
    QCoreApplication::installTranslator(&qt_);
}

Language::~Language() {
  for (QTranslator* translator : {&own_, &options_, &qt_}) QCoreApplication::removeTranslator(translator);
}

}  // namespace foreshard
