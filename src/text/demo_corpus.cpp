// The sentence templates: each draws words from the lexicon, builds clauses and lets the grammar render both languages.
// Rules that keep English unambiguous stand where they are needed; the test checks the outcome over 200,000 sentences.
#include "text/demo_corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <functional>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "text/demo_grammar.h"

namespace starling {
namespace {

using namespace demo;

// ---- Drawing ----

class Draw {
 public:
  Draw(uint64_t seed, uint64_t index) : random_(seed, index) {}

  int range(int low, int high) { return low + static_cast<int>(random_.below(static_cast<uint64_t>(high - low + 1))); }
  bool chance(int percent) { return range(1, 100) <= percent; }
  template <class Row>
  const Row& of(std::span<const Row> rows) {
    return rows[random_.below(rows.size())];
  }
  std::string_view word(std::initializer_list<std::string_view> words) { return words.begin()[random_.below(words.size())]; }
  Pair fixed(std::span<const Fixed> rows) {
    const Fixed& row = of(rows);
    return {row.en, row.de};
  }
  const Noun& noun(uint32_t kinds) {
    return matching(nouns(), [&](const Noun& n) { return (n.kinds & kinds) != 0; });
  }
  const Adjective& adjective(uint32_t kinds) {
    return matching(adjectives(), [&](const Adjective& a) { return (a.kinds & kinds) != 0; });
  }
  const Adjective& comparable(uint32_t kinds) {
    return matching(adjectives(), [&](const Adjective& a) { return (a.kinds & kinds) != 0 && a.en_comparative; });
  }

 private:
  template <class Row, class Test>
  const Row& matching(std::span<const Row> rows, Test test) {
    const auto count = static_cast<uint64_t>(std::count_if(rows.begin(), rows.end(), test));
    CHECK(count > 0, "no word of the kind asked for");
    uint64_t at = random_.below(count);
    for (const Row& row : rows) {
      if (test(row) && at-- == 0) return row;
    }
    return rows[0];
  }

