// Longer sentences: subordinate, relative and coordinated clauses.
#include <fmt/format.h>

#include "demo/clauses.h"

namespace starling::demo {
namespace {

constexpr Fixed kSubordinators[] = {{"because", "weil"}, {"although", "obwohl"}, {"if", "wenn"}, {"when", "wenn"}};

Clause plain(Draw& d) {
  Clause c = any_clause(d);
  c.time_first = false;
  return c;
}

Clause condition(Draw& d, const Fixed& word) {
  Clause c = plain(d);
  // "wenn" is not for single past events, and an English "if" wants no "will".
  const bool wenn = std::string_view(word.de) == "wenn";
  while (wenn && (c.tense == Tense::past || c.tense == Tense::future)) c = plain(d);
  return c;
}

Pair adverbial_template(Draw& d) {
  const Fixed& word = d.of(kSubordinators);
  const Clause sub = condition(d, word);
  Clause main = plain(d);
  while (std::string_view(word.de) == "wenn" && main.tense == Tense::past) main = plain(d);
  if (d.chance(50)) {
    return {fmt::format("{} {} {}.", english(main), word.en, english(sub)),
            fmt::format("{}, {} {}.", german(main), word.de, german(sub, Order::verb_last))};
  }
  return {fmt::format("{} {}, {}.", word.en, english(sub), english(main)),
          fmt::format("{} {}, {}.", word.de, german(sub, Order::verb_last), german(main, Order::verb_first))};
}

// "I know that my sister thinks that ...": the recursion ends by chance.
Pair content(Draw& d, int depth) {
  Clause matrix;
  matrix.subject = subject(d);
  matrix.verb = &d.of(kSaying);
  if (depth < 2 && d.chance(20)) {
    const Pair inner = content(d, depth + 1);
    return {fmt::format("that {} {}", english(matrix), inner.en), fmt::format("dass {}, {}", german(matrix, Order::verb_last), inner.de)};
  }
  const Clause c = plain(d);
  return {"that " + english(c), "dass " + german(c, Order::verb_last)};
}

Pair that_template(Draw& d) {
  Clause matrix;
  matrix.subject = subject(d);
  matrix.verb = &d.of(kSaying);
  const Pair inner = content(d, 0);
  return {fmt::format("{} {}.", english(matrix), inner.en), fmt::format("{}, {}.", german(matrix), inner.de)};
}

Pair whether_template(Draw& d) {
  const Clause c = plain(d);
  const std::string en = "whether " + english(c), de = "ob " + german(c, Order::verb_last);
  if (d.chance(30)) return {fmt::format("do you know {}?", en), fmt::format("wissen Sie, {}?", de)};
  Clause matrix;
  matrix.subject = subject(d);
  const bool asks = d.chance(30);
  matrix.verb = asks ? &find_verb("ask") : &kKnow;
  matrix.negated = !asks && matrix.subject.definite;
  if (asks) matrix.accusative = person_object(d, matrix.subject);
  return {fmt::format("{} {}.", english(matrix), en), fmt::format("{}, {}.", german(matrix), de)};
}

Phrase related_person(Draw& d) {
  const Noun& noun = d.noun(person);
  NounOptions o = some_options(d, noun, "the");
  o.plural = d.chance(20);
  const Phrase p = noun_phrase(noun, o);
  if (d.chance(60)) {
    Clause c = d.chance(50) ? staying(d) : d.chance(50) ? transitive(d) : doing(d);
    return with_subject_relative(p, c, true);
  }
  const bool dative = d.chance(40);
  Clause c = dative ? helping(d) : calling(d);
  while (c.subject.en_subject == p.en_subject) c.subject = subject(d);
  return with_object_relative(p, c, dative ? Case::dative : Case::accusative);
}

Phrase related_thing(Draw& d, const Noun& noun, const Verb* verb = nullptr) {
  const Phrase p = noun_phrase(noun, some_options(d, noun, "the"));
  if (d.chance(35) && (noun.kinds & (lying | standing))) {
    Clause c = lying_there(d);
    c.verb = noun.kinds & lying ? &kLie : &kStand;
    return with_subject_relative(p, c, false);
  }
  Clause c;
  c.subject = subject(d);
  do {
    c.verb = d.chance(30) ? &kHave : &d.of(kTransitive);
  } while ((c.verb != &kHave && !(c.verb->objects & noun.kinds)) || c.verb == verb);
  if (c.verb != &kHave) give_tense(d, c);
  c.negated = false;
  return with_object_relative(p, c, Case::accusative);
}

Pair relative_subject_template(Draw& d) {
  Clause c;
  if (d.chance(60)) {
    c = any_clause(d);
    while (c.subject.en_subject == "it" || c.verb == &kLie || c.verb == &kStand || c.verb == &kBe) c = any_clause(d);
    c.subject = related_person(d);
  } else {
    const Noun& noun = d.noun(kThings);
    c = describing(d, false);
    c.subject = related_thing(d, noun);
    c.complement = predicate(d, noun.kinds, c.subject);
  }
  c.time_first = false;
  return statement(c);
}

// A clause whose object carries a relative clause keeps its end free: the time goes to the front or away.
void free_the_end(Clause& c) {
  if (c.time.en.empty()) return;
  c.time_first = true;
}

Pair relative_object_template(Draw& d) {
  Clause c = d.chance(50) ? transitive(d) : calling(d);
  while (c.verb == &kHave) c = transitive(d);
  if (c.verb->objects & (kin | person) && c.verb != &find_verb("see")) {
    c.accusative = related_person(d);
  } else {
    c.accusative = related_thing(d, d.noun(c.verb->objects & ~uint32_t{person | animal}), c.verb);
  }
  free_the_end(c);
  return statement(c);
}

Pair coordination_template(Draw& d) {
  const Clause a = any_clause(d), b = plain(d);
  const int which = d.range(1, 3);
  if (which == 1) return {fmt::format("{}, and {}.", english(a), english(b)), fmt::format("{} und {}.", german(a), german(b))};
  if (which == 2) return {fmt::format("{}, but {}.", english(a), english(b)), fmt::format("{}, aber {}.", german(a), german(b))};
  return {fmt::format("{}, so {}.", english(a), english(b)), fmt::format("{}, deshalb {}.", german(a), german(b, Order::verb_first))};
}

constexpr Template kCompound[] = {
    {"adverbial-clause", 6, adverbial_template},
    {"that", 4, that_template},
    {"whether", 3, whether_template},
    {"relative-subject", 4, relative_subject_template},
    {"relative-object", 3, relative_object_template},
    {"coordination", 4, coordination_template},
};

}  // namespace

std::span<const Template> compound_templates() { return kCompound; }

}  // namespace starling::demo
