// Statements: one clause, or two about one thing.
#include <fmt/format.h>

#include "demo/templates.h"

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

constexpr Template kTemplates[] = {
    {"transitive", 9, transitive_template}, {"person", 6, person_template},         {"giving", 4, giving_template},
    {"separable", 5, separable_template},   {"place", 6, place_template},           {"two-way", 5, two_way_template},
    {"adjective", 4, adjective_template},   {"comparison", 3, comparison_template}, {"belonging", 2, belonging_template},
    {"reference", 3, reference_template},
};

}  // namespace

std::span<const Template> statement_templates() { return kTemplates; }

}  // namespace starling::demo
