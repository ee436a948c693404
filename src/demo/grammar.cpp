// Declension, conjugation and word order. The German middle field always has one fixed order, so that a sentence has one translation:
// pronouns, definite objects, time, frequency, indefinite objects, "nicht", company, place, predicate.
#include "demo/grammar.h"

#include <fmt/format.h>

#include <initializer_list>
#include <span>

#include "base/error.h"
#include "demo/words.h"

namespace starling::demo {
namespace {

enum class Pattern : uint8_t { der, dieser, ein, bare };

struct Determiner {
  std::string_view en, en_plural, de;  // de: what the endings are put on
  Pattern pattern;
  bool definite;
};
constexpr Determiner kDeterminers[] = {
    {"the", "the", "", Pattern::der, true},           {"a", "", "ein", Pattern::ein, false},
    {"my", "my", "mein", Pattern::ein, true},         {"his", "his", "sein", Pattern::ein, true},
    {"her", "her", "ihr", Pattern::ein, true},        {"our", "our", "unser", Pattern::ein, true},
    {"your", "your", "Ihr", Pattern::ein, true},      {"their", "their", "ihr", Pattern::ein, true},
    {"this", "these", "dies", Pattern::dieser, true}, {"every", "", "jed", Pattern::dieser, true},
    {"bare", "", "", Pattern::bare, false},
};

// Columns: masculine, feminine, neuter, plural. Rows: nominative, accusative, dative.
constexpr const char* kDer[3][4] = {{"der", "die", "das", "die"}, {"den", "die", "das", "die"}, {"dem", "der", "dem", "den"}};
constexpr const char* kRelative[3][4] = {{"der", "die", "das", "die"}, {"den", "die", "das", "die"}, {"dem", "der", "dem", "denen"}};
constexpr const char* kDieser[3][4] = {{"er", "e", "es", "e"}, {"en", "e", "es", "e"}, {"em", "er", "em", "en"}};
constexpr const char* kEin[3][4] = {{"", "e", "", "e"}, {"en", "e", "", "e"}, {"em", "er", "em", "en"}};
constexpr const char* kWeak[3][4] = {{"e", "e", "e", "en"}, {"en", "e", "e", "en"}, {"en", "en", "en", "en"}};
constexpr const char* kMixed[3][4] = {{"er", "e", "es", "en"}, {"en", "e", "es", "en"}, {"en", "en", "en", "en"}};
constexpr const char* kStrong[3][4] = {{"er", "e", "es", "e"}, {"en", "e", "es", "e"}, {"em", "er", "em", "en"}};

int column(Gender gender, bool plural) { return plural ? 3 : static_cast<int>(gender); }

const Determiner& find_determiner(std::string_view english) {
  for (const Determiner& d : kDeterminers) {
    if (d.en == english || d.en_plural == english) return d;
  }
  CHECK(false, "no determiner '{}'", english);
  __builtin_unreachable();
}

// Words separated by single spaces; empty ones are left out.
std::string join(std::initializer_list<std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) {
    if (word.empty()) continue;
    if (!text.empty()) text += ' ';
    text += word;
  }
  return text;
}

std::string german_noun(const Noun& noun, int c, bool plural) {
  if (!plural) return c > 0 && noun.de_oblique ? noun.de_oblique : noun.de;
  const std::string text = noun.de_plural;
  return c == 2 && text.back() != 'n' && text.back() != 's' ? text + "n" : text;
}

std::string german_article(const Determiner& d, int c, int col) {
  switch (d.pattern) {
    case Pattern::der:
      return kDer[c][col];
    case Pattern::dieser:
      return std::string(d.de) + kDieser[c][col];
    case Pattern::ein:
      return std::string(d.de) + kEin[c][col];
    case Pattern::bare:
      return "";
  }
  return "";
}

std::string german_adjective(const Adjective* adjective, Pattern pattern, int c, int col) {
  if (!adjective) return "";
  const char* ending = pattern == Pattern::bare ? kStrong[c][col] : pattern == Pattern::ein ? kMixed[c][col] : kWeak[c][col];
  return std::string(adjective->stem) + ending;
}

bool begins_with_vowel(std::string_view word) { return std::string_view("aeiou").find(word.front()) != std::string_view::npos; }

std::string english_noun_phrase(const Noun& noun, const NounOptions& o, const Determiner& d, bool plural) {
  const std::string_view word = plural ? noun.en_plural : noun.en;
  const std::string_view adjective = o.adjective ? o.adjective->en : "";
  if (o.number > 0) return join({number_words(o.number).en, adjective, word});
  if (d.pattern == Pattern::bare) return join({adjective, word});
  if (d.en == "a") return join({begins_with_vowel(adjective.empty() ? word : adjective) ? "an" : "a", adjective, word});
  return join({plural ? d.en_plural : d.en, adjective, word});
}

}  // namespace

