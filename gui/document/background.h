// Work in another thread that cannot end the program. What it throws beyond Error is a bug of ours: an exception that leaves a
// QtConcurrent body would terminate, so it becomes a sentence in a banner and the body's value is the empty one.
#pragma once

#include <QEvent>
#include <QString>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/base/error.h"
#include "gui/document/document.h"

namespace foreshard {

// Goes to the application object, where the window looks for it.
class InternalError : public QEvent {
 public:
  explicit InternalError(QString words) : QEvent(kind()), what(std::move(words)) {}
  static Type kind();
  QString what;
};
void report_internal_error(const std::string& what);  // from any thread
std::string internal_error_words(const std::string& what);

template <class Work>
auto guarded(Work work) {
  return [work = std::move(work)]() -> std::invoke_result_t<const Work&> {
    try {
      return work();
    } catch (const std::exception& problem) {
      report_internal_error(problem.what());
    } catch (...) {
      report_internal_error("an exception of an unknown kind");
    }
    return {};
  };
}

// A document, or the sentence that says why there is none.
using LoadedDocument = std::variant<std::string, std::shared_ptr<const Document>>;

template <class Work>
LoadedDocument loaded_by(const Work& work) {
  try {
    return std::shared_ptr<const Document>(work());
  } catch (const std::exception& problem) {
    if (dynamic_cast<const Error*>(&problem) != nullptr) return std::string(problem.what());
    return internal_error_words(problem.what());
  } catch (...) {
    return internal_error_words("an exception of an unknown kind");
  }
}

}  // namespace foreshard