  Random random_;
};

// ---- Times, dates and numbers ----

Pair clock_time(Draw& d) {
  if (d.chance(60)) return spoken_time(d.range(1, 12), 5 * d.range(0, 11));
  return digital_time(d.range(0, 23), 5 * d.range(0, 11));
}

Pair at_time(Draw& d) {
  const Pair t = clock_time(d);
  return {"at " + t.en, "um " + t.de};
}

// "the third of May", "der dritte Mai"; with "am" in front the ending is "en" and the article is in the preposition.
Pair day_and_month(Draw& d, bool after_am) {
  const int day = d.range(1, 31);
  const Pair month = d.fixed(months());
  return {fmt::format("the {} of {}", english_ordinal(day), month.en),
          fmt::format("{}{} {}", after_am ? "" : "der ", german_ordinal(day, after_am ? "en" : "e"), month.de)};
}

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

// Small numbers are common, as in life.
int any_number(Draw& d) {
  const int which = d.range(1, 100);
  if (which <= 20) return d.range(2, 12);
  if (which <= 80) return d.range(13, 99);
  return which <= 92 ? d.range(100, 999) : d.range(1000, 9999);
}

// ---- Phrases ----

std::string_view possessive(Draw& d) { return d.word({"my", "my", "his", "her", "our", "your", "their"}); }

NounOptions some_options(Draw& d, const Noun& noun, std::string_view determiner) {
  NounOptions o{determiner};
  if (d.chance(30)) o.adjective = &d.adjective(noun.kinds);
  return o;
}

Phrase a_person(Draw& d) {
  if (d.chance(50)) {
    NounOptions o{possessive(d)};
    o.plural = d.chance(10);
    return noun_phrase(d.noun(kin), o);
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

constexpr uint32_t kThings = lying | standing | device | clothing | large;

// ---- Tense ----

void put_time(Draw& d, Clause& c, const Pair& time, int fronted = 35) {
  c.time = time;
  c.time_first = d.chance(fronted);
}

// A negated clause must have a place for "nicht" or "kein": not with a number, and not with an indefinite dative.
bool can_be_negated(const Clause& c) {
  if (c.accusative && c.accusative->countable_number) return false;
  return (!c.dative || c.dative->definite) && c.subject.definite;
}

void present_tense(Draw& d, Clause& c) {
  const int which = d.range(1, 100);
  if (which <= 30 && c.verb != &be()) {
    c.frequency = d.fixed(frequencies());
    return;
  }
  if (which <= 65) put_time(d, c, habitual_time(d));
  c.negated = can_be_negated(c) && d.chance(20);
}

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
    c.modal = &d.of(modals());
    if (d.chance(55)) put_time(d, c, future_time(d));
  }
  const bool modal_refuses = c.modal && !c.modal->en_negative;
  c.negated = !modal_refuses && can_be_negated(c) && d.chance(18);
}

// A clause whose object carries a relative clause keeps its end free: the time goes to the front or away.
void free_the_end(Clause& c) {
  if (c.time.en.empty()) return;
  c.time_first = true;
}

// ---- Clauses ----

Pair company(Draw& d, const Phrase& subject) {
  const Phrase p = person_object(d, subject);
  return {"with " + p.en_object, prepositional("mit", Case::dative, p)};
}

Clause transitive_core(Draw& d) {
  Clause c;
  c.subject = subject(d);
  if (d.chance(12)) {
    c.verb = &have();
    c.accusative = thing(d, kThings | animal);
    return c;
  }
  c.verb = &d.of(transitive_verbs());
  c.accusative = thing(d, c.verb->objects);
  return c;
}

Clause transitive(Draw& d) {
  Clause c = transitive_core(d);
  if (c.verb == &have()) {
    c.negated = can_be_negated(c) && d.chance(35);
    return c;
  }
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

struct Preposition {
  const char *en, *de;
};
constexpr std::array<Preposition, 5> kPrepositions{
    {{"on", "auf"}, {"under", "unter"}, {"next to", "neben"}, {"behind", "hinter"}, {"in front of", "vor"}}};

// "on the old table", "auf dem alten Tisch" (where) or "auf den alten Tisch" (where to).
Pair spot(Draw& d, Case c) {
  const bool inside = d.chance(20);
  const Noun& noun = d.noun(inside ? container : surface);
  const Phrase p = noun_phrase(noun, some_options(d, noun, d.word({"the", "the", "my", "this"})));
  const Preposition prep = inside ? Preposition{"in", "in"} : kPrepositions[static_cast<size_t>(d.range(0, 4))];
  return {fmt::format("{} {}", prep.en, p.en_object), prepositional(prep.de, c, p)};
}

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

// ---- Templates: each returns the pair before finish() ----

Pair statement(const Clause& c) { return {english(c) + ".", german(c) + "."}; }

Pair clock_template(Draw& d) {
  const Pair t = clock_time(d);
  if (d.chance(60)) return {"it is " + t.en + ".", "es ist " + t.de + "."};
  if (d.chance(50)) return {fmt::format("it is already {}.", t.en), fmt::format("es ist schon {}.", t.de)};
  return {fmt::format("is it already {}?", t.en), fmt::format("ist es schon {}?", t.de)};
}

Pair timetable_template(Draw& d) { return statement(timetable(d)); }
Pair event_template(Draw& d) { return statement(happening(d)); }

Pair date_template(Draw& d) {
  const Pair day = d.fixed(weekdays());
  const int which = d.range(1, 3);
  if (which == 1) {
    const Pair p = date(d);
    return {fmt::format("today is {}, {}.", day.en, p.en), fmt::format("heute ist {}, {}.", day.de, p.de)};
  }
  if (which == 2) {
    const Pair p = date(d);
    return {fmt::format("tomorrow is {}.", p.en), fmt::format("morgen ist {}.", p.de)};
  }
  const Phrase who = a_person(d);
  const Pair p = on_date(d);
  return {fmt::format("the birthday of {} is {}.", who.en_object, p.en),
          fmt::format("der Geburtstag {} ist {}.", prepositional("von", Case::dative, who), p.de)};
}

Pair money(Draw& d) {
  if (d.chance(40)) return digital_price(d.range(1, 199), d.range(0, 99));
  const int n = any_number(d);
  return {number_words(n).en + " euros", german_number_before_noun(n) + " Euro"};
}

Pair price_template(Draw& d) {
  const Pair m = money(d);
  const int which = d.range(1, 100);
  if (which <= 15) return {fmt::format("that is {}.", m.en), fmt::format("das macht {}.", m.de)};
  const Phrase p = definite_thing(d, buyable | food);
  if (which <= 30) {
    return {fmt::format("how much {} {} cost?", p.plural ? "do" : "does", p.en_subject),
            fmt::format("wie viel {} {}?", p.plural ? "kosten" : "kostet", p.de[0])};
  }
  return {fmt::format("{} {} {}.", p.en_subject, p.plural ? "cost" : "costs", m.en),
          fmt::format("{} {} {}.", p.de[0], p.plural ? "kosten" : "kostet", m.de)};
}

Pair number_template(Draw& d) {
  const int which = d.range(1, 3);
  if (which == 1) {
    const int a = d.range(2, 60), b = d.range(2, 60);
    return {fmt::format("{} plus {} is {}.", number_words(a).en, number_words(b).en, number_words(a + b).en),
            fmt::format("{} plus {} ist {}.", number_words(a).de, number_words(b).de, number_words(a + b).de)};
  }
  const Pair city = d.fixed(cities());
  const int n = any_number(d);
  if (which == 2) {
    const Pair digits = digital_number(d.range(2, 9999));
    return {fmt::format("the hotel in {} has {} rooms.", city.en, digits.en),
            fmt::format("das Hotel in {} hat {} Zimmer.", city.de, digits.de)};
  }
  const Phrase who = subject(d);
  const bool third = who.person == Person::third;
  return {fmt::format("{} {} {} euros.", who.en_subject, third ? "has" : "have", number_words(n).en),
          fmt::format("{} {} {} Euro.", who.de[0],
                      third                         ? "hat"
                      : who.person == Person::first ? "habe"
                                                    : "haben",
                      german_number_before_noun(n))};
}

Phrase landmark(Draw& d) { return noun_phrase(d.of(landmarks()), {"the"}); }

Pair direction_template(Draw& d) {
  const Phrase mark = landmark(d);
  Phrase other = landmark(d);
  while (other.en_subject == mark.en_subject) other = landmark(d);
  const bool left = d.chance(50);
  const std::string_view en_side = left ? "left" : "right", de_side = left ? "links" : "rechts";
  const std::string at = prepositional("an", Case::dative, mark), to = prepositional("zu", Case::dative, mark);
  switch (d.range(1, 8)) {
    case 1:
      return {fmt::format("turn {} at {}.", en_side, mark.en_object), fmt::format("biegen Sie {} {} ab.", at, de_side)};
    case 2:
      return {fmt::format("go straight ahead to {}.", mark.en_object), fmt::format("gehen Sie geradeaus bis {}.", to)};
    case 3:
      return {fmt::format("how do I get to {}?", mark.en_object), fmt::format("wie komme ich {}?", to)};
    case 4: {
      const int n = d.range(1, 6);
      return {fmt::format("take the {} street on the {}.", english_ordinal(n), en_side),
              fmt::format("nehmen Sie die {} Straße {}.", german_ordinal(n, "e"), de_side)};
    }
    case 5:
      return {
          fmt::format("go straight ahead to {} and then turn {} at {}.", mark.en_object, en_side, other.en_object),
          fmt::format("gehen Sie geradeaus bis {} und biegen Sie dann {} {} ab.", to, prepositional("an", Case::dative, other), de_side)};
    case 6: {
      const Preposition prep = kPrepositions[static_cast<size_t>(d.range(2, 4))];
      return {fmt::format("{} is {} {}.", mark.en_subject, prep.en, other.en_object),
              fmt::format("{} ist {}.", mark.de[0], prepositional(prep.de, Case::dative, other))};
    }
    case 7:
      return {fmt::format("is {} far from {}?", mark.en_subject, other.en_object),
              fmt::format("ist {} weit {} entfernt?", mark.de[0], prepositional("von", Case::dative, other))};
    default: {
      const int metres = 50 * d.range(1, 18);
      return {fmt::format("after {} metres turn {}.", number_words(metres).en, en_side),
              fmt::format("biegen Sie nach {} Metern {} ab.", number_words(metres).de, de_side)};
    }
  }
}

Pair weather_template(Draw& d) {
  const int which = d.range(1, 100);
  if (which <= 75) return statement(weather(d));
  if (which <= 88) {
    const Pair city = d.fixed(cities());
    const Pair n = number_words(d.range(2, 38));
    return {fmt::format("the temperature in {} is {} degrees.", city.en, n.en),
            fmt::format("die Temperatur in {} beträgt {} Grad.", city.de, n.de)};
  }
  Clause c = weather(d);
  c.time_first = c.negated = false;
  return {english(c, true) + "?", german(c, Order::verb_first) + "?"};
}

// "a glass of water", "two bottles of wine", "ein Glas Wasser", "zwei Flaschen Wein".
Pair a_drink(Draw& d) {
  const Drink& drink = d.of(drinks());
  const char* measure = drink.cup && (!drink.glass || d.chance(50)) ? "cup" : !drink.bottle || d.chance(60) ? "glass" : "bottle";
  NounOptions o{"a"};
  if (d.chance(40)) o.number = d.range(2, 6);
  const Phrase p = noun_phrase(find_noun(measure), o);
  Pair order{fmt::format("{} of {}", p.en_object, drink.en), fmt::format("{} {}", p.de[1], drink.de)};
  if (!drink.cup || !d.chance(40)) return order;
  static constexpr std::array<Fixed, 4> kExtras{
      {{"with sugar", "mit Zucker"}, {"with milk", "mit Milch"}, {"without sugar", "ohne Zucker"}, {"with honey", "mit Honig"}}};
  const Pair extra = d.fixed(kExtras);
  return {order.en + " " + extra.en, order.de + " " + extra.de};
}

Pair a_dish(Draw& d) {
  const Noun& noun = d.noun(food);
  NounOptions o = some_options(d, noun, "a");
  if (d.chance(35)) o.number = d.range(2, 6);
  const Phrase p = noun_phrase(noun, o);
  return {p.en_object, p.de[1]};
}

Pair order_items(Draw& d) {
  const Pair first = d.chance(60) ? a_drink(d) : a_dish(d);
  if (d.chance(50)) return first;
  const Pair second = d.chance(50) ? a_drink(d) : a_dish(d);
  return {first.en + " and " + second.en, first.de + " und " + second.de};
}

Pair cafe_template(Draw& d) {
  const Pair x = order_items(d);
  switch (d.range(1, 8)) {
    case 1:
    case 2:
      return {fmt::format("I would like {}, please.", x.en), fmt::format("ich möchte {}, bitte.", x.de)};
    case 3:
      return {fmt::format("we will take {}.", x.en), fmt::format("wir nehmen {}.", x.de)};
    case 4:
      return {fmt::format("can I have {}, please?", x.en), fmt::format("kann ich bitte {} haben?", x.de)};
    case 5:
      return {fmt::format("would you like {}?", x.en), fmt::format("möchten Sie {}?", x.de)};
    case 6:
      return {fmt::format("please bring us {}.", x.en), fmt::format("bitte bringen Sie uns {}.", x.de)};
    case 7: {
      const Phrase who = subject(d);
      const bool third = who.person == Person::third;
      return {fmt::format("{} {} {}.", who.en_subject, third ? "orders" : "order", x.en),
              fmt::format("{} {} {}.", who.de[0],
                          third                         ? "bestellt"
                          : who.person == Person::first ? "bestelle"
                                                        : "bestellen",
                          x.de)};
    }
    default: {
      const Pair n = number_words(d.range(2, 12)), t = at_time(d);
      return {fmt::format("do you have a table for {} people {}?", n.en, t.en),
              fmt::format("haben Sie {} einen Tisch für {} Personen?", t.de, n.de)};
    }
  }
}

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
  const bool third = one.person == Person::third, first = one.person == Person::first;
  return {fmt::format("{} {} {} than {}.", one.en_subject,
                      first   ? "am"
                      : third ? "is"
                              : "are",
                      a.en_comparative, two.en_object),
          fmt::format("{} {} {} als {}.", one.de[0],
                      first   ? "bin"
                      : third ? "ist"
                              : "sind",
                      a.de_comparative, two.de[0])};
}

Pair belonging_template(Draw& d) {
  Clause c;
  c.subject = definite_thing(d, kThings);
  c.verb = &belong_to();
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
  first.verb = d.chance(50) ? &have() : &find_verb("look for");
  const bool many = d.chance(25);
  NounOptions o = some_options(d, noun, many ? "my" : d.word({"a", "the", "my"}));
  o.plural = many;
  first.accusative = noun_phrase(noun, o);
  second.accusative = many ? pronoun("them") : pronoun("it", noun.gender);
  second.verb = first.verb == &have() ? &find_verb("need") : &find_verb("find");
  second.negated = true;
  if (second.verb == &find_verb("find")) {
    first.tense = Tense::progressive;
    second.tense = Tense::modal;
    second.modal = &find_modal("can");
  }
  return {fmt::format("{}, but {}.", english(first), english(second)), fmt::format("{}, aber {}.", german(first), german(second))};
}

bool wishes(const Modal& modal) { return &modal == &find_modal("want to") || &modal == &find_modal("would like to"); }

// Questions carry no negation and no fronted time, and nobody asks about his own doings.
Clause askable(Draw& d) {
  Clause c = any_clause(d);
  while (c.subject.en_subject == "I" && (c.tense != Tense::modal || wishes(*c.modal))) c = any_clause(d);
  c.negated = c.time_first = false;
  c.frequency = {};
  return c;
}

Pair question_template(Draw& d) {
  const Clause c = askable(d);
  return {english(c, true) + "?", german(c, Order::verb_first) + "?"};
}

// Asks for the part that the clause then lacks.
std::pair<Pair, Clause> wh_question(Draw& d) {
  switch (d.range(1, 4)) {
    case 1: {
      Clause c = d.chance(40) ? timetable(d) : askable(d);
      c.time = {};
      c.time_first = false;
      if (c.tense == Tense::past || c.verb == &be()) c.tense = Tense::present;
      if (c.verb == &be()) c = timetable(d), c.time = {}, c.time_first = false;
      return {{"when", "wann"}, c};
    }
    case 2: {
      Clause c = staying(d);
      c.place = {};
      c.negated = c.time_first = false;
      return {{"where", "wo"}, c};
    }
    case 3: {
      Clause c = transitive_core(d);
      if (c.verb != &have()) give_tense(d, c);
      c.accusative.reset();
      c.negated = c.time_first = false;
      c.frequency = {};
      return {{"what", "was"}, c};
    }
    default:
      return {{"why", "warum"}, askable(d)};
  }
}

Pair wh_template(Draw& d) {
  auto [word, c] = wh_question(d);
  c.frequency = {};
  return {fmt::format("{} {}?", word.en, english(c, true)), fmt::format("{} {}?", word.de, german(c, Order::verb_first))};
}

Pair indirect_template(Draw& d) {
  auto [word, c] = wh_question(d);
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
  while (c.verb == &lie() || c.verb == &stand() || c.subject.en_subject == "it") c = any_clause(d);
  c.subject = Phrase{"who", "", {"wer", "", ""}};
  c.subject.person = Person::third;
  c.negated = c.time_first = false;
  return {english(c) + "?", german(c) + "?"};
}

Pair imperative_template(Draw& d) {
  Clause c = any_clause(d);
  while (c.verb == &be() || c.verb->stative || c.verb == &lie() || c.verb == &stand() || c.subject.en_subject == "it" ||
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

// ---- Longer sentences ----

struct Conjunction {
  const char *en, *de;
};
constexpr std::array<Conjunction, 4> kSubordinators{{{"because", "weil"}, {"although", "obwohl"}, {"if", "wenn"}, {"when", "wenn"}}};

Clause plain(Draw& d) {
  Clause c = any_clause(d);
  c.time_first = false;
  return c;
}

Clause condition(Draw& d, const Conjunction& word) {
  Clause c = plain(d);
  // "wenn" is not for single past events, and an English "if" wants no "will".
  const bool wenn = std::string_view(word.de) == "wenn";
  while (wenn && (c.tense == Tense::past || c.tense == Tense::future)) c = plain(d);
  return c;
}

Pair adverbial_template(Draw& d) {
  const Conjunction word = kSubordinators[static_cast<size_t>(d.range(0, 3))];
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
  matrix.verb = &d.of(saying_verbs());
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
  matrix.verb = &d.of(saying_verbs());
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
  matrix.verb = asks ? &find_verb("ask") : &know();
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
    c.verb = noun.kinds & lying ? &lie() : &stand();
    return with_subject_relative(p, c, false);
  }
  Clause c;
  c.subject = subject(d);
  do {
    c.verb = d.chance(30) ? &have() : &d.of(transitive_verbs());
  } while ((c.verb != &have() && !(c.verb->objects & noun.kinds)) || c.verb == verb);
  if (c.verb != &have()) give_tense(d, c);
  c.negated = false;
  return with_object_relative(p, c, Case::accusative);
}

Pair relative_subject_template(Draw& d) {
  Clause c;
  if (d.chance(60)) {
    c = any_clause(d);
    while (c.subject.en_subject == "it" || c.verb == &lie() || c.verb == &stand() || c.verb == &be()) c = any_clause(d);
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

Pair relative_object_template(Draw& d) {
  Clause c = d.chance(50) ? transitive(d) : calling(d);
  while (c.verb == &have()) c = transitive(d);
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

// ---- The table ----

struct Template {
  std::string_view name;
  int weight;
  Pair (*make)(Draw&);
};
constexpr Template kTemplates[] = {
    {"clock", 4, clock_template},
    {"timetable", 3, timetable_template},
    {"event", 2, event_template},
    {"date", 3, date_template},
    {"price", 5, price_template},
    {"number", 3, number_template},
    {"direction", 4, direction_template},
    {"weather", 5, weather_template},
    {"cafe", 6, cafe_template},
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
    {"adverbial-clause", 6, adverbial_template},
    {"that", 4, that_template},
    {"whether", 3, whether_template},
    {"relative-subject", 4, relative_subject_template},
    {"relative-object", 3, relative_object_template},
    {"coordination", 4, coordination_template},
};
constexpr size_t kTemplateCount = std::size(kTemplates);

constexpr int total_weight() {
  int sum = 0;
  for (const Template& t : kTemplates) sum += t.weight;
  return sum;
}

const Template& choose_template(Draw& d) {
  int at = d.range(0, total_weight() - 1);
  for (const Template& t : kTemplates) {
    if (at < t.weight) return t;
    at -= t.weight;
  }
  return kTemplates[0];
}

constexpr int64_t kShortest = 3, kLongest = 25;  // English words

int64_t word_count(std::string_view text) { return 1 + std::count(text.begin(), text.end(), ' '); }

}  // namespace

SentencePair demo_sentence(uint64_t seed, uint64_t index) {
  Draw d(seed, index);
  const Template& t = choose_template(d);
  while (true) {  // a sentence too long or too short is drawn again from the same stream
    const Pair p = t.make(d);
    SentencePair pair{finish(p.en), finish(p.de)};
    const int64_t words = word_count(pair.source);
    if (words >= kShortest && words <= kLongest) return pair;
  }
}

std::string_view demo_template(uint64_t seed, uint64_t index) {
  Draw d(seed, index);
  return choose_template(d).name;
}

std::span<const std::string_view> demo_template_names() {
  static constexpr auto kNames = [] {
    std::array<std::string_view, kTemplateCount> names{};
    for (size_t i = 0; i < kTemplateCount; ++i) names[i] = kTemplates[i].name;
    return names;
  }();
  return kNames;
}

DemoSplit demo_split(std::string_view source) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : source) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  const uint64_t bucket = (hash ^ (hash >> 32)) % 16;
  return bucket == 0 ? DemoSplit::valid : bucket == 1 ? DemoSplit::test : DemoSplit::train;
}

namespace {

// One split's two files.
class SplitFiles {
 public:
  SplitFiles(const std::filesystem::path& directory, const std::string& stem, int64_t wanted) : left_(wanted) {
    open(source_, directory / (stem + ".en"));
    open(target_, directory / (stem + ".de"));
  }
  bool full() const { return left_ == 0; }
  void add(const SentencePair& pair) {
    source_ << pair.source << '\n';
    target_ << pair.target << '\n';
    --left_;
  }
  void close() {
    source_.close();
    target_.close();
    if (!source_ || !target_) throw IoError("the demo corpus could not be written whole; is the disk full?");
  }

 private:
  static void open(std::ofstream& file, const std::filesystem::path& path) {
    file.open(path, std::ios::binary);
    if (!file) throw IoError(fmt::format("{}: cannot be written: {}", path.string(), std::strerror(errno)));
  }

  std::ofstream source_, target_;
  int64_t left_;
};

}  // namespace

void write_demo_corpus(const std::filesystem::path& directory, uint64_t seed, int64_t train_count, int64_t valid_count,
                       int64_t test_count) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw IoError(fmt::format("{}: cannot be made: {}", directory.string(), error.message()));
  std::array<SplitFiles, 3> files{SplitFiles(directory, "train", train_count), SplitFiles(directory, "valid", valid_count),
                                  SplitFiles(directory, "test", test_count)};
  std::unordered_set<std::string> seen;
  for (uint64_t index = 0; !(files[0].full() && files[1].full() && files[2].full()); ++index) {
    const SentencePair pair = demo_sentence(seed, index);
    SplitFiles& split = files[static_cast<size_t>(demo_split(pair.source))];
    if (!split.full() && seen.insert(pair.source).second) split.add(pair);
  }
  for (SplitFiles& split : files) split.close();
}

}  // namespace starling
