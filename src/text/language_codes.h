// Codes of three letters (ISO 639-3) for languages that have one of two, and the pieces by which models of many languages name them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace starling {

/// Returns the code of two letters for one of three: "pt" for "por", and for a member that stands for its macrolanguage: "zh" for "cmn"; ""
/// if there is none.
std::string two_letter_language(std::string_view three);
/// Returns the codes of three letters for one of two, that of ISO 639 first: "zho" and "cmn" for "zh".
std::vector<std::string> three_letter_languages(std::string_view two);

/// Whether a piece has the form of a language's in M2M-100 (__en__) or NLLB (eng_Latn).
bool is_m2m_language(std::string_view piece);
bool is_nllb_language(std::string_view piece);

/// Returns the piece that stands for a language of this code, such as __en__, eng_Latn or >>eng<<; "" if there is none among the pieces.
std::string language_piece(const std::vector<std::string>& pieces, const std::string& code);

}  // namespace starling