Phrase noun_phrase(const Noun& noun, const NounOptions& options) {
  static constexpr Determiner kKein{"a", "", "kein", Pattern::ein, false};
  const bool plural = options.plural || options.number > 1;
  const Determiner& d = find_determiner(options.number > 0 ? "bare" : options.determiner);
  const int col = column(noun.gender, plural);
  Phrase p;
  p.en_subject = p.en_object = english_noun_phrase(noun, options, d, plural);
  p.person = plural ? Person::plural : Person::third;
  p.gender = noun.gender;
  p.plural = plural;
  p.definite = d.definite;
  p.countable_number = options.number > 0;
  for (int c = 0; c < 3; ++c) {
    const std::string word = german_noun(noun, c, plural);
    const std::string number = options.number > 0 ? number_words(options.number).de : german_article(d, c, col);
    p.de[c] = join({number, german_adjective(options.adjective, d.pattern, c, col), word});
    if (!d.definite && options.number == 0) {
      p.de_negated[c] = join({german_article(kKein, c, col), german_adjective(options.adjective, Pattern::ein, c, col), word});
    }
  }
  return p;
}

Phrase pronoun(std::string_view english, Gender gender) {
  struct Row {
    std::string_view subject, object, nominative, accusative, dative;
    Person person;
  };
  static constexpr Row kRows[] = {
      {"I", "me", "ich", "mich", "mir", Person::first},  {"you", "you", "Sie", "Sie", "Ihnen", Person::plural},
      {"he", "him", "er", "ihn", "ihm", Person::third},  {"she", "her", "sie", "sie", "ihr", Person::third},
      {"we", "us", "wir", "uns", "uns", Person::plural}, {"they", "them", "sie", "sie", "ihnen", Person::plural}};
  static constexpr Row kIt[] = {{"it", "it", "er", "ihn", "ihm", Person::third},
                                {"it", "it", "sie", "sie", "ihr", Person::third},
                                {"it", "it", "es", "es", "ihm", Person::third}};
  const Row* row = english == "it" ? &kIt[static_cast<int>(gender)] : nullptr;
  for (const Row& r : kRows) {
    if (r.subject == english || r.object == english) row = &r;
  }
  CHECK(row, "no pronoun '{}'", english);
  Phrase p;
  p.en_subject = row->subject;
  p.en_object = row->object;
  p.de = {std::string(row->nominative), std::string(row->accusative), std::string(row->dative)};
  p.person = row->person;
  p.gender = gender;
  p.plural = row->person == Person::plural;
  p.pronoun = true;
  return p;
}

Phrase name(const Fixed& fixed) {
  Phrase p;
  p.en_subject = p.en_object = fixed.en;
  p.de = {fixed.de, fixed.de, fixed.de};
  return p;
}

