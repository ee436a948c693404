#include "formats/file_format.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/error.h"
#include "base/utf8.h"
#include "formats/office.h"
#include "formats/subtitles.h"

namespace starling {
namespace {

struct Known {
  std::string_view name;     // of the format, as messages call it; "" for those that are read
  std::string_view endings;  // of files' names, with a space around each
  std::string_view first;    // of the first bytes, in lower case; "" if they say nothing
  std::string_view read_as;
  std::string_view within = "";  // also known by this among the first bytes
};
constexpr Known kKnown[] = {
    {"", " html htm xhtml ", "<!doctype html", "html"},
    {"", "", "<html", "html"},
    {"", " xlf xliff sdlxliff mqxliff ", "", "xliff", "<xliff"},
    {"TMX", " tmx ", "", ""},
    {"", "", "", "qt", "<!doctype ts>"},
    {"", "", "", "qt", "<ts version"},
    {"", "", "", "android", "<resources"},
    {"", " resx ", "", "resx"},
    {"", " md markdown mdx ", "", "markdown"},
    {"", " po pot ", "", "po"},
    {"", " json arb ", "", "json"},
    {"", " xcstrings ", "", "xcstrings"},
    {"property list", " plist stringsdict ", "", "", "<!doctype plist"},
    {"Jupyter notebook", " ipynb ", "", ""},
    {"Fluent", " ftl ", "", ""},
    {"AsciiDoc", " adoc asciidoc ", "", ""},
    {"Org mode", " org ", "", ""},
    {"MediaWiki", " wiki mediawiki ", "", ""},
    {"SBV", " sbv ", "", ""},
    {"iCalendar, vCard or e-mail", " ics vcf eml mbox ", "begin:v", ""},
    {"", " yml yaml ", "", "yaml"},
    {"SubStation Alpha", " ass ssa ", "[script info]", ""},
    {"LaTeX", " tex ", "\\documentclass", ""},
    {"reStructuredText", " rst ", "", ""},
    {"RTF", " rtf ", "{\\rtf", ""},
    {"", " properties ", "", "properties"},
    {"", " strings ", "", "strings"},
    {"CSV", " csv tsv ", "", ""},
    {"LRC", " lrc ", "", ""},
    {"MicroDVD", " sub ", "{1}{", ""},
    {"SAMI", " smi sami ", "<sami", ""},
    {"INI", " ini conf cfg toml env desktop ", "", ""},
    {"source code", " php js jsx ts tsx mjs vue svelte py rb pl lua sh c cc cpp h hpp cs java kt swift go rs dart sql css scss ", "<?php",
     ""},
    {"", " xml svg ttml dfxp ", "<?xml", "xml"},
};

// Whether a text begins with an object of JSON: a brace, a key in quotes and a colon.
bool begins_json(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  if (!text.starts_with('{')) return false;
  const size_t key = text.find_first_not_of(kBlanks, 1), end = key < text.size() ? text.find('"', key + 1) : text.npos;
  const size_t colon = end == text.npos ? end : text.find_first_not_of(kBlanks, end + 1);
  return colon != text.npos && text[key] == '"' && text[colon] == ':';
}

}  // namespace

DocumentFormat text_format(std::string_view format) {
  return format == "html" ? DocumentFormat::html : format == "xml" ? DocumentFormat::xml : DocumentFormat::text;
}

std::vector<std::string> document_formats() {
  std::vector<std::string> all{"auto", "text",      "html",       "xml",     "subtitles", "xliff", "markdown", "po",
                               "json", "xcstrings", "properties", "strings", "android",   "resx",  "qt",       "yaml"};
  all.insert(all.end(), office_formats().begin(), office_formats().end());
  return all;
}

std::vector<std::string> document_endings() {
  std::vector<std::string> all{".txt", ".srt", ".vtt"};
  for (const std::string_view format : office_formats()) all.push_back(fmt::format(".{}", format));
  for (const Known& k : kKnown)
    for (size_t at = 1; !k.read_as.empty() && at < k.endings.size(); at = k.endings.find(' ', at) + 1)
      all.push_back(fmt::format(".{}", k.endings.substr(at, k.endings.find(' ', at) - at)));
  return all;
}

std::string file_format(std::string_view text, const std::string& path) {
  if (std::string office = office_format(text, path); !office.empty()) return office;
  if (is_subtitles(text)) return "subtitles";
  text.remove_prefix(byte_order_mark(text));
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  std::string first(text.substr(0, 500)), ending = path.substr(path.rfind('/') + 1);
  const size_t dot = ending.rfind('.');
  ending = dot == std::string::npos ? "" : ending.substr(dot + 1);
  for (std::string* s : {&first, &ending})
    for (char& c : *s) c = ascii_lower(c);
  ending = ending.empty() || ending.find(' ') != std::string::npos ? "none" : " " + ending + " ";
  for (const Known& k : kKnown) {
    const bool has = !k.within.empty() && first.find(k.within) != std::string::npos;
    if (!has && k.endings.find(ending) == std::string_view::npos && (k.first.empty() || !first.starts_with(k.first))) continue;
    if (!k.read_as.empty()) return std::string(k.read_as);
    throw ConfigError(fmt::format(
        "{}: {} format is not supported yet; --format text, html or xml reads it as one of these, but what is not text there may "
        "be translated or lost",
        path, k.name));
  }
  return begins_json(first) ? "json" : "text";
}

}  // namespace starling
