// How clauses are drawn: who does what to whom, when and where, with the rules that keep English unambiguous and German natural.
#include "text/demo_clauses.h"

#include <fmt/format.h>

namespace starling::demo {

namespace {

// ---- Times, dates and numbers ----

}  // namespace

Pair clock_time(Draw& d) {
  if (d.chance(60)) return spoken_time(d.range(1, 12), 5 * d.range(0, 11));
  return digital_time(d.range(0, 23), 5 * d.range(0, 11));
}

Pair at_time(Draw& d) {
  const Pair t = clock_time(d);
  return {"at " + t.en, "um " + t.de};
}

namespace {

// "the third of May", "der dritte Mai"; with "am" in front the ending is "en" and the article is in the preposition.
Pair day_and_month(Draw& d, bool after_am) {
  const int day = d.range(1, 31);
  const Pair month = d.fixed(months());
  return {fmt::format("the {} of {}", english_ordinal(day), month.en),
          fmt::format("{}{} {}", after_am ? "" : "der ", german_ordinal(day, after_am ? "en" : "e"), month.de)};
}

}  // namespace

Pair date(Draw& d) {
  if (d.chance(60)) return day_and_month(d, false);
  const int day = d.range(1, 31), year = d.range(1950, 2030);
  const Pair month = d.fixed(months());
  return {fmt::format("{} {} {}", day, month.en, year), fmt::format("der {}. {} {}", day, month.de, year)};
}

Pair on_date(Draw& d) {
  const Pair p = day_and_month(d, true);
  return {"on " + p.en, "am " + p.de};
}

namespace {

Pair weekday(Draw& d) {
  const Pair day = d.fixed(weekdays());
  return {"on " + day.en, "am " + day.de};
}

Pair with_clock(Draw& d, const Pair& day) {
  const Pair t = at_time(d);
  return {day.en + " " + t.en, day.de + " " + t.de};
}

Pair future_time(Draw& d) {
  const int which = d.range(1, 100);
  if (which <= 25) return d.fixed(future_days());
  if (which <= 35) return with_clock(d, d.fixed(future_days()));
  if (which <= 55) return d.fixed(future_times());
  if (which <= 70) return weekday(d);
  if (which <= 80) return with_clock(d, weekday(d));
  if (which <= 92) return at_time(d);
  return on_date(d);
}

Pair past_time(Draw& d) {
  const int which = d.range(1, 100);
  if (which <= 60) return d.fixed(past_times());
  if (which <= 80) {
    const Pair day = d.fixed(weekdays());
    return {"last " + day.en, "letzten " + day.de};
  }
  struct Unit {
    const char *en, *de;
  };
  static constexpr std::array<Unit, 4> kUnits{{{"days", "Tagen"}, {"weeks", "Wochen"}, {"months", "Monaten"}, {"years", "Jahren"}}};
  const Unit unit = kUnits[static_cast<size_t>(d.range(0, 3))];
  const Pair n = number_words(d.range(2, 10));
  return {fmt::format("{} {} ago", n.en, unit.en), fmt::format("vor {} {}", n.de, unit.de)};
}

Pair habitual_time(Draw& d) {
  if (d.chance(70)) return d.fixed(habitual_times());
  if (d.chance(50)) return at_time(d);
  const Pair day = d.fixed(weekdays());
  return {"every " + day.en, "jeden " + day.de};
}

}  // namespace

// Small numbers are common, as in life.
int any_number(Draw& d) {
  const int which = d.range(1, 100);
  if (which <= 20) return d.range(2, 12);
  if (which <= 80) return d.range(13, 99);
  return which <= 92 ? d.range(100, 999) : d.range(1000, 9999);
}

namespace {

// ---- Phrases ----

std::string_view possessive(Draw& d) { return d.word({"my", "my", "his", "her", "our", "your", "their"}); }

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
  NounOptions o =
      some_options(d, noun, noun.kinds & own ? d.word({"the", "the", "my", "our", "her", "his", "this"}) : d.word({"the", "the", "this"}));
  if (d.chance(15)) {
    o.plural = true;
    if (o.determiner == "this") o.determiner = "these";
  }
  return noun_phrase(noun, o);
}

Phrase subject(Draw& d) {
  const int which = d.range(1, 100);
  if (which <= 42) return pronoun(d.word({"I", "I", "you", "he", "she", "we", "they"}));
  if (which <= 55) return name(d.of(names()));
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
    const Fixed& fixed = d.of(names());
    if (subject.en_subject != fixed.en) return name(fixed);
  }
  if (which <= 92) return a_person(d);
  const Noun& noun = d.noun(person);
  return noun_phrase(noun, some_options(d, noun, "a"));
}