Phrase substance(std::string_view en, std::string_view de, Gender gender) {
  Phrase p;
  p.en_subject = p.en_object = en;
  p.gender = gender;
  p.definite = false;
  for (int c = 0; c < 3; ++c) {
    p.de[c] = de;
    p.de_negated[c] = fmt::format("kein{} {}", kEin[c][column(gender, false)], de);
  }
  return p;
}

Phrase both(const Phrase& a, const Phrase& b) {
  Phrase p;
  p.en_subject = join({a.en_subject, "and", b.en_subject});
  p.en_object = join({a.en_object, "and", b.en_object});
  for (int c = 0; c < 3; ++c) p.de[c] = join({a.de[c], "und", b.de[c]});
  p.person = Person::plural;
  p.plural = true;
  p.definite = a.definite && b.definite;
  p.countable_number = true;  // never negated
  return p;
}

std::string prepositional(std::string_view preposition, Case c, const Phrase& phrase) {
  static constexpr struct {
    std::string_view preposition, article, contraction;
  } kContractions[] = {{"in", "dem ", "im "},   {"an", "dem ", "am "},    {"zu", "dem ", "zum "}, {"zu", "der ", "zur "},
                       {"von", "dem ", "vom "}, {"bei", "dem ", "beim "}, {"in", "das ", "ins "}, {"an", "das ", "ans "}};
  const std::string_view text = phrase.de[static_cast<int>(c)];
  for (const auto& row : kContractions) {
    if (row.preposition == preposition && text.starts_with(row.article)) {
      return std::string(row.contraction) + std::string(text.substr(row.article.size()));
    }
  }
  return join({preposition, text});
}

