// Phrases and clauses of the demo corpus: a small abstract syntax, rendered once as English and once as German.
// English decides do-support and tense; German decides case, agreement, and which end of the clause each verb part stands at.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "demo/lexicon.h"
#include "demo/numbers.h"

namespace starling::demo {

// Who the verb agrees with. German needs three forms: ich, er, and one for wir, sie (they) and Sie.
enum class Person : uint8_t { first, third, plural };

// A noun phrase, pronoun or name with all the forms that a clause may ask of it.
struct Phrase {
  std::string en_subject, en_object;
  std::array<std::string, 3> de;          // by Case
  std::array<std::string, 3> de_negated;  // with "kein"; empty when the phrase is definite
  std::string en_relative, de_relative;   // a relative clause, German already between commas
  Person person = Person::third;
  Gender gender = Gender::masculine;
  bool plural = false, pronoun = false, definite = true, countable_number = false;
};

// The form of a verb that agrees with the phrase.
inline const char* by_person(const Phrase& phrase, const char* first, const char* third, const char* plural) {
  return phrase.person == Person::first ? first : phrase.person == Person::third ? third : plural;
}

struct NounOptions {
  std::string_view determiner = "the";  // the a my his her our your their this these every bare, or "" with number
  const Adjective* adjective = nullptr;
  bool plural = false;
  int number = 0;  // two or more: "three new cars"
};

// A noun with its determiner and adjective, declined.
Phrase noun_phrase(const Noun& noun, const NounOptions& options);
// I you he she we they, or "it"/"them" for something of this gender.
Phrase pronoun(std::string_view english, Gender gender = Gender::neuter);
Phrase name(const Fixed& fixed);
// A substance: "bread", "Brot"; negated with "kein"/"keine".
Phrase substance(std::string_view en, std::string_view de, Gender gender);
// "a and b", plural.
Phrase both(const Phrase& a, const Phrase& b);
// "auf den Tisch": a preposition with its case, contracted where German contracts (zum, ins, am).
std::string prepositional(std::string_view preposition, Case c, const Phrase& phrase);

enum class Tense : uint8_t { present, progressive, past, future, modal };
enum class Order : uint8_t { verb_first, verb_second, verb_last };

// One clause before it is put into either language's order.
struct Clause {
  Phrase subject;
  const Verb* verb = nullptr;
  const Modal* modal = nullptr;  // with Tense::modal
  Tense tense = Tense::present;
  bool negated = false;
  std::optional<Phrase> dative, accusative;
  Pair complement;  // predicate: "very cold"
  Pair company;     // "with my brother", "by train": German puts it before the place
  Pair place;
  Pair time;
  bool time_first = false;  // statement only
  Pair frequency;           // "often"; present tense only
};

std::string english(const Clause& clause, bool question = false);
std::string german(const Clause& clause, Order order = Order::verb_second);
// "Sie"-imperative without the first capital: {"turn on the lamp", "schalten Sie die Lampe ein"}.
Pair imperative(const Clause& clause);

// The relative clauses "who ..." (the phrase is the clause's subject) and "that ..." (it is the object), stored in the phrase.
// The clause's own subject (or object) is left out.
Phrase with_subject_relative(Phrase phrase, const Clause& clause, bool human);
Phrase with_object_relative(Phrase phrase, const Clause& clause, Case object_case);

// Joins words, mends spaces before punctuation and doubled commas, and capitalises the first letter.
std::string finish(std::string_view text);

// Look up a word by its English form; InternalError when the table has none.
const Noun& find_noun(std::string_view english);
const Adjective& find_adjective(std::string_view english);
const Verb& find_verb(std::string_view english);
const Modal& find_modal(std::string_view english);

}  // namespace starling::demo