namespace {

Phrase thing_of(Draw& d, const Noun& noun) {
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

Phrase thing(Draw& d, uint32_t kinds) { return thing_of(d, d.noun(kinds)); }

}  // namespace

// A thing for the subject of a sentence: definite, mostly singular.
Phrase definite_thing(Draw& d, uint32_t kinds) {
  const Noun& noun = d.noun(kinds);
  NounOptions o = some_options(d, noun, d.word({"the", "the", "my", "his", "her", "our", "your", "this"}));
  if (d.chance(15)) {
    o.plural = true;
    if (o.determiner == "this") o.determiner = "these";
  }
  return noun_phrase(noun, o);
}

namespace {

// ---- Tense ----

void put_time(Draw& d, Clause& c, const Pair& time, int fronted = 35) {
  c.time = time;
  c.time_first = d.chance(fronted);
}

}  // namespace

// A negated clause must have a place for "nicht" or "kein": not with a number, and not with an indefinite dative.
bool can_be_negated(const Clause& c) {
  if (c.accusative && c.accusative->countable_number) return false;
  return (!c.dative || c.dative->definite) && c.subject.definite;
}

namespace {

void present_tense(Draw& d, Clause& c) {
  const int which = d.range(1, 100);
  if (which <= 30 && c.verb != &be()) {
    c.frequency = d.fixed(frequencies());
    return;
  }
  if (which <= 65) put_time(d, c, habitual_time(d));
  c.negated = can_be_negated(c) && d.chance(20);
}

}  // namespace

// Tense, modal, negation and time. A past clause always names its time: "I put" and "I read" are otherwise present too.
void give_tense(Draw& d, Clause& c) {
  const int which = d.range(1, 100);
  if (which <= 20 || (which <= 40 && c.verb->stative)) return present_tense(d, c);
  if (which <= 40) {
    c.tense = Tense::progressive;
    if (d.chance(60)) put_time(d, c, d.chance(50) ? d.fixed(present_times()) : future_time(d));
  } else if (which <= 63) {
    c.tense = Tense::past;
    put_time(d, c, past_time(d));
  } else if (which <= 78) {
    c.tense = Tense::future;
    if (d.chance(65)) put_time(d, c, future_time(d));
  } else {
    c.tense = Tense::modal;
    c.modal = c.verb->stative ? &find_modal("can") : &d.of(modals());  // nobody wants to need
    if (d.chance(55)) put_time(d, c, future_time(d));
  }
  const bool modal_refuses = c.modal && !c.modal->en_negative;
  c.negated = !modal_refuses && can_be_negated(c) && d.chance(18);
}

namespace {

// ---- Clauses ----

Pair company(Draw& d, const Phrase& subject) {
  const Phrase p = person_object(d, subject);
  return {"with " + p.en_object, prepositional("mit", Case::dative, p)};
}

}  // namespace

Clause transitive(Draw& d) {
  Clause c;
  c.subject = subject(d);
  if (d.chance(12)) {
    c.verb = &have();
    c.accusative = thing(d, kThings | animal);
    c.negated = can_be_negated(c) && d.chance(35);
    return c;
  }
  c.verb = &d.of(transitive_verbs());
  c.accusative = thing(d, c.verb->objects);
  give_tense(d, c);
  return c;
}

Clause eating(Draw& d) {
  Clause c;
  c.subject = subject(d);
  c.verb = &find_verb("eat");
  if (d.chance(40)) {
    const Fixed& f = d.of(food_substances());
    c.accusative = substance(f.en, f.de,
                             std::string_view(f.en) == "butter"  ? Gender::feminine
                             : std::string_view(f.en) == "bread" ? Gender::neuter
                                                                 : Gender::masculine);
  } else {
    c.accusative = thing(d, food);
  }
  if (d.chance(30)) {
    const Place& p = d.of(places());
    c.place = {p.en_at, p.de_at};
  }
  give_tense(d, c);
  return c;
}

Clause calling(Draw& d) {
  Clause c;
  c.subject = subject(d);
  c.verb = &d.of(person_verbs());
  c.accusative = person_object(d, c.subject);
  give_tense(d, c);
  return c;
}

Clause helping(Draw& d) {
  Clause c;
  c.subject = subject(d);
  c.verb = &d.of(dative_verbs());
  c.dative = person_object(d, c.subject);
  give_tense(d, c);
  return c;
}

Clause giving(Draw& d) {
  Clause c;
  c.subject = subject(d);
  c.verb = &d.of(giving_verbs());
  c.dative = person_object(d, c.subject);
  c.accusative = thing(d, c.verb->objects);
  give_tense(d, c);
  return c;
}

Clause doing(Draw& d) {
  Clause c;
  c.subject = subject(d);
  c.verb = &d.of(intransitive_verbs());
  if (d.chance(20)) c.company = company(d, c.subject);
  give_tense(d, c);
  return c;
}

Clause going(Draw& d) {
  Clause c;
  c.subject = subject(d);
  if (d.chance(35)) {
    const Pair city = d.fixed(cities());
    c.verb = &d.of(city_verbs());
    c.place = {"to " + city.en, "nach " + city.de};
    if (std::string_view(c.verb->en) == "travel" && d.chance(50)) c.company = d.fixed(transport());
  } else {
    const Place& p = d.of(places());
    c.verb = &d.of(movement_verbs());
    c.place = {p.en_to, p.de_to};
  }
  if (c.company.en.empty() && d.chance(20)) c.company = company(d, c.subject);
  give_tense(d, c);
  return c;
}

Clause staying(Draw& d) {
  Clause c;
  c.subject = subject(d);
  c.verb = &d.of(staying_verbs());
  if (c.verb->stative || d.chance(25)) {
    const Pair city = d.fixed(cities());
    c.place = {"in " + city.en, "in " + city.de};
  } else {
    const Place& p = d.of(places());
    c.place = {p.en_at, p.de_at};
  }
  if (c.verb->stative) {
    c.negated = can_be_negated(c) && d.chance(15);
    return c;
  }
  give_tense(d, c);
  return c;
}

namespace {

// "on the old table", "auf dem alten Tisch" (where) or "auf den alten Tisch" (where to).
Pair spot(Draw& d, Case c) {
  const bool inside = d.chance(20);
  const Noun& noun = d.noun(inside ? container : surface);
  const Phrase p = noun_phrase(noun, some_options(d, noun, d.word({"the", "the", "my", "this"})));
  const Preposition prep = inside ? Preposition{"in", "in"} : kPrepositions[static_cast<size_t>(d.range(0, 4))];
  return {fmt::format("{} {}", prep.en, p.en_object), prepositional(prep.de, c, p)};
}

}  // namespace

Clause putting(Draw& d) {
  Clause c;
  c.subject = subject(d);
  const bool flat = d.chance(60);
  c.verb = flat ? &put_lying() : &put_standing();
  c.accusative = thing(d, flat ? lying : standing);
  c.place = spot(d, Case::accusative);
  give_tense(d, c);
  return c;
}

Clause lying_there(Draw& d) {
  Clause c;
  const bool flat = d.chance(60);
  c.subject = definite_thing(d, flat ? lying : standing);
  c.verb = flat ? &lie() : &stand();
  c.place = spot(d, Case::dative);
  if (d.chance(70)) c.tense = Tense::progressive;
  c.negated = d.chance(15);
  return c;
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

Clause describing(Draw& d, bool people) {
  Clause c;
  const uint32_t wanted = people ? uint32_t{person} : uint32_t{d.chance(75) ? kThings : d.chance(50) ? animal : food};
  c.subject = people ? subject(d) : definite_thing(d, wanted);
  c.verb = &be();
  const Pair much = degree(d);
  c.complement = predicate(d, wanted, c.subject);
  c.complement = {much.en + c.complement.en, much.de + c.complement.de};
  if (d.chance(20)) c.tense = Tense::past;
  if (c.tense == Tense::past && d.chance(50)) put_time(d, c, past_time(d));
  c.negated = c.subject.definite && d.chance(25);
  return c;
}

namespace {

Phrase weather_it() { return pronoun("it", Gender::neuter); }

Pair somewhere(Draw& d) {
  if (d.chance(50)) return d.fixed(regions());
  const Pair city = d.fixed(cities());
  return {"in " + city.en, "in " + city.de};
}

void weather_tense(Draw& d, Clause& c) {
  const int which = d.range(1, 100);
  if (which <= 35) {
    c.tense = c.verb == &be() ? Tense::present : Tense::progressive;
    if (d.chance(50)) put_time(d, c, d.fixed(present_times()), 50);
  } else if (which <= 65) {
    c.tense = Tense::past;
    put_time(d, c, d.fixed(past_times()), 50);
  } else {
    c.tense = Tense::future;
    put_time(d, c, d.chance(50) ? d.fixed(future_days()) : d.chance(50) ? d.fixed(future_times()) : weekday(d), 50);
  }
  c.negated = d.chance(18);
}

}  // namespace

Clause weather(Draw& d) {
  Clause c;
  c.subject = weather_it();
  if (d.chance(35)) {
    c.verb = &d.of(weather_verbs());
  } else {
    c.verb = &be();
    const Pair first = d.fixed(weather_words()), second = d.fixed(weather_words()), much = degree(d);
    c.complement = {much.en + first.en, much.de + first.de};
    if (first.en != second.en && much.en.empty() && d.chance(40))
      c.complement = {first.en + " and " + second.en, first.de + " und " + second.de};
  }
  if (d.chance(60)) c.place = somewhere(d);
  weather_tense(d, c);
  return c;
}

Clause timetable(Draw& d) {
  Clause c;
  c.subject = noun_phrase(d.of(vehicles()), {d.word({"the", "the", "our", "my"})});
  c.verb = d.chance(50) ? &depart() : &arrive();
  if (d.chance(40)) {
    const Pair city = d.fixed(cities());
    c.place = c.verb == &arrive() ? Pair{"in " + city.en, "in " + city.de} : Pair{"for " + city.en, "nach " + city.de};
  }
  const Pair time = d.chance(60) ? at_time(d) : with_clock(d, d.chance(50) ? weekday(d) : d.fixed(future_days()));
  put_time(d, c, time, 25);
  if (d.chance(30)) c.tense = Tense::future;
  return c;
}

Clause happening(Draw& d) {
  Clause c;
  c.subject = noun_phrase(d.noun(event), {d.word({"the", "the", "our", "her"})});
  c.verb = &take_place();
  if (d.chance(30)) {
    const Place& p = d.of(places());
    c.place = {p.en_at, p.de_at};
  }
  put_time(d, c, d.chance(50) ? on_date(d) : d.chance(50) ? with_clock(d, weekday(d)) : future_time(d), 30);
  if (d.chance(40)) c.tense = Tense::future;
  return c;
}

// Any clause that somebody may state.
Clause any_clause(Draw& d) {
  const int which = d.range(1, 100);
  if (which <= 20) return transitive(d);
  if (which <= 26) return eating(d);
  if (which <= 38) return calling(d);
  if (which <= 45) return helping(d);
  if (which <= 54) return giving(d);
  if (which <= 67) return doing(d);
  if (which <= 78) return going(d);
  if (which <= 83) return staying(d);
  if (which <= 88) return putting(d);
  if (which <= 91) return lying_there(d);
  if (which <= 97) return describing(d, d.chance(50));
  return weather(d);
}

}  // namespace starling::demo