namespace {

// ---- English ----

struct EnglishVerb {
  std::string auxiliary, negation, main;
};

const char* english_be(const Phrase& subject, bool past) {
  return past ? by_person(subject, "was", "was", "were") : by_person(subject, "am", "is", "are");
}

EnglishVerb english_modal(const Clause& c, bool question) {
  const Modal& m = *c.modal;
  const bool third = c.subject.person == Person::third;
  if (m.needs_do) {
    if (question || c.negated) return {third ? "does" : "do", c.negated ? "not" : "", join({m.en, c.verb->en})};
    return {"", "", join({third ? m.en_s : m.en, c.verb->en})};
  }
  if (c.negated) return {m.en_negative, "", c.verb->en};
  const std::string_view text = m.en;
  const size_t space = text.find(' ');  // "would like to": the auxiliary is the first word
  if (space == std::string_view::npos) return {std::string(text), "", c.verb->en};
  return {std::string(text.substr(0, space)), "", join({text.substr(space + 1), c.verb->en})};
}

EnglishVerb english_verb(const Clause& c, bool question) {
  const Verb& v = *c.verb;
  const std::string negation = c.negated ? "not" : "";
  const bool third = c.subject.person == Person::third, bare = question || c.negated;
  switch (c.tense) {
    case Tense::modal:
      return english_modal(c, question);
    case Tense::future:
      return {"will", negation, v.en};
    case Tense::progressive:
      return {english_be(c.subject, false), negation, v.en_ing};
    default:
      break;
  }
  const bool past = c.tense == Tense::past;
  if (c.verb == &kBe) return {english_be(c.subject, past), negation, ""};
  if (!bare) return {"", "", past ? v.en_past : third ? v.en_s : v.en};
  return {past ? "did" : third ? "does" : "do", negation, v.en};
}

std::string english_objects(const Clause& c) {
  const std::string dative = c.dative ? c.dative->en_object : "", accusative = c.accusative ? c.accusative->en_object : "";
  const bool pronoun_first = c.accusative && c.accusative->pronoun;
  const std::string relative = c.accusative ? c.accusative->en_relative : c.dative ? c.dative->en_relative : "";
  return pronoun_first ? join({dative, accusative, c.verb->en_particle, relative})
                       : join({c.verb->en_particle, dative, accusative, relative});
}

std::string english_rest(const Clause& c) {
  return join({english_objects(c), c.complement.en, c.place.en, c.company.en, c.time_first ? "" : c.time.en});
}

// Everything after the subject.
std::string english_predicate(const Clause& c) {
  const EnglishVerb v = english_verb(c, false);
  return join({v.auxiliary, v.negation, c.frequency.en, v.main, english_rest(c)});
}

// ---- German ----

struct GermanVerb {
  std::string finite;
  std::string tail;         // what stands at the end of a main clause
  bool tail_glued = false;  // a separable prefix: glued to the finite verb in a verb-last clause
};

GermanVerb german_verb(const Clause& c) {
  const Verb& v = *c.verb;
  const Phrase& p = c.subject;
  const std::string infinitive = std::string(v.prefix) + v.plural;
  if (c.tense == Tense::future) return {by_person(p, "werde", "wird", "werden"), infinitive};
  if (c.tense == Tense::modal) return {by_person(p, c.modal->ich, c.modal->er, c.modal->plural), infinitive};
  if (c.tense == Tense::past) {
    if (&v == &kBe) return {by_person(p, "war", "war", "waren"), ""};
    if (&v == &kHave) return {by_person(p, "hatte", "hatte", "hatten"), ""};
    if (v.sein) return {by_person(p, "bin", "ist", "sind"), v.participle};
    return {by_person(p, "habe", "hat", "haben"), v.participle};
  }
  // The present of "sein" is the one whose plural differs from the infinitive.
  const char* plural = &v == &kBe ? "sind" : v.plural;
  return {by_person(p, v.ich, v.er, plural), v.prefix, true};
}

std::string german_object(const std::optional<Phrase>& object, Case c, bool negated) {
  if (!object) return "";
  const auto& forms = negated ? object->de_negated : object->de;
  return forms[static_cast<int>(c)];
}

bool says_kein(const Clause& c) { return c.negated && c.accusative && !c.accusative->de_negated[0].empty(); }

// The middle field: see the head of this file.
std::string german_middle(const Clause& c) {
  const bool kein = says_kein(c);
  const std::string dative = german_object(c.dative, Case::dative, false);
  const std::string accusative = german_object(c.accusative, Case::accusative, kein);
  const bool dative_early = c.dative && c.dative->definite;
  // With a dative beside it, a full accusative follows the time: "zeigt dem Gast morgen das Haus".
  const bool accusative_early = c.accusative && (c.accusative->pronoun || (c.accusative->definite && !c.dative));
  const std::string nicht = c.negated && !kein ? "nicht" : "";
  const bool after_place = !c.complement.de.empty() || c.verb == &kWeather[0] || c.verb == &kWeather[1];
  return join({accusative_early ? accusative : "", dative_early ? dative : "", c.time_first ? "" : c.time.de, c.frequency.de,
               dative_early ? "" : dative, accusative_early ? "" : accusative, after_place ? "" : nicht, c.company.de, c.place.de,
               after_place ? nicht : "", c.complement.de});
}

std::string german_subject(const Clause& c) { return join({c.subject.de[0], c.subject.de_relative}); }

std::string german_trailing_relative(const Clause& c) {
  return c.accusative ? c.accusative->de_relative : c.dative ? c.dative->de_relative : "";
}

// Verb-last without the subject: what relative clauses need too.
std::string german_verb_last(const Clause& c) {
  const GermanVerb v = german_verb(c);
  return join({german_middle(c), v.tail_glued ? v.tail + v.finite : join({v.tail, v.finite}), german_trailing_relative(c)});
}

std::string relative_pronoun(const Phrase& phrase, Case c) { return kRelative[static_cast<int>(c)][column(phrase.gender, phrase.plural)]; }

}  // namespace

std::string english(const Clause& c, bool question) {
  const std::string subject = join({c.subject.en_subject, c.subject.en_relative});
  if (!question) return join({c.time_first ? c.time.en : "", subject, english_predicate(c)});
  const EnglishVerb v = english_verb(c, true);
  return join({v.auxiliary, subject, v.negation, v.main, english_rest(c)});
}

