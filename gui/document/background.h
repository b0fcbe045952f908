// Guards for work in a worker thread. An exception that leaves a QtConcurrent body would terminate the program. These functions
// catch it. An exception other than Error is a bug of the program: the window reports it in a banner.
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

// The message of a caught internal error, as an event that is posted to the application object; the main window shows it.
class InternalError : public QEvent {
 public:
  explicit InternalError(QString words) : QEvent(kind()), what(std::move(words)) {}
  static Type kind();
  QString what;
};
void report_internal_error(const std::string& what);  // posts an InternalError; callable from any thread
// The sentence that the banner shows for the text of an exception.
std::string internal_error_words(const std::string& what);

// `work` as a callable that never throws: on any exception it reports an internal error and returns a value-initialised result.
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

// A document, or the sentence that says why it could not be loaded.
using LoadedDocument = std::variant<std::string, std::shared_ptr<const Document>>;

// Calls `work`, which returns a document. An Error becomes its own message, any other exception internal_error_words.
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
