#include "core/result/verdict.h"

#include <vector>

#include "core/json/json.h"

namespace foreshard {

const char* name_of(Verdict::Kind kind) {
  switch (kind) {
    case Verdict::Kind::Fits: return "fits";
    case Verdict::Kind::MayFit: return "may fit";
    case Verdict::Kind::DoesNotFit: return "does not fit";
  }
  return "";
}

std::string to_json(const Verdict& verdict) {
  JsonWriter json(0);
  json.begin_object().field("verdict", name_of(verdict.kind)).field("probability", verdict.probability);
  json.field("holder", verdict.holder)
      .field("needs_bytes", verdict.needs.value)
      .field("capacity_bytes", verdict.capacity.value);
  return json.field("reason", verdict.reason).field("beneath", verdict.beneath).end_object().text();
}

Verdict parse_verdict(const std::string& text, const std::string& where) {
  const JsonReader json = JsonReader::parse(text, where);
  json.only({"verdict", "probability", "holder", "needs_bytes", "capacity_bytes", "reason", "beneath"});
  using enum Verdict::Kind;
  Verdict verdict;
  const std::string word = json.at("verdict").as_choice({name_of(Fits), name_of(MayFit), name_of(DoesNotFit)});
  for (const Verdict::Kind kind : {Fits, MayFit, DoesNotFit})
    if (word == name_of(kind)) verdict.kind = kind;
  verdict.probability = json.at("probability").as_double(0, 1);
  verdict.holder = json.at("holder").as_string();
  verdict.needs = {json.at("needs_bytes").as_int(0)}, verdict.capacity = {json.at("capacity_bytes").as_int(0)};
  verdict.reason = json.at("reason").as_string(), verdict.beneath = json.at("beneath").as_string();
  return verdict;
}

}  // namespace foreshard
