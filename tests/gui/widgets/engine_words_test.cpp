// Every sentence that the engine can say has a Chinese one: those in its sources, those of wrong values, those of refused strategies.
#include "gui/widgets/engine_words.h"

#include <gtest/gtest.h>

#include <QDir>
#include <QDirIterator>
#include <QRegularExpression>

#include "core/cluster_file/cluster_file.h"
#include "core/json/json.h"
#include "core/strategy/strategy_options.h"
#include "gui/document/choices.h"
#include "gui/widgets/language.h"
#include "strategy/tune/tune.h"

namespace foreshard::engine_words_test {
namespace {

// The expression of code that begins at `at`: its literals joined, "7" for whatever is put between them. `end`: what ends it.
QString sentence_at(const QString& code, qsizetype at, QChar& end) {
  QString sentence;
  for (int depth = 0; at < code.size(); ++at) {
    const QChar c = code[at];
    if (c == '"') {
      const qsizetype from = ++at;
      while (code[at] != '"') at += code[at] == '\\' ? 2 : 1;
      sentence += code.mid(from, at - from).replace("\\\"", "\"");
      continue;
    }
    if (depth == 0 && QStringLiteral(",;)}").contains(c)) {
      end = c;
      break;
    }
    if (QStringLiteral("({[").contains(c)) ++depth;
    if (QStringLiteral(")}]").contains(c)) --depth;
    if (c.isLetterOrNumber() && !sentence.endsWith('7')) sentence += '7';
  }
  return sentence;
}

QStringList sentences_in_sources() {
  static const QRegularExpression begin(R"re(reason = |Infeasible\{(?=")|empty_space\((?=")|throw Error\()re"),
      words("[a-z]{2,}[^a-z]+[a-z]{2,}");
  static const QRegularExpression two_forms(R"re(counted\([^"]*"[^"]+", "([^"]+)"\))re"),
      one_form(R"re(counted\([^"]*"([^"]+)"\))re");
  QStringList all;
  for (const char* folder : {"strategy", "core/op"}) {
    for (QDirIterator room(QStringLiteral(FORESHARD_SOURCE "/") + folder, {"*.cpp"}, QDir::Files, QDirIterator::Subdirectories);
         room.hasNext();) {
      QString code = QString::fromStdString(read_file(room.next().toStdString())).replace("std::string(", "(");
      code.replace(two_forms, "\"7 \\1\"").replace(one_form, "\"7 \\1s\"");
      for (auto found = begin.globalMatch(code); found.hasNext();) {
        const auto match = found.next();
        QChar end;
        const QString sentence = sentence_at(code, match.capturedEnd(), end);
        const bool parts = match.captured().startsWith("throw") && end == ',';  // file, field, found, expected
        if (!parts && words.match(sentence).hasMatch()) all << sentence;
      }
    }
  }
  return all;
}

TEST(EngineWords, EverySentenceOfTheEngineHasAChineseOne) {
  const QStringList all = sentences_in_sources();
  EXPECT_GT(all.size(), 40);
  for (const QString& sentence : all) EXPECT_EQ(engine_words(sentence), sentence);  // in English as it is
  const Language chinese("zh_CN");
  for (const QString& sentence : all) EXPECT_NE(engine_words(sentence), sentence) << sentence.toStdString();
}

TEST(EngineWords, EveryWrongValueIsExplainedInChinese) {
  const Language chinese("zh_CN");
  static const QRegularExpression english("found |expected |nearest| such as | at least ");
  int complaints = 0;
  for (const StrategyOption& option : strategy_options())
    for (const char* value : {"zz", "-1", "0", "1.5", "99999999999999999999", "a,b", "2x", "full:zz", "nan"}) {
      const QString reason = QString::fromStdString(complaint_about(option.path, value));
      if (reason.isEmpty()) continue;
      ++complaints;
      EXPECT_FALSE(engine_words(reason).contains(english)) << option.path << ": " << engine_words(reason).toStdString();
    }
  EXPECT_GT(complaints, 100);
}

TEST(EngineWords, RefusedStrategiesKeepTheirNumbers) {
  const Language chinese("zh_CN");
  const Model model = load_model("gpt2-124m");
  const Cluster cluster = load_cluster("dgx-a100");
  const auto refusal = [&](const Strategy& strategy) {
    const auto answer = tuned_plan(model, cluster, strategy);
    const auto* refused = std::get_if<Infeasible>(&answer);
    EXPECT_NE(refused, nullptr);
    return refused == nullptr ? QString() : engine_words(QString::fromStdString(refused->reason));
  };
  EXPECT_EQ(refusal({.dp = 4, .tp = 4}), "tp 4 × cp 1 × pp 1 × dp 4 = 16 个 rank，但 dgx-a100 有 8 个 GPU");
  EXPECT_EQ(refusal({.pp = 7}), "tp 1 × cp 1 × pp 7 = 7 不能整除 dgx-a100 的 8 个 GPU");
  EXPECT_EQ(refusal({.dp = 1, .tp = 8}), "tp 8 不能整除 12 个注意力头");
  EXPECT_EQ(engine_words("strategy panel: more settings: found \"50%1\", expected true or false"),
            "strategy panel：more settings：找到 \"50%1\"，应为 true 或 false");
}

}  // namespace
}  // namespace foreshard::engine_words_test
