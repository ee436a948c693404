// Sentences of fixed forms, about times, dates, prices, numbers, directions, the weather and orders in a cafe.
#include <fmt/format.h>

#include "demo/clauses.h"

namespace starling::demo {
namespace {

Pair clock_template(Draw& d) {
  const Pair t = clock_time(d);
  if (d.chance(60)) return {"it is " + t.en + ".", "es ist " + t.de + "."};
  if (d.chance(50)) return {fmt::format("it is already {}.", t.en), fmt::format("es ist schon {}.", t.de)};
  return {fmt::format("is it already {}?", t.en), fmt::format("ist es schon {}?", t.de)};
}

Pair timetable_template(Draw& d) { return statement(timetable(d)); }
Pair event_template(Draw& d) { return statement(happening(d)); }

Pair date_template(Draw& d) {
  const Pair day = d.fixed(kWeekdays);
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
  const Pair city = d.fixed(kCities);
  const int n = any_number(d);
  if (which == 2) {
    const Pair digits = digital_number(d.range(2, 9999));
    return {fmt::format("the hotel in {} has {} rooms.", city.en, digits.en),
            fmt::format("das Hotel in {} hat {} Zimmer.", city.de, digits.de)};
  }
  const Phrase who = subject(d);
  return {fmt::format("{} {} {} euros.", who.en_subject, by_person(who, "have", "has", "have"), number_words(n).en),
          fmt::format("{} {} {} Euro.", who.de[0], by_person(who, "habe", "hat", "haben"), german_number_before_noun(n))};
}

Phrase landmark(Draw& d) { return noun_phrase(d.of(kLandmarks), {"the"}); }

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
      const Fixed& prep = kPrepositions[d.range(2, 4)];
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
    const Pair city = d.fixed(kCities);
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
  const Drink& drink = d.of(kDrinks);
  const char* measure = drink.cup && (!drink.glass || d.chance(50)) ? "cup" : !drink.bottle || d.chance(60) ? "glass" : "bottle";
  NounOptions o{"a"};
  if (d.chance(40)) o.number = d.range(2, 6);
  const Phrase p = noun_phrase(find_noun(measure), o);
  Pair order{fmt::format("{} of {}", p.en_object, drink.en), fmt::format("{} {}", p.de[1], drink.de)};
  if (!drink.cup || !d.chance(40)) return order;
  static constexpr Fixed kExtras[] = {
      {"with sugar", "mit Zucker"}, {"with milk", "mit Milch"}, {"without sugar", "ohne Zucker"}, {"with honey", "mit Honig"}};
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
      return {fmt::format("{} {} {}.", who.en_subject, by_person(who, "order", "orders", "order"), x.en),
              fmt::format("{} {} {}.", who.de[0], by_person(who, "bestelle", "bestellt", "bestellen"), x.de)};
    }
    default: {
      const Pair n = number_words(d.range(2, 12)), t = at_time(d);
      return {fmt::format("do you have a table for {} people {}?", n.en, t.en),
              fmt::format("haben Sie {} einen Tisch für {} Personen?", t.de, n.de)};
    }
  }
}

constexpr Template kEveryday[] = {
    {"clock", 4, clock_template},         {"timetable", 3, timetable_template}, {"event", 2, event_template},
    {"date", 3, date_template},           {"price", 5, price_template},         {"number", 3, number_template},
    {"direction", 4, direction_template}, {"weather", 5, weather_template},     {"cafe", 6, cafe_template},
};

}  // namespace

std::span<const Template> everyday_templates() { return kEveryday; }

}  // namespace starling::demo
