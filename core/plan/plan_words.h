// The words that plan files use for the enums of a Plan, in the order of the enumerators.
#pragma once

#include "core/base/words.h"
#include "core/plan/plan.h"

namespace foreshard {

template <>
const std::vector<std::string>& words<DType>();
template <>
const std::vector<std::string>& words<TensorPart>();
template <>
const std::vector<std::string>& words<Space>();
template <>
const std::vector<std::string>& words<Category>();
template <>
const std::vector<std::string>& words<Grid>();
template <>
const std::vector<std::string>& words<DenseKind>();
template <>
const std::vector<std::string>& words<ExpertKind>();
template <>
const std::vector<std::string>& words<Scope>();
template <>
const std::vector<std::string>& words<CollectiveKind>();
template <>
const std::vector<std::string>& words<Combine>();
template <>
const std::vector<std::string>& words<Algorithm>();
template <>
const std::vector<std::string>& words<ParamKind>();
template <>
const std::vector<std::string>& words<Work>();
template <>
const std::vector<std::string>& words<StreamKind>();

}  // namespace foreshard
