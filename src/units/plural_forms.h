// The forms that languages have for numbers, as gettext writes them: their number, and an expression of n in C's syntax.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace starling {

/// Returns "nplurals=2; plural=(n != 1);" or what else a language has; the same for those that are unknown.
std::string plural_forms_of(std::string_view language);

class PluralForms {
 public:
  /// Reads a header's value; what cannot be read counts as two forms.
  explicit PluralForms(std::string_view header);

  size_t count() const { return count_; }
  /// Returns the form of a number, below count().
  size_t form_of(uint64_t n) const;
  /// Returns whether a form is for the number 1 and no other.
  bool is_one_alone(size_t form) const;

 private:
  size_t count_ = 2;
  std::string expression_;
};

}  // namespace starling
