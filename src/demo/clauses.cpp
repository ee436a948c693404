// How clauses are drawn: who does what to whom, when and where, with the rules that keep English unambiguous and German natural.
#include "demo/clauses.h"

#include <fmt/format.h>

namespace starling::demo {

namespace {

Pair company(Draw& d, const Phrase& subject) {
  const Phrase p = person_object(d, subject);
  return {"with " + p.en_object, prepositional("mit", Case::dative, p)};
}

Pair in_a_city(Draw& d) {
  const Pair city = d.fixed(kCities);
  return {"in " + city.en, "in " + city.de};
}

Pair at_a_place(Draw& d) {
  const Place& p = d.of(kPlaces);
  return {p.en_at, p.de_at};
}

// Somebody, and a verb of the table.
template <size_t n>
Clause somebody(Draw& d, const Verb (&verbs)[n]) {
  Clause c;
  c.subject = subject(d);
  c.verb = &d.of(verbs);
  return c;
}

}  // namespace

Clause transitive(Draw& d) {
  Clause c;
  c.subject = subject(d);
  if (d.chance(12)) {
    c.verb = &kHave;
    c.accusative = thing(d, kThings | animal);
    c.negated = can_be_negated(c) && d.chance(35);
    return c;
  }
  c.verb = &d.of(kTransitive);
  c.accusative = thing(d, c.verb->objects);
  give_tense(d, c);
  return c;
}

Clause eating(Draw& d) {
  Clause c;
  c.subject = subject(d);
  c.verb = &find_verb("eat");
  if (d.chance(40)) {
    const Fixed& f = d.of(kSubstances);
    c.accusative = substance(f.en, f.de,
                             std::string_view(f.en) == "butter"  ? Gender::feminine
                             : std::string_view(f.en) == "bread" ? Gender::neuter
                                                                 : Gender::masculine);
  } else {
    c.accusative = thing(d, food);
  }
  if (d.chance(30)) c.place = at_a_place(d);
  give_tense(d, c);
  return c;
}

Clause calling(Draw& d) {
  Clause c = somebody(d, kPerson);
  c.accusative = person_object(d, c.subject);
  give_tense(d, c);
  return c;
}

Clause helping(Draw& d) {
  Clause c = somebody(d, kDative);
  c.dative = person_object(d, c.subject);
  give_tense(d, c);
  return c;
}

Clause giving(Draw& d) {
  Clause c = somebody(d, kGiving);
  c.dative = person_object(d, c.subject);
  c.accusative = thing(d, c.verb->objects);
  give_tense(d, c);
  return c;
}

Clause doing(Draw& d) {
  Clause c = somebody(d, kIntransitive);
  if (d.chance(20)) c.company = company(d, c.subject);
  give_tense(d, c);
  return c;
}

Clause going(Draw& d) {
  Clause c;
  c.subject = subject(d);
  if (d.chance(35)) {
    const Pair city = d.fixed(kCities);
    c.verb = &d.of(kCity);
    c.place = {"to " + city.en, "nach " + city.de};
    if (std::string_view(c.verb->en) == "travel" && d.chance(50)) c.company = d.fixed(kTransport);
  } else {
    const Place& p = d.of(kPlaces);
    c.verb = &d.of(kMovement);
    c.place = {p.en_to, p.de_to};
  }
  if (c.company.en.empty() && d.chance(20)) c.company = company(d, c.subject);
  give_tense(d, c);
  return c;
}

Clause staying(Draw& d) {
  Clause c = somebody(d, kStaying);
  c.place = c.verb->stative || d.chance(25) ? in_a_city(d) : at_a_place(d);
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
  const Fixed prep = inside ? Fixed{"in", "in"} : d.of(kPrepositions);
  return {fmt::format("{} {}", prep.en, p.en_object), prepositional(prep.de, c, p)};
}

}  // namespace

Clause putting(Draw& d) {
  Clause c;
  c.subject = subject(d);
  const bool flat = d.chance(60);
  c.verb = flat ? &kPutLying : &kPutStanding;
  c.accusative = thing(d, flat ? lying : standing);
  c.place = spot(d, Case::accusative);
  give_tense(d, c);
  return c;
}

Clause lying_there(Draw& d) {
  Clause c;
  const bool flat = d.chance(60);
  c.subject = definite_thing(d, flat ? lying : standing);
  c.verb = flat ? &kLie : &kStand;
  c.place = spot(d, Case::dative);
  if (d.chance(70)) c.tense = Tense::progressive;
  c.negated = d.chance(15);
  return c;
}

Clause describing(Draw& d, bool people) {
  Clause c;
  const uint32_t wanted = people ? uint32_t{person} : uint32_t{d.chance(75) ? kThings : d.chance(50) ? animal : food};
  c.subject = people ? subject(d) : definite_thing(d, wanted);
  c.verb = &kBe;
  const Pair much = degree(d);
  c.complement = predicate(d, wanted, c.subject);
  c.complement = {much.en + c.complement.en, much.de + c.complement.de};
  if (d.chance(20)) c.tense = Tense::past;
  if (c.tense == Tense::past && d.chance(50)) put_time(d, c, past_time(d));
  c.negated = c.subject.definite && d.chance(25);
  return c;
}

namespace {

void weather_tense(Draw& d, Clause& c) {
  const int which = d.range(1, 100);
  if (which <= 35) {
    c.tense = c.verb == &kBe ? Tense::present : Tense::progressive;
    if (d.chance(50)) put_time(d, c, d.fixed(kPresent), 50);
  } else if (which <= 65) {
    c.tense = Tense::past;
    put_time(d, c, d.fixed(kPast), 50);
  } else {
    c.tense = Tense::future;
    put_time(d, c, d.chance(50) ? d.fixed(kFutureDays) : d.chance(50) ? d.fixed(kFuture) : weekday(d), 50);
  }
  c.negated = d.chance(18);
}

}  // namespace

Clause weather(Draw& d) {
  Clause c;
  c.subject = pronoun("it");
  if (d.chance(35)) {
    c.verb = &d.of(kWeather);
  } else {
    c.verb = &kBe;
    const Pair first = d.fixed(kWeatherWords), second = d.fixed(kWeatherWords), much = degree(d);
    c.complement = {much.en + first.en, much.de + first.de};
    if (first.en != second.en && much.en.empty() && d.chance(40))
      c.complement = {first.en + " and " + second.en, first.de + " und " + second.de};
  }
  if (d.chance(60)) c.place = d.chance(50) ? d.fixed(kRegions) : in_a_city(d);
  weather_tense(d, c);
  return c;
}

Clause timetable(Draw& d) {
  Clause c;
  c.subject = noun_phrase(d.of(kVehicles), {d.word({"the", "the", "our", "my"})});
  c.verb = d.chance(50) ? &kDepart : &kArrive;
  if (d.chance(40)) {
    const Pair city = d.fixed(kCities);
    c.place = c.verb == &kArrive ? Pair{"in " + city.en, "in " + city.de} : Pair{"for " + city.en, "nach " + city.de};
  }
  const Pair time = d.chance(60) ? at_time(d) : with_clock(d, d.chance(50) ? weekday(d) : d.fixed(kFutureDays));
  put_time(d, c, time, 25);
  if (d.chance(30)) c.tense = Tense::future;
  return c;
}

Clause happening(Draw& d) {
  Clause c;
  c.subject = noun_phrase(d.noun(event), {d.word({"the", "the", "our", "her"})});
  c.verb = &kTakePlace;
  if (d.chance(30)) c.place = at_a_place(d);
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
