// Phrases at random: persons, things, adjectives.
#include "demo/clauses.h"

namespace starling::demo {

namespace {

std::string_view possessive(Draw& d) { return d.word({"my", "my", "his", "her", "our", "your", "their"}); }

Phrase mostly_singular(Draw& d, const Noun& noun, std::string_view determiner) {
  NounOptions o = some_options(d, noun, determiner);
  if (d.chance(15)) {
    o.plural = true;
    if (o.determiner == "this") o.determiner = "these";
  }
  return noun_phrase(noun, o);
}

}  // namespace

NounOptions some_options(Draw& d, const Noun& noun, std::string_view determiner) {
  NounOptions o{determiner};
  if (d.chance(30)) o.adjective = &d.adjective(noun.kinds);
  return o;
}

Phrase a_person(Draw& d) {
  if (d.chance(50)) {
    const Noun& noun = d.noun(kin);
    NounOptions o{possessive(d)};
    o.plural = !(noun.kinds & only_one) && d.chance(10);
    return noun_phrase(noun, o);
  }
  const Noun& noun = d.noun(person);
  return mostly_singular(d, noun,
                         noun.kinds & own ? d.word({"the", "the", "my", "our", "her", "his", "this"}) : d.word({"the", "the", "this"}));
}

Phrase subject(Draw& d) {
  const int which = d.range(1, 100);
  if (which <= 42) return pronoun(d.word({"I", "I", "you", "he", "she", "we", "they"}));
  if (which <= 55) return name(d.of(kNames));
  if (which <= 95) return a_person(d);
  const Noun& noun = d.noun(person);
  return noun_phrase(noun, some_options(d, noun, d.word({"a", "every"})));
}

// A person as an object: never the subject's own pronoun ("I call me").
Phrase person_object(Draw& d, const Phrase& subject) {
  const int which = d.range(1, 100);
  if (which <= 30) {
    const bool first = subject.en_subject == "I" || subject.en_subject == "we", second = subject.en_subject == "you";
    if (first) return pronoun(d.word({"you", "him", "her", "them"}));
    if (second) return pronoun(d.word({"me", "us", "him", "her", "them"}));
    return pronoun(d.word({"me", "us", "you", "him", "her"}));
  }
  if (which <= 42) {
    const Fixed& fixed = d.of(kNames);
    if (subject.en_subject != fixed.en) return name(fixed);
  }
  if (which <= 92) return a_person(d);
  const Noun& noun = d.noun(person);
  return noun_phrase(noun, some_options(d, noun, "a"));
}

Phrase thing(Draw& d, uint32_t kinds) {
  const Noun& noun = d.noun(kinds);
  const int which = d.range(1, 100);
  if (which <= 30) return noun_phrase(noun, some_options(d, noun, "the"));
  if (which <= 58) return noun_phrase(noun, some_options(d, noun, "a"));
  if (which <= 78) return noun_phrase(noun, some_options(d, noun, possessive(d)));
  if (which <= 84) return noun_phrase(noun, some_options(d, noun, "this"));
  NounOptions o = some_options(d, noun, d.word({"bare", "the", "my", "these"}));
  o.plural = true;
  if (which <= 92) o.number = d.range(2, 12);
  return noun_phrase(noun, o);
}

// A thing for the subject of a sentence.
Phrase definite_thing(Draw& d, uint32_t kinds) {
  const Noun& noun = d.noun(kinds);
  return mostly_singular(d, noun, d.word({"the", "the", "my", "his", "her", "our", "your", "this"}));
}

Pair degree(Draw& d) {
  const int which = d.range(1, 100);
  if (which <= 60) return {"", ""};
  return which <= 85 ? Pair{"very ", "sehr "} : Pair{"too ", "zu "};
}

// An adjective that the subject does not carry already: no "the red hat is red".
Pair predicate(Draw& d, uint32_t kinds, const Phrase& subject) {
  const Adjective* a = &d.adjective(kinds);
  while (subject.en_subject.find(a->en) != std::string::npos) a = &d.adjective(kinds);
  return {a->en, a->de};
}

}  // namespace starling::demo
