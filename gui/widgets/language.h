// Language: installs the translations of the program and of Qt for one language; the destructor removes them. They are compiled in.
#pragma once

#include <QTranslator>
#include <string>
#include <vector>

namespace foreshard {

class Language {
 public:
  explicit Language(const std::string& code);  // "en", "zh_CN"; an unsupported one gives English
  ~Language();
  Language(const Language&) = delete;
  Language& operator=(const Language&) = delete;

 private:
  QTranslator own_, options_, qt_;
};

bool speaks(const std::string& code);    // the program has a translation for it
bool can_show(const std::string& code);  // an installed font has its letters; needs a QApplication
// The code of the language in the settings, else that of the system.
std::string chosen_language();

}  // namespace foreshard
