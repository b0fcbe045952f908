// Language: the texts of the program and of Qt itself in one language, as long as it lives. The translations are compiled in.
#pragma once

#include <QTranslator>
#include <string>
#include <vector>

namespace foreshard {

class Language {
 public:
  explicit Language(const std::string& code);  // "en", "zh_CN"; one that is not spoken is English
  ~Language();
  Language(const Language&) = delete;
  Language& operator=(const Language&) = delete;

 private:
  QTranslator own_, options_, qt_;
};

bool speaks(const std::string& code);
bool can_show(const std::string& code);  // a font here has its letters; needs an application
// Of the settings, else of the system.
std::string chosen_language();

}  // namespace foreshard
