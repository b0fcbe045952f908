#include "gui/strategy/suggestions.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/json/json.h"
#include "gui/strategy/option_field.h"

namespace foreshard {

using namespace std::chrono_literals;

namespace {

class Ideas {
 public:
  Ideas(const Choices& choices, const std::map<std::string, std::string>& resolved) : choices_(choices), resolved_(resolved) {}

  std::vector<Suggestion> against(BubbleCause cause) {
    switch (cause) {
      case BubbleCause::WarmUp:
      case BubbleCause::Drain: shorter_pipeline(); break;
      case BubbleCause::Dependency: shorter_pipeline(), change("recompute", "none"); break;
      case BubbleCause::ExposedCommunication: less_communication(); break;
      case BubbleCause::Straggler: change("algorithm", "hierarchical"), halve("tp"); break;
      case BubbleCause::Barrier: less_gradients(), halve("pp"); break;
      case BubbleCause::Imbalance: halve("ep"); break;
    }
    return std::move(ideas_);
  }

 private:
  std::string now(const std::string& path) const {
    const auto found = resolved_.find(path);
    return found == resolved_.end() ? std::string() : found->second;
  }
  int number(const std::string& path) const { return std::atoi(now(path).c_str()); }

  // "micro batch 1 → 2", as the panel calls it.
  std::string turned(const std::string& path, const std::string& value) const {
    const auto shown = [](const std::string& text) {
      if (text == "true") return OptionField::tr("on");
      return text == "false" ? OptionField::tr("off") : QString::fromStdString(text);
    };
    return (option_label(path) + " " + shown(now(path)) + " → " + shown(value)).toStdString();
  }
  void add(std::string text, Choices choices) {
    if (choices != choices_) ideas_.push_back({.text = std::move(text), .choices = std::move(choices)});
  }
  void change(const std::string& path, const std::string& value) {
    if (now(path) == value || now(path).empty()) return;
    Choices choices = choices_;
    choices.strategy[path] = value;
    add(turned(path, value), std::move(choices));
  }
  void halve(const std::string& path) {
    if (number(path) < 2 || number(path) % 2 != 0) return;
    Choices choices = choices_;
    choices.strategy[path] = std::to_string(number(path) / 2);
    if (path == "tp" || path == "pp") {
      choices.strategy.erase("dp");
      choices.strategy.erase("zero_group");
    }
    add(turned(path, std::to_string(number(path) / 2)), std::move(choices));
  }
  void with_overlap(const std::string& part) {
    const std::string overlap = now("overlap");
    if (("," + overlap + ",").find("," + part + ",") != std::string::npos) return;
    change("overlap", overlap.empty() || overlap == "none" ? part : overlap + "," + part);
  }
  void chunks(int count) {
    if (number("pp") < 2 || number("virtual_stages") >= count) return;
    Choices choices = choices_;
    choices.strategy["virtual_stages"] = std::to_string(count);
    choices.strategy["schedule"] = "interleaved-1f1b";
    add(turned("virtual_stages", std::to_string(count)) + ", interleaved-1f1b", std::move(choices));
  }
  void shorter_pipeline() {
    chunks(2);
    chunks(3);
    halve("micro_batch");
    halve("pp");
    change("sequence_parallel", number("tp") > 1 ? "true" : now("sequence_parallel"));
  }
  void less_communication() {
    if (number("tp") > 1) change("sequence_parallel", "true");
    with_overlap("grad");
    with_overlap("p2p");
    with_overlap("tp");
    halve("tp");
    change("micro_batch", std::to_string(number("micro_batch") * 2));
    less_gradients();
  }
  void less_gradients() {
    with_overlap("grad");
    if (number("zero") > 0) with_overlap("param");
    change("zero", "1");
    change("algorithm", "hierarchical");
  }

  const Choices& choices_;
  const std::map<std::string, std::string>& resolved_;
  std::vector<Suggestion> ideas_ = {};
};

}  // namespace

std::vector<Suggestion> ideas_against(BubbleCause cause, const Choices& choices,
                                      const std::map<std::string, std::string>& resolved) {
  return Ideas(choices, resolved).against(cause);
}

SuggestionTrial::SuggestionTrial(const QString& program, QObject* parent) : QObject(parent), child_(program) {
  connect(&child_, &Child::finished, this, [this](const ChildOutcome& outcome) {
    if (outcome.end == ChildEnd::Cancelled) return;
    try {
      if (outcome.end == ChildEnd::Done && outcome.exit_code == 0) {
        Suggestion tried = ideas_[next_];
        tried.seconds = JsonReader::parse(outcome.out.toStdString(), "simulate").at("iteration_time_s").as_double(0);
        tried.gain = now_ - tried.seconds;
        if (tried.gain > now_ * 1e-4) found_.push_back(std::move(tried));
        std::stable_sort(found_.begin(), found_.end(),
                         [](const Suggestion& a, const Suggestion& b) { return a.gain > b.gain; });
      }
    } catch (const Error&) {  // an idea without an answer falls away
    }
    ++next_;
    go_on();
  });
}

void SuggestionTrial::start(std::vector<Suggestion> ideas, double seconds_now) {
  stop();
  ideas_ = std::move(ideas);
  found_.clear();
  next_ = 0;
  now_ = seconds_now;
  go_on();
}

void SuggestionTrial::stop() {
  next_ = ideas_.size();
  child_.cancel();
}

void SuggestionTrial::go_on() {
  Q_EMIT changed();
  if (next_ >= ideas_.size()) return;
  QStringList words = {"simulate"};
  for (const std::string& word : job_words(ideas_[next_].choices)) words << QString::fromStdString(word);
  words << "--granularity"
        << "stage"
        << "--json"
        << "--progress"
        << "json";
  child_.start(words, 60s);
}

}  // namespace foreshard
