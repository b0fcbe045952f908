// Files with one thing changed, and what their readers say of them.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "core/base/error.h"

namespace foreshard {

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// What the Error says that `read` throws.
template <class Read>
std::string error_of(const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace foreshard
