// The kinds of words of the demo corpus (words.h): what the grammar in grammar.h inflects and puts in order.
// Every English entry has exactly one German counterpart (given its class), which is what makes the corpus a function from
// English to German: "you" is always "Sie", "teacher" is always "Lehrer".
#pragma once

#include <cstdint>

namespace starling::demo {

enum class Case : uint8_t { nominative, accusative, dative };
enum class Gender : uint8_t { masculine, feminine, neuter };

// What a noun can be: verbs and adjectives name the kinds they go with, so that nobody reads a potato.
enum Kind : uint32_t {
  kin = 1u << 0,
  person = 1u << 1,
  animal = 1u << 2,
  lying = 1u << 3,      // "put" is "legen"
  standing = 1u << 4,   // "put" is "stellen"
  surface = 1u << 5,    // things lie on it and under it
  container = 1u << 6,  // things lie in it
  device = 1u << 7,     // can be turned on
  clothing = 1u << 8,
  readable = 1u << 9,
  writable = 1u << 10,
  openable = 1u << 11,
  washable = 1u << 12,
  repairable = 1u << 13,
  buyable = 1u << 14,
  food = 1u << 15,
  portable = 1u << 16,
  event = 1u << 17,
  large = 1u << 18,
  only_one = 1u << 20,  // a mother, a father
  own = 1u << 19,       // people who are somebody's: "my neighbour", but not "my man"
};

struct Noun {
  const char *en, *en_plural, *de, *de_plural;
  Gender gender;
  uint32_t kinds;
  const char* de_oblique = nullptr;  // accusative and dative singular of weak nouns: Kunde, den Kunden
};

struct Adjective {
  const char *en, *de, *stem;  // stem: before an ending (teuer, teur-es)
  const char *en_comparative, *de_comparative;
  uint32_t kinds;
};

// German forms: ich, er, plural (= Sie = infinitive), separable prefix, participle.
struct Verb {
  const char *en, *en_s, *en_ing, *en_past, *en_particle;
  const char *ich, *er, *plural, *prefix, *participle;
  bool sein;             // the perfect is built with "sein"
  uint32_t objects;      // kinds of noun it takes
  bool stative = false;  // never progressive in English
};

struct Modal {
  const char *en, *en_s;  // "can", "can"; "have to", "has to"
  const char *ich, *er, *plural;
  const char* en_negative;  // "cannot"; "" = needs do; nullptr = is never negated
  bool needs_do;            // "do you have to"
};

// A place with the German prepositional phrases for being there and for going there.
struct Place {
  const char *en_at, *en_to, *de_at, *de_to;
};

// A plain pair of fixed phrases.
struct Fixed {
  const char *en, *de;
};

struct Drink {
  const char *en, *de;
  bool cup, glass, bottle;
};

}  // namespace starling::demo
