#include "gui/widgets/language.h"

#include <gtest/gtest.h>

#include <QAction>
#include <QCoreApplication>
#include <QDir>
#include <QDirIterator>
#include <QFile>
#include <QProcess>
#include <QRegularExpression>
#include <QSettings>
#include <QTemporaryDir>
#include <QXmlStreamReader>
#include <set>
#include <utility>

#include "core/json/json.h"
#include "core/strategy/strategy_options.h"
#include "gui/inspector/kpi_strip.h"
#include "gui/strategy/option_field.h"
#include "gui/window/main_window.h"

namespace foreshard::language_test {

TEST(Language, ChineseAsLongAsItLives) {
  EXPECT_EQ(PlanViews::tr("Topology"), "Topology");
  {
    const Language chinese("zh_CN");
    EXPECT_EQ(PlanViews::tr("Topology"), "拓扑");
    EXPECT_TRUE(option_label("global_batch").contains("批"));
    EXPECT_EQ(KpiStrip::tr("%n stage(s)", nullptr, 16), "16 个阶段");
    EXPECT_EQ(QCoreApplication::translate("Facts", "The whole iteration"), "整个迭代");
  }
  EXPECT_EQ(PlanViews::tr("Topology"), "Topology");
}

static std::set<QString> translated() {
  const QDir folder(QStringLiteral(FORESHARD_SOURCE "/gui/translations"));
  std::set<QString> known;
  for (const char* name : {"foreshard_zh_CN.ts", "options_zh_CN.ts"}) {
    QXmlStreamReader xml(QByteArray::fromStdString(read_file(folder.filePath(name).toStdString())));
    while (!xml.atEnd())
      if (xml.readNext() == QXmlStreamReader::StartElement && xml.name() == QLatin1String("source"))
        known.insert(xml.readElementText());
    EXPECT_FALSE(xml.hasError()) << name << ": " << xml.errorString().toStdString();
  }
  return known;
}

TEST(Language, EveryOptionIsExplainedInChinese) {
  const std::set<QString> known = translated();
  for (const StrategyOption& option : strategy_options())
    for (const std::string& text : {option.help, option.constraint})
      EXPECT_TRUE(text.empty() || known.contains(QString::fromStdString(text))) << option.path << ": " << text;
}

// Every text that the window says through tr() and its like stands in the Chinese file, whatever its context.
TEST(Language, EveryTextHasAChineseOne) {
  const std::set<QString> known = translated();
  static const QRegularExpression call(
      R"re(\b(?:tr|words|QT_TR_NOOP|QT_TRANSLATE_NOOP)\(\s*((?:"(?:[^"\\]|\\.)*"\s*,?\s*)+))re");
  static const QRegularExpression literal(R"re("((?:[^"\\]|\\.)*)"\s*(,?))re");
  int texts = 0;
  for (QDirIterator files(QStringLiteral(FORESHARD_SOURCE "/gui"), {"*.cpp"}, QDir::Files, QDirIterator::Subdirectories);
       files.hasNext();) {
    const QString file = files.next(), code = QString::fromStdString(read_file(file.toStdString()));
    for (auto found = call.globalMatch(code); found.hasNext();) {
      const auto match = found.next();
      const bool with_context = match.captured().startsWith("QT_TRANSLATE_NOOP");
      QString text;
      bool skip = with_context;
      for (auto part = literal.globalMatch(match.captured(1)); part.hasNext();) {
        const auto one = part.next();
        if (!skip) text += one.captured(1);
        if (!one.captured(2).isEmpty() && !std::exchange(skip, false)) break;  // the arguments after the text
      }
      text.replace("\\\"", "\"").replace("\\n", "\n");
      if (text.isEmpty() || text.contains("\\u")) continue;
      ++texts;
      EXPECT_TRUE(known.contains(text)) << file.toStdString() << ": " << text.toStdString();
    }
  }
  EXPECT_GT(texts, 300);
}

TEST(Language, NoTextIsThereTwice) {
  for (const char* name : {"foreshard_zh_CN.ts", "options_zh_CN.ts"}) {
    QXmlStreamReader xml(QByteArray::fromStdString(read_file(FORESHARD_SOURCE "/gui/translations/" + std::string(name))));
    QString context;
    std::set<QString> known;
    while (!xml.atEnd()) {
      if (xml.readNext() != QXmlStreamReader::StartElement) continue;
      if (xml.name() == QLatin1String("name")) context = xml.readElementText();
      if (xml.name() == QLatin1String("source")) {
        const QString text = xml.readElementText();
        EXPECT_TRUE(known.insert(context + ": " + text).second) << context.toStdString() << ": " << text.toStdString();
      }
    }
  }
}

TEST(Language, EnglishPlurals) {
  const Language english("en");
  EXPECT_EQ(KpiStrip::tr("%n stage(s)", nullptr, 1), "1 stage");
  EXPECT_EQ(KpiStrip::tr("%n stage(s)", nullptr, 2), "2 stages");
}

TEST(Language, OneThatIsNotSpokenIsEnglish) {
  EXPECT_FALSE(speaks("tlh"));
  const Language klingon("tlh");
  EXPECT_EQ(PlanViews::tr("Topology"), "Topology");
}

// Squares instead of words: Chinese is offered only where a font has its characters. Without them: in a child, whose fonts are this
// machine's without those of Chinese.
TEST(Language, ChineseNeedsAFont) {
  const char* const mark = "FORESHARD_TEST_WITHOUT_CHINESE";
  if (qEnvironmentVariableIsSet(mark)) {
    QSettings("foreshard", "foreshard-gui").setValue("language", "zh_CN");  // in a folder of the parent's
    EXPECT_EQ(chosen_language(), "en");
    const QTemporaryDir folder;
    const MainWindow window(
        WindowOptions{.settings = folder.filePath("s.ini"), .session = folder.filePath("s.json"), .tour = false});
    const QAction* chinese = window.findChild<QAction*>("view.language_zh_CN");
    ASSERT_NE(chinese, nullptr);
    EXPECT_FALSE(chinese->isEnabled());
    EXPECT_TRUE(chinese->text().contains("needs a font")) << chinese->text().toStdString();
    return;
  }
  const QTemporaryDir folder;
  write_file(folder.filePath("fonts.conf").toStdString(),
             "<fontconfig><include>/etc/fonts/fonts.conf</include><selectfont><rejectfont><pattern><patelt name=\"charset\">"
             "<charset><int>0x4e2d</int></charset></patelt></pattern></rejectfont></selectfont></fontconfig>");
  QProcessEnvironment around = QProcessEnvironment::systemEnvironment();
  around.insert("FONTCONFIG_FILE", folder.filePath("fonts.conf"));
  around.insert("XDG_CONFIG_HOME", folder.path());
  around.insert(mark, "1");
  QProcess child;
  child.setProcessEnvironment(around);
  child.setProcessChannelMode(QProcess::MergedChannels);
  child.start(QCoreApplication::applicationFilePath(), {"--gtest_filter=Language.ChineseNeedsAFont"});
  ASSERT_TRUE(child.waitForFinished(60'000));
  EXPECT_EQ(child.exitCode(), 0) << child.readAll().toStdString();
}

}  // namespace foreshard::language_test
