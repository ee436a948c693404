// How clauses are drawn: who does what to whom, when and where, with the rules that keep English unambiguous and German natural.
#include "demo/clauses.h"

#include <fmt/format.h>

namespace starling::demo {

namespace {

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
