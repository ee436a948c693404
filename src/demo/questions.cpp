// Questions and requests.
#include <fmt/format.h>

#include "demo/templates.h"

namespace starling::demo {
namespace {

bool wishes(const Modal& modal) { return &modal == &find_modal("want to") || &modal == &find_modal("would like to"); }

// Nobody asks what he himself does or wants, only what he can, must, should or may do.
bool asks_oddly(const Clause& c) { return c.subject.en_subject == "I" && (c.tense != Tense::modal || wishes(*c.modal)); }

// Questions carry no negation, no frequency and no fronted time.
void make_askable(Clause& c) {
  c.negated = c.time_first = false;
  c.frequency = {};
}

Clause askable(Draw& d) {
  Clause c = any_clause(d);
  while (asks_oddly(c)) c = any_clause(d);
  make_askable(c);
  return c;
}

Pair question_template(Draw& d) {
  const Clause c = askable(d);
  return {english(c, true) + "?", german(c, Order::verb_first) + "?"};
}

Clause when_clause(Draw& d) {
  Clause c = d.chance(40) ? timetable(d) : askable(d);
  while (c.verb == &kBe) c = askable(d);
  make_askable(c);
  c.time = {};
  if (c.tense == Tense::past) c.tense = Tense::present;  // a past clause would need its time
  return c;
}

Clause where_clause(Draw& d) {
  Clause c = staying(d);
  while (asks_oddly(c)) c = staying(d);
  make_askable(c);
  c.place = {};
  return c;
}

Clause what_clause(Draw& d) {
  Clause c = transitive(d);
  while (asks_oddly(c)) c = transitive(d);
  make_askable(c);
  c.accusative.reset();
  return c;
}

// The question word and the clause without the part it asks for.
std::pair<Pair, Clause> wh_question(Draw& d) {
  switch (d.range(1, 4)) {
    case 1:
      return {{"when", "wann"}, when_clause(d)};
    case 2:
      return {{"where", "wo"}, where_clause(d)};
    case 3:
      return {{"what", "was"}, what_clause(d)};
    default:
      return {{"why", "warum"}, askable(d)};
  }
}

Pair wh_template(Draw& d) {
  const auto [word, c] = wh_question(d);
  return {fmt::format("{} {}?", word.en, english(c, true)), fmt::format("{} {}?", word.de, german(c, Order::verb_first))};
}

Pair indirect_template(Draw& d) {
  const auto [word, c] = wh_question(d);
  const Pair inner{word.en + " " + english(c), word.de + " " + german(c, Order::verb_last)};
  switch (d.range(1, 3)) {
    case 1:
      return {fmt::format("do you know {}?", inner.en), fmt::format("wissen Sie, {}?", inner.de)};
    case 2:
      return {fmt::format("can you tell me {}?", inner.en), fmt::format("können Sie mir sagen, {}?", inner.de)};
    default:
      return {fmt::format("I do not know {}.", inner.en), fmt::format("ich weiß nicht, {}.", inner.de)};
  }
}

Pair who_template(Draw& d) {
  Clause c = any_clause(d);
  while (c.verb == &kLie || c.verb == &kStand || c.subject.en_subject == "it") c = any_clause(d);
  c.subject = Phrase{"who", "", {"wer", "", ""}};
  c.subject.person = Person::third;
  c.negated = c.time_first = false;
  return {english(c) + "?", german(c) + "?"};
}

Pair imperative_template(Draw& d) {
  Clause c = any_clause(d);
  while (c.verb == &kBe || c.verb->stative || c.verb == &kLie || c.verb == &kStand || c.subject.en_subject == "it" ||
         (c.accusative && c.accusative->en_object == "you") || (c.dative && c.dative->en_object == "you") || c.company.en == "with you") {
    c = any_clause(d);
  }
  c.time_first = false;
  c.frequency = {};
  if (c.tense == Tense::past || c.tense == Tense::present) c.time = {};
  c.negated = c.negated && can_be_negated(c);
  const Pair p = imperative(c);
  if (c.negated || d.chance(40)) return {p.en + ".", p.de + "."};
  return {"please " + p.en + ".", "bitte " + p.de + "."};
}

constexpr Template kTemplates[] = {
    {"question", 6, question_template}, {"wh-question", 4, wh_template},        {"indirect-question", 3, indirect_template},
    {"who", 2, who_template},           {"imperative", 3, imperative_template},
};

}  // namespace

std::span<const Template> question_templates() { return kTemplates; }

}  // namespace starling::demo
