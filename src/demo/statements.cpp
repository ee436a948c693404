// Statements (one clause, or two about one thing), questions and requests.
#include <fmt/format.h>

#include "demo/clauses.h"

namespace starling::demo {
namespace {

Pair transitive_template(Draw& d) { return statement(d.chance(80) ? transitive(d) : eating(d)); }
Pair person_template(Draw& d) { return statement(d.chance(60) ? calling(d) : helping(d)); }
Pair giving_template(Draw& d) { return statement(giving(d)); }
Pair separable_template(Draw& d) { return statement(doing(d)); }
Pair place_template(Draw& d) { return statement(d.chance(65) ? going(d) : staying(d)); }
Pair two_way_template(Draw& d) { return statement(d.chance(55) ? putting(d) : lying_there(d)); }
Pair adjective_template(Draw& d) { return statement(describing(d, d.chance(40))); }

Pair comparison_template(Draw& d) {
  const bool people = d.chance(50);
  const uint32_t kind = people ? uint32_t{person} : uint32_t{large};
  const Adjective& a = d.comparable(kind);
  const Phrase one = people ? subject(d) : definite_thing(d, kind);
  const Phrase two = people ? a_person(d) : definite_thing(d, kind);
  return {fmt::format("{} {} {} than {}.", one.en_subject, by_person(one, "am", "is", "are"), a.en_comparative, two.en_object),
          fmt::format("{} {} {} als {}.", one.de[0], by_person(one, "bin", "ist", "sind"), a.de_comparative, two.de[0])};
}

Pair belonging_template(Draw& d) {
  Clause c;
  c.subject = definite_thing(d, kThings);
  c.verb = &kBelong;
  c.dative = d.chance(40) ? pronoun(d.word({"me", "you", "him", "her", "us", "them"})) : a_person(d);
  c.negated = d.chance(20);
  if (d.chance(25)) {
    c.negated = false;
    return {english(c, true) + "?", german(c, Order::verb_first) + "?"};
  }
  return statement(c);
}

// "The coat is nice, but it is too expensive": the pronoun takes the noun's gender.
Pair reference_template(Draw& d) {
  const Noun& noun = d.noun(kThings);
  if (d.chance(50)) {
    const Phrase p = noun_phrase(noun, {d.word({"the", "my", "this", "your"})});
    const Adjective &a = d.adjective(noun.kinds), *b = &d.adjective(noun.kinds);
    while (b == &a) b = &d.adjective(noun.kinds);
    const Phrase it = pronoun("it", noun.gender);
    const Pair much = degree(d);
    return {fmt::format("{} is {}, but it is {}{}.", p.en_subject, a.en, much.en, b->en),
            fmt::format("{} ist {}, aber {} ist {}{}.", p.de[0], a.de, it.de[0], much.de, b->de)};
  }
  Clause first, second;
  first.subject = second.subject = subject(d);
  if (!first.subject.pronoun) first.subject = second.subject = pronoun(d.word({"I", "he", "she", "we"}));
  first.verb = d.chance(50) ? &kHave : &find_verb("look for");
  const bool many = d.chance(25);
  NounOptions o = some_options(d, noun, many ? "my" : d.word({"a", "the", "my"}));
  o.plural = many;
  first.accusative = noun_phrase(noun, o);
  second.accusative = many ? pronoun("them") : pronoun("it", noun.gender);
  second.verb = first.verb == &kHave ? &find_verb("need") : &find_verb("find");
  second.negated = true;
  if (second.verb == &find_verb("find")) {
    first.tense = Tense::progressive;
    second.tense = Tense::modal;
    second.modal = &find_modal("can");
  }
  return {fmt::format("{}, but {}.", english(first), english(second)), fmt::format("{}, aber {}.", german(first), german(second))};
}

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

constexpr Template kStatements[] = {
    {"transitive", 9, transitive_template},
    {"person", 6, person_template},
    {"giving", 4, giving_template},
    {"separable", 5, separable_template},
    {"place", 6, place_template},
    {"two-way", 5, two_way_template},
    {"adjective", 4, adjective_template},
    {"comparison", 3, comparison_template},
    {"belonging", 2, belonging_template},
    {"reference", 3, reference_template},
    {"question", 6, question_template},
    {"wh-question", 4, wh_template},
    {"indirect-question", 3, indirect_template},
    {"who", 2, who_template},
    {"imperative", 3, imperative_template},
};

}  // namespace

std::span<const Template> statement_templates() { return kStatements; }

}  // namespace starling::demo