std::string german(const Clause& c, Order order) {
  const GermanVerb v = german_verb(c);
  if (order == Order::verb_last) return join({german_subject(c), german_verb_last(c)});
  const std::string rest = join({german_middle(c), v.tail, german_trailing_relative(c)});
  if (order == Order::verb_first) return join({v.finite, german_subject(c), rest});
  if (c.time_first) return join({c.time.de, v.finite, german_subject(c), rest});
  return join({german_subject(c), v.finite, rest});
}

Pair imperative(const Clause& c) {
  Clause polite = c;
  polite.subject = pronoun("you");
  polite.tense = Tense::present;
  polite.time_first = false;
  const std::string en = c.negated ? join({"do not", c.verb->en, english_rest(polite)}) : join({c.verb->en, english_rest(polite)});
  return {en, german(polite, Order::verb_first)};
}

Phrase with_subject_relative(Phrase phrase, const Clause& clause, bool human) {
  Clause c = clause;
  c.subject.person = phrase.person;
  c.time_first = false;
  phrase.en_relative = join({human ? "who" : "that", english_predicate(c)});
  phrase.de_relative = fmt::format(", {} {},", relative_pronoun(phrase, Case::nominative), german_verb_last(c));
  return phrase;
}

Phrase with_object_relative(Phrase phrase, const Clause& clause, Case object_case) {
  Clause c = clause;
  c.time_first = false;
  c.dative.reset();
  c.accusative.reset();
  phrase.en_relative = join({"that", english(c)});
  phrase.de_relative = fmt::format(", {} {},", relative_pronoun(phrase, object_case), german(c, Order::verb_last));
  return phrase;
}

namespace {

bool is_punctuation(char c) { return c == ',' || c == '.' || c == '?' || c == '!'; }

// The two-byte German umlauts in upper case; everything else by ASCII.
void capitalise(std::string& text) {
  if (text.empty()) return;
  if (text[0] >= 'a' && text[0] <= 'z') {
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
  } else if (text.starts_with("ä") || text.starts_with("ö") || text.starts_with("ü")) {
    text[1] = static_cast<char>(static_cast<unsigned char>(text[1]) - 0x20);
  }
}

}  // namespace

std::string finish(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool joins = is_punctuation(c) && (i + 1 == text.size() || text[i + 1] == ' ' || is_punctuation(text[i + 1]));
    if (joins) {
      while (!result.empty() && (result.back() == ' ' || result.back() == ',')) result.pop_back();
    }
    if (c == ' ' && (result.empty() || result.back() == ' ')) continue;
    result += c;
  }
  capitalise(result);
  return result;
}

namespace {

template <class Row>
const Row& find_in(std::initializer_list<std::span<const Row>> tables, std::string_view english) {
  for (const auto& table : tables)
    for (const Row& row : table)
      if (row.en == english) return row;
  CHECK(false, "no word '{}' of its kind", english);
  __builtin_unreachable();
}

std::span<const Verb> alone(const Verb& verb) { return {&verb, 1}; }

}  // namespace

const Noun& find_noun(std::string_view english) { return find_in<Noun>({kNouns, kLandmarks, kVehicles}, english); }

const Adjective& find_adjective(std::string_view english) { return find_in<Adjective>({kAdjectives}, english); }

const Verb& find_verb(std::string_view english) {
  return find_in<Verb>({kTransitive, kPerson, kDative, kGiving, kIntransitive, kCity, kMovement, kStaying, kSaying, kWeather, alone(kBe),
                        alone(kLie), alone(kStand), alone(kDepart), alone(kArrive), alone(kTakePlace), alone(kBelong), alone(kHave)},
                       english);
}

const Modal& find_modal(std::string_view english) { return find_in<Modal>({kModals}, english); }

}  // namespace starling::demo
