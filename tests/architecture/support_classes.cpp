// Sizes of classes: a small reader of C++ that knows scopes, statements and initialisers, and nothing of what they mean.
#include <algorithm>
#include <regex>

#include "tests/architecture/layout.h"

namespace foreshard::layout {

namespace {

struct ClassSize {
  std::string path = {}, name = {};  // "CudaDevice::Channel"
  int members = 0, lines = 0;
};

struct OutsideFunction {
  std::string path = {}, owner = {};  // of Name::f: Name
  int lines = 0;
};

// The statement without what stands in angle brackets: a template, not a comparison, where no space is before the bracket.
std::string without_template_arguments(const std::string& statement) {
  std::string out;
  int depth = 0;
  for (std::size_t i = 0; i < statement.size(); ++i) {
    const char c = statement[i];
    const bool arguments = i > 0 && std::isspace(static_cast<unsigned char>(statement[i - 1])) == 0;
    if (c == '<' && (depth > 0 || arguments || out.ends_with("template "))) {
      ++depth;
    } else if (c == '>' && depth > 0) {
      --depth;
    } else if (depth == 0) {
      out += c;
    }
  }
  return out;
}

// How many objects a statement of a class body declares: "int a = 0, b" 2, "void f()" 0.
int members_of(std::string statement) {
  static const std::regex label(
      R"(\b(?:public|private|protected|Q_SIGNALS)\s*:(?!:)|\bQ_OBJECT\b|\[\[[^\]]*\]\]|\balignas\([^)]*\))");
  static const std::regex other(R"(^\s*(?:using|typedef|friend|static|template|enum\s|(?:struct|class|union)\s+\w+\s*$|$))");
  static const std::regex symbol(R"(\boperator\s*[^\s(]+)");  // its "=" begins no initialiser
  static const std::regex callable(R"(\(\s*(?:\w+::)?\*)");   // void (*f)(int)
  statement = without_template_arguments(std::regex_replace(statement, label, ""));
  statement = std::regex_replace(statement, symbol, "operator");
  if (std::regex_search(statement, other)) return 0;
  const std::string declared = statement.substr(0, statement.find('='));
  if (declared.find('(') != std::string::npos && !std::regex_search(declared, callable)) return 0;
  int members = 1, depth = 0;
  for (const char c : statement) {
    if (c == '(' || c == '{' || c == '[') ++depth;
    if (c == ')' || c == '}' || c == ']') --depth;
    if (c == ',' && depth == 0) ++members;
  }
  return members;
}

class ClassReader {
 public:
  ClassReader(std::string path, std::string code) : path_(std::move(path)), code_(std::move(code)) { read_scope({}, nullptr); }
  std::vector<ClassSize> classes = {};
  std::vector<OutsideFunction> functions = {};

 private:
  // Up to the brace that closes the scope. `prefix` is of what it is inside of, with "::"; `inside` null: of a namespace.
  void read_scope(const std::string& prefix, ClassSize* inside) {
    std::string statement;
    int begin = line_;
    while (at_ < code_.size()) {
      const char c = next();
      if (c == '}') return;
      if (c == ';') {
        if (inside != nullptr) inside->members += members_of(statement);
        statement.clear();
      } else if (c == '{') {
        read_block(prefix, statement, begin, inside != nullptr);
      } else if (!statement.empty() || std::isspace(static_cast<unsigned char>(c)) == 0) {
        if (statement.empty()) begin = line_;
        statement += c;
      }
    }
  }

  void read_block(const std::string& prefix, std::string& statement, int begin, bool in_class) {
    static const std::regex type(
        R"(^(?:template\s*)?\s*(?:public:|private:|protected:|\s)*(?:struct|class|union)\s+((?:\w+::)*\w+))");
    static const std::regex owner(R"(((?:\w+::)+)~?(?:operator\s*\S+|\w+)\s*$)");
    const std::string plain = without_template_arguments(statement);
    const std::size_t bracket = plain.find('('), equals = plain.find('=');
    std::smatch match;
    if (bracket == std::string::npos && std::regex_search(plain, match, type)) {
      ClassSize size{path_, prefix + match[1].str()};
      read_scope(size.name + "::", &size);
      size.lines = line_ - begin + 1;
      classes.push_back(size);
      statement.clear();
    } else if (plain.starts_with("namespace") || plain.starts_with("inline namespace") || plain.starts_with("extern")) {
      read_scope(prefix, nullptr);
      statement.clear();
    } else if (bracket != std::string::npos &&
               (equals == std::string::npos || bracket < equals || plain.find("operator") < bracket)) {
      skip_block();
      if (goes_on()) return;  // that was an initialiser of a member before the body of the constructor
      const std::string head = plain.substr(0, bracket);
      if (!in_class && std::regex_search(head, match, owner))
        functions.push_back({path_, match[1].str().substr(0, match[1].length() - 2), line_ - begin + 1});
      statement.clear();
    } else {
      const bool enumeration = plain.find("enum") != std::string::npos && equals == std::string::npos;
      skip_block();
      statement += enumeration ? "" : "{}";
    }
  }

  char next() {
    if (code_[at_] == '\n') ++line_;
    return code_[at_++];
  }
  void skip_block() {
    for (int depth = 1; at_ < code_.size() && depth > 0;) {
      const char c = next();
      depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    }
  }
  bool goes_on() const {
    const std::size_t after = code_.find_first_not_of(" \n", at_);
    return after != std::string::npos && (code_[after] == ',' || code_[after] == '{');
  }

  std::string path_, code_;
  std::size_t at_ = 0;
  int line_ = 1;
};

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

// A class of a header has its functions anywhere in the folder, one of a .cpp file only there.
bool belongs(const OutsideFunction& function, const ClassSize& to) {
  if (function.owner != to.name) return false;
  return to.path.ends_with(".h") ? folder_of(function.path) == folder_of(to.path) : function.path == to.path;
}

}  // namespace

Complaints check_classes(const std::map<std::string, std::string>& texts) {
  static constexpr int kMostMembers = 25, kMostLines = 600;
  static const std::regex preprocessor(R"((^|\n)[ \t]*#[^\n]*)");
  std::vector<ClassSize> classes;
  std::vector<OutsideFunction> functions;
  for (const auto& [path, text] : texts) {
    const ClassReader reader(path, std::regex_replace(without_comments_and_literals(text), preprocessor, "$1"));
    classes.insert(classes.end(), reader.classes.begin(), reader.classes.end());
    functions.insert(functions.end(), reader.functions.begin(), reader.functions.end());
  }
  Complaints complaints;
  for (const ClassSize& size : classes) {
    int lines = size.lines;
    for (const OutsideFunction& function : functions) lines += belongs(function, size) ? function.lines : 0;
    const std::string name = size.path + ": " + size.name;
    if (size.members > kMostMembers)
      complaints.push_back(name + " has " + std::to_string(size.members) + " data members, at most " +
                           std::to_string(kMostMembers));
    if (lines > kMostLines)
      complaints.push_back(name + " has " + std::to_string(lines) + " lines, at most " + std::to_string(kMostLines));
  }
  return complaints;
}

}  // namespace foreshard::layout
