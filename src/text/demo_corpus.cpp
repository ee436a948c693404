// The sentence templates: each draws phrases and clauses and lets the grammar render both languages; and the writer of the corpus.
// The test checks over 200,000 sentences that English determines German.
#include "text/demo_corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <unordered_set>

#include "base/error.h"
#include "base/system_reason.h"
#include "text/demo_clauses.h"

namespace starling {
namespace {

using namespace demo;

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
  Pair first = d.chance(60) ? a_drink(d) : a_dish(d);
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
  while (c.verb == &be()) c = askable(d);
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

// A clause whose object carries a relative clause keeps its end free: the time goes to the front or away.
void free_the_end(Clause& c) {
  if (c.time.en.empty()) return;
  c.time_first = true;
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
// One side of a split, written aside until it is whole.
class SideFile {
 public:
  explicit SideFile(const std::filesystem::path& path) : path_(path), aside_(path.string() + ".partial"), file_(aside_, std::ios::binary) {
    if (!file_) throw IoError(fmt::format("{}: cannot be written: {}", aside_.string(), system_reason(errno)));
  }
  ~SideFile() {
    std::error_code none;
    std::filesystem::remove(aside_, none);  // unless it has its name
  }
  void add(const std::string& line) {
    file_ << line << '\n';
    if (!file_) failed();
  }
  void close() {
    file_.close();
    if (!file_) failed();
  }
  void take_name() { std::filesystem::rename(aside_, path_); }

 private:
  [[noreturn]] void failed() const {
    throw IoError(fmt::format("{}: could not be written whole: {}", path_.string(), system_reason(errno)));
  }
  std::filesystem::path path_, aside_;
  std::ofstream file_;
};

class SplitFiles {
 public:
  SplitFiles(const std::filesystem::path& directory, const std::string& stem, int64_t wanted)
      : source_(directory / (stem + ".en")), target_(directory / (stem + ".de")), left_(wanted) {}
  bool full() const { return left_ == 0; }
  void add(const SentencePair& pair) {
    source_.add(pair.source), target_.add(pair.target);
    --left_;
  }
  void close() { source_.close(), target_.close(); }
  void take_names() { source_.take_name(), target_.take_name(); }

 private:
  SideFile source_, target_;
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
  for (SplitFiles& split : files) split.take_names();
}

}  // namespace starling
