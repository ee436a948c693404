#include "translate/beginnings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "translate/options.h"

namespace starling {

Beginnings::Beginnings(const TranslateOptions& o)
    : tsv_(o.tsv), input_(o.inputs.size() == 1 && o.inputs[0] != "-" ? o.inputs[0] : "input") {
  if (!o.prefix_file.empty()) file_.emplace(o.prefix_file);
}

std::vector<std::string> Beginnings::take(std::vector<std::string>& lines) {
  std::vector<std::string> beginnings;
  if (tsv_) beginnings = cut_off(lines);
  if (file_) beginnings = read(lines);
  if (tsv_ || file_) lines.resize(beginnings.size());
  lines_before_ += std::ssize(lines);
  return beginnings;
}

std::vector<std::string> Beginnings::cut_off(std::vector<std::string>& lines) {
  std::vector<std::string> beginnings;
  for (std::string& line : lines) {
    const int64_t tabs = std::count(line.begin(), line.end(), '\t');
    if (tabs > 1 || (tabs == 0 && !line.empty())) {
      wrong_ = fmt::format("{}:{}: {} instead of one; with --tsv each line is a source, a tab and a beginning, which may be empty", input_,
                           lines_before_ + std::ssize(beginnings) + 1, tabs == 0 ? "no tab" : "several tabs");
      break;
    }
    const size_t tab = std::min(line.find('\t'), line.size());
    beginnings.push_back(line.substr(std::min(tab + 1, line.size())));
    line.resize(tab);
  }
  return beginnings;
}

std::vector<std::string> Beginnings::read(std::vector<std::string>& lines) {
  std::vector<std::string> beginnings;
  for (std::string_view line; beginnings.size() < lines.size() && file_->next(line);) beginnings.emplace_back(line);
  if (beginnings.size() < lines.size())
    wrong_ = fmt::format("{}: {} for more lines of input; give one for each, which may be empty", file_->path(),
                         counted(file_->line_number(), "beginning"));
  return beginnings;
}

std::string Beginnings::warning() {
  std::string_view line;
  return file_ && file_->next(line) ? fmt::format("warning: {} has more beginnings than the input has lines\n", file_->path()) : "";
}

}  // namespace starling
