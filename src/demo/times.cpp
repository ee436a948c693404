// Times, dates and numbers, and the tense of a clause with the time that goes with it.
#include <fmt/format.h>

#include "demo/clauses.h"

namespace starling::demo {

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
  const Pair month = d.fixed(kMonths);
  return {fmt::format("the {} of {}", english_ordinal(day), month.en),
          fmt::format("{}{} {}", after_am ? "" : "der ", german_ordinal(day, after_am ? "en" : "e"), month.de)};
}

}  // namespace

Pair date(Draw& d) {
  if (d.chance(60)) return day_and_month(d, false);
  const int day = d.range(1, 31), year = d.range(1950, 2030);
  const Pair month = d.fixed(kMonths);
  return {fmt::format("{} {} {}", day, month.en, year), fmt::format("der {}. {} {}", day, month.de, year)};
}

Pair on_date(Draw& d) {
  const Pair p = day_and_month(d, true);
  return {"on " + p.en, "am " + p.de};
}

Pair weekday(Draw& d) {
  const Pair day = d.fixed(kWeekdays);
  return {"on " + day.en, "am " + day.de};
}

Pair with_clock(Draw& d, const Pair& day) {
  const Pair t = at_time(d);
  return {day.en + " " + t.en, day.de + " " + t.de};
}

Pair future_time(Draw& d) {
  const int which = d.range(1, 100);
  if (which <= 25) return d.fixed(kFutureDays);
  if (which <= 35) return with_clock(d, d.fixed(kFutureDays));
  if (which <= 55) return d.fixed(kFuture);
  if (which <= 70) return weekday(d);
  if (which <= 80) return with_clock(d, weekday(d));
  if (which <= 92) return at_time(d);
  return on_date(d);
}

Pair past_time(Draw& d) {
  const int which = d.range(1, 100);
  if (which <= 60) return d.fixed(kPast);
  if (which <= 80) {
    const Pair day = d.fixed(kWeekdays);
    return {"last " + day.en, "letzten " + day.de};
  }
  static constexpr Fixed kUnits[] = {{"days", "Tagen"}, {"weeks", "Wochen"}, {"months", "Monaten"}, {"years", "Jahren"}};
  const Fixed& unit = d.of(kUnits);
  const Pair n = number_words(d.range(2, 10));
  return {fmt::format("{} {} ago", n.en, unit.en), fmt::format("vor {} {}", n.de, unit.de)};
}

namespace {

Pair habitual_time(Draw& d) {
  if (d.chance(70)) return d.fixed(kHabitual);
  if (d.chance(50)) return at_time(d);
  const Pair day = d.fixed(kWeekdays);
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

void put_time(Draw& d, Clause& c, const Pair& time, int fronted) {
  c.time = time;
  c.time_first = d.chance(fronted);
}

// A negated clause must have a place for "nicht" or "kein": not with a number, and not with an indefinite dative.
bool can_be_negated(const Clause& c) {
  if (c.accusative && c.accusative->countable_number) return false;
  return (!c.dative || c.dative->definite) && c.subject.definite;
}

namespace {

void present_tense(Draw& d, Clause& c) {
  const int which = d.range(1, 100);
  if (which <= 30 && c.verb != &kBe) {
    c.frequency = d.fixed(kFrequencies);
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
    if (d.chance(60)) put_time(d, c, d.chance(50) ? d.fixed(kPresent) : future_time(d));
  } else if (which <= 63) {
    c.tense = Tense::past;
    put_time(d, c, past_time(d));
  } else if (which <= 78) {
    c.tense = Tense::future;
    if (d.chance(65)) put_time(d, c, future_time(d));
  } else {
    c.tense = Tense::modal;
    c.modal = c.verb->stative ? &find_modal("can") : &d.of(kModals);  // nobody wants to need
    if (d.chance(55)) put_time(d, c, future_time(d));
  }
  const bool modal_refuses = c.modal && !c.modal->en_negative;
  c.negated = !modal_refuses && can_be_negated(c) && d.chance(18);
}

}  // namespace starling::demo
