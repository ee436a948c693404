// Random phrases and clauses (times.cpp, phrases.cpp, clauses.cpp), and the templates of sentences that are made of them. Everything is
// drawn from one Draw, whose stream is keyed by (seed, sentence number), so a sentence is a pure function of both. The test checks over
// 200,000 sentences that English determines German.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/random.h"
#include "demo/grammar.h"
#include "demo/words.h"

namespace starling::demo {

class Draw {
 public:
  Draw(uint64_t seed, uint64_t index) : random_(seed, index) {}

  int range(int low, int high) { return low + static_cast<int>(random_.below(static_cast<uint64_t>(high - low) + 1)); }
  bool chance(int percent) { return range(1, 100) <= percent; }
  template <class Row, size_t n>
  const Row& of(const Row (&rows)[n]) {
    return rows[random_.below(n)];
  }
  std::string_view word(std::initializer_list<std::string_view> words) { return words.begin()[random_.below(words.size())]; }
  template <size_t n>
  Pair fixed(const Fixed (&rows)[n]) {
    const Fixed& row = of(rows);
    return {row.en, row.de};
  }
  const Noun& noun(uint32_t kinds) {
    return matching<Noun>(kNouns, [&](const Noun& n) { return (n.kinds & kinds) != 0; });
  }
  const Adjective& adjective(uint32_t kinds) {
    return matching<Adjective>(kAdjectives, [&](const Adjective& a) { return (a.kinds & kinds) != 0; });
  }
  const Adjective& comparable(uint32_t kinds) {
    return matching<Adjective>(kAdjectives, [&](const Adjective& a) { return (a.kinds & kinds) != 0 && a.en_comparative; });
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

Pair clock_time(Draw& d);  // "half past three", "3:45 pm"
Pair at_time(Draw& d);     // "at half past three"
Pair date(Draw& d);        // "the third of May", "3 May 1998"
Pair on_date(Draw& d);     // "on the third of May"
Pair weekday(Draw& d);     // "on Monday"
Pair with_clock(Draw& d, const Pair& day);
Pair future_time(Draw& d);
Pair past_time(Draw& d);
int any_number(Draw& d);  // 2..9999, small ones more often

// ---- Phrases ----

constexpr uint32_t kThings = lying | standing | device | clothing | large;

// Two-way prepositions: the last three also hold between buildings.
constexpr Fixed kPrepositions[] = {{"on", "auf"}, {"under", "unter"}, {"next to", "neben"}, {"behind", "hinter"}, {"in front of", "vor"}};

// The determiner with, three times in ten, a fitting adjective.
NounOptions some_options(Draw& d, const Noun& noun, std::string_view determiner);
Phrase a_person(Draw& d);  // definite, with a noun: "my brother", "these old students"
Phrase subject(Draw& d);   // any person: pronoun, name or noun
// A person as an object: never the subject's own pronoun ("I call me").
Phrase person_object(Draw& d, const Phrase& subject);
Phrase thing(Draw& d, uint32_t kinds);
Phrase definite_thing(Draw& d, uint32_t kinds);
Pair degree(Draw& d);  // "", "very " or "too "
// An adjective that the subject does not carry already: no "the red hat is red".
Pair predicate(Draw& d, uint32_t kinds, const Phrase& subject);

// ---- Clauses ----

// At the front of the clause in `fronted` of 100 cases.
void put_time(Draw& d, Clause& clause, const Pair& time, int fronted = 35);
bool can_be_negated(const Clause& clause);
// Tense, modal, negation and time. A past clause always names its time: "I put" and "I read" are otherwise present too.
void give_tense(Draw& d, Clause& clause);

Clause transitive(Draw& d);
Clause eating(Draw& d);
Clause calling(Draw& d);
Clause helping(Draw& d);
Clause giving(Draw& d);
Clause doing(Draw& d);
Clause going(Draw& d);
Clause staying(Draw& d);
Clause putting(Draw& d);
Clause lying_there(Draw& d);
Clause describing(Draw& d, bool people);
Clause weather(Draw& d);
Clause timetable(Draw& d);
Clause happening(Draw& d);
// Any clause that somebody may state.
Clause any_clause(Draw& d);

// ---- Sentence templates: each draws phrases and clauses and lets the grammar render both languages, as a pair before finish() ----

struct Template {
  std::string_view name;
  int weight;
  Pair (*make)(Draw&);
};

std::span<const Template> everyday_templates();   // everyday.cpp
std::span<const Template> statement_templates();  // statements.cpp: questions too
std::span<const Template> compound_templates();   // compound.cpp

inline Pair statement(const Clause& c) { return {english(c) + ".", german(c) + "."}; }

}  // namespace starling::demo
