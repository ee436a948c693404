#include "units/plural_forms.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/ascii.h"
#include "text/language_codes.h"
#include "text/languages.h"

namespace starling {
namespace {

constexpr size_t kMostForms = 6, kLongestExpression = 1000;
constexpr int kDeepestExpression = 50;

struct Family {
  std::string_view languages, forms;  // with a space around each
};
constexpr Family kFamilies[] = {
    {" ja ko zh yue vi th id ms lo my jv su bo dz km wo yo ", "nplurals=1; plural=0;"},
    {" fr pt-br oc br fa tr wa ln mg ti ak am ", "nplurals=2; plural=(n > 1);"},
    {" ru uk be sr hr bs sh ", "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);"},
    {" pl ", "nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);"},
    {" cs sk ", "nplurals=3; plural=(n==1) ? 0 : (n>=2 && n<=4) ? 1 : 2;"},
    {" lt ", "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2);"},
    {" lv ", "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2);"},
    {" ro mo ", "nplurals=3; plural=(n==1 ? 0 : (n==0 || (n%100 > 0 && n%100 < 20)) ? 1 : 2);"},
    {" sl ", "nplurals=4; plural=(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3);"},
    {" ga ", "nplurals=5; plural=n==1 ? 0 : n==2 ? 1 : n<7 ? 2 : n<11 ? 3 : 4;"},
    {" mt ", "nplurals=4; plural=(n==1 ? 0 : n==0 || (n%100>1 && n%100<11) ? 1 : (n%100>10 && n%100<20) ? 2 : 3);"},
    {" cy ", "nplurals=4; plural=(n==1) ? 0 : (n==2) ? 1 : (n != 8 && n != 11) ? 2 : 3;"},
    {" gd ", "nplurals=4; plural=(n==1 || n==11) ? 0 : (n==2 || n==12) ? 1 : (n > 2 && n < 20) ? 2 : 3;"},
    {" ar ", "nplurals=6; plural=(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5);"},
    {" is mk ", "nplurals=2; plural=(n%10!=1 || n%100==11);"},
};

// Evaluates an expression of gettext's.
class Evaluator {
 public:
  Evaluator(std::string_view text, uint64_t n) : text_(text), n_(n) {}
  std::optional<uint64_t> value() {
    const uint64_t v = choice(0);
    skip();
    if (at_ < text_.size() && text_[at_] == ';') ++at_, skip();
    return broken_ || at_ < text_.size() ? std::nullopt : std::optional(v);
  }

 private:
  void skip() {
    while (at_ < text_.size() && is_ascii_space(text_[at_])) ++at_;
  }
  bool take(std::string_view sign) {
    skip();
    if (!text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    return true;
  }
  uint64_t choice(int depth) {
    if (depth > kDeepestExpression) return broken_ = true, 0;
    const uint64_t condition = binary(0, depth);
    if (!take("?")) return condition;
    const uint64_t yes = choice(depth + 1);
    if (!take(":")) broken_ = true;
    const uint64_t no = broken_ ? 0 : choice(depth + 1);
    return condition ? yes : no;
  }
  // Levels from the weakest operator to the strongest.
  uint64_t binary(size_t level, int depth) {
    constexpr std::string_view kLevels[][4] = {{"||"}, {"&&"}, {"==", "!="}, {"<=", ">=", "<", ">"}, {"+", "-"}, {"*", "/", "%"}};
    if (level == std::size(kLevels)) return unary(depth);
    uint64_t left = binary(level + 1, depth);
    for (bool more = true; more && !broken_;) {
      more = false;
      for (const std::string_view sign : kLevels[level]) {
        if (sign.empty() || !take(sign)) continue;
        left = apply(sign, left, binary(level + 1, depth));
        more = true;
        break;
      }
    }
    return left;
  }
  uint64_t apply(std::string_view sign, uint64_t a, uint64_t b) {
    if (sign == "||") return a || b;
    if (sign == "&&") return a && b;
    if (sign == "==") return a == b;
    if (sign == "!=") return a != b;
    if (sign == "<=") return a <= b;
    if (sign == ">=") return a >= b;
    if (sign == "<") return a < b;
    if (sign == ">") return a > b;
    if (sign == "+") return a + b;
    if (sign == "-") return a - b;
    if (sign == "*") return a * b;
    if (b == 0) return broken_ = true, 0;
    return sign == "/" ? a / b : a % b;
  }
  uint64_t unary(int depth) {
    if (depth > kDeepestExpression || broken_) return broken_ = true, 0;
    if (take("!")) return !unary(depth + 1);
    if (take("(")) {
      const uint64_t v = choice(depth + 1);
      if (!take(")")) broken_ = true;
      return v;
    }
    if (take("n")) return n_;
    uint64_t v = 0;
    const auto end = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
    if (end.ec != std::errc()) return broken_ = true, 0;
    at_ = static_cast<size_t>(end.ptr - text_.data());
    return v;
  }

  std::string_view text_;
  uint64_t n_;
  size_t at_ = 0;
  bool broken_ = false;
};

}  // namespace

std::string plural_forms_of(std::string_view language) {
  std::string code(language);
  for (char& c : code) c = c == '_' ? '-' : ascii_lower(c);
  const std::string main = main_language(language);
  for (const std::string& name : {code, main, two_letter_language(main)})
    for (const Family& family : kFamilies)
      if (!name.empty() && family.languages.find(" " + name + " ") != std::string_view::npos) return std::string(family.forms);
  return "nplurals=2; plural=(n != 1);";
}

PluralForms::PluralForms(std::string_view header) : expression_("n != 1") {
  const size_t count = header.find("nplurals="), plural = header.find("plural=", count == header.npos ? 0 : count + 9);
  if (count == header.npos || plural == header.npos) return;
  size_t n = 0;
  std::from_chars(header.data() + count + 9, header.data() + header.size(), n);
  const std::string_view expression = trimmed(header.substr(plural + 7).substr(0, kLongestExpression), " \t\r\n");
  if (n < 1 || n > kMostForms || !Evaluator(expression, 1).value()) return;
  count_ = n;
  expression_ = expression;
}

size_t PluralForms::form_of(uint64_t n) const {
  return static_cast<size_t>(std::min<uint64_t>(Evaluator(expression_, n).value().value_or(0), count_ - 1));
}

bool PluralForms::is_one_alone(size_t form) const {
  if (form_of(1) != form) return false;
  for (uint64_t n = 0; n < 200; ++n)
    if (n != 1 && form_of(n) == form) return false;
  return true;
}

}  // namespace starling
