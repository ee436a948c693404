// Formats the table and the JSON of several systems. Names may be any text, so column widths count code points, not bytes.
#include "metrics/system_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/unicode.h"

namespace starling {

namespace {

using CellLines = std::vector<std::string>;
using TableRow = std::vector<CellLines>;

constexpr double kSignificant = 0.05;

std::size_t columns_of(const std::string& text) { return invalid_utf8_offset(text) ? text.size() : decode_utf8(text).size(); }

std::string row_name(const ComparedSystems& compared, std::size_t system) {
  return (system == 0 ? "Baseline: " : "") + compared.names[system];
}

CellLines score_cell(const TestedScore& t, int width) {
  CellLines cell{t.mean ? fmt::format("{:.{}f} ({:.{}f} ± {:.{}f})", t.score, width, *t.mean, width, *t.ci, width)
                        : fmt::format("{:.{}f}", t.score, width)};
  if (t.p_value) cell.push_back(fmt::format("(p = {:.4f}){}", *t.p_value, *t.p_value < kSignificant ? "*" : " "));
  return cell;
}

std::vector<TableRow> cells_of(const ComparedSystems& compared, int width) {
  std::vector<TableRow> rows{{{"System"}}};
  for (const ComparedMetric& m : compared.metrics) rows[0].push_back({m.name + (m.scores[0].mean ? " (μ ± 95% CI)" : "")});
  for (std::size_t s = 0; s < compared.names.size(); ++s) {
    rows.push_back({{row_name(compared, s)}});
    for (const ComparedMetric& m : compared.metrics) rows.back().push_back(score_cell(m.scores[s], width));
  }
  return rows;
}

std::string spaces(std::size_t n) { return std::string(n, ' '); }

// Aligns names to the right and centres figures.
std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::size_t room = width - columns_of(text), left = right ? room : room / 2;
  return spaces(left) + text + spaces(room - left);
}

std::string ruler(const std::vector<std::size_t>& widths, const char* begin, const char* line, const char* cross, const char* end) {
  std::string out = begin;
  for (std::size_t c = 0; c < widths.size(); ++c) {
    for (std::size_t i = 0; i < widths[c] + 2; ++i) out += line;
    out += c + 1 < widths.size() ? cross : end;
  }
  return out + "\n";
}

std::string boxes(const std::vector<TableRow>& rows) {
  std::vector<std::size_t> widths(rows[0].size(), 0);
  for (const TableRow& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      for (const std::string& line : row[c]) widths[c] = std::max(widths[c], columns_of(line));
    }
  }
  std::string out = ruler(widths, "╒", "═", "╤", "╕");
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (r > 0) out += r == 1 ? ruler(widths, "╞", "═", "╪", "╡") : ruler(widths, "├", "─", "┼", "┤");
    std::size_t height = 0;
    for (const CellLines& cell : rows[r]) height = std::max(height, cell.size());
    for (std::size_t i = 0; i < height; ++i) {
      for (std::size_t c = 0; c < rows[r].size(); ++c)
        out += "│ " + padded(i < rows[r][c].size() ? rows[r][c][i] : "", widths[c], c == 0) + " ";
      out += "│\n";
    }
  }
  return out + ruler(widths, "╘", "═", "╧", "╛");
}

}  // namespace

std::string system_table(const ComparedSystems& compared, int width) {
  std::string out = boxes(cells_of(compared, width)) + "\n";
  if (!compared.about.empty()) out += compared.about + "\n\n";
  for (const ComparedMetric& m : compared.metrics) out += fmt::format("{:<10} {}\n", m.name, m.signature);
  return out;
}

nlohmann::ordered_json system_json(const ComparedSystems& compared) {
  const auto number = [](const std::optional<double>& value) { return value ? nlohmann::ordered_json(*value) : nullptr; };
  nlohmann::ordered_json systems = nlohmann::ordered_json::array();
  for (std::size_t s = 0; s < compared.names.size(); ++s) {
    nlohmann::ordered_json system{{"system", row_name(compared, s)}};
    for (const ComparedMetric& m : compared.metrics) {
      const TestedScore& t = m.scores[s];
      system[m.name] = {
          {"score", t.score}, {"p_value", number(t.p_value)}, {"mean", number(t.mean)}, {"ci", number(t.ci)}, {"signature", m.signature}};
    }
    systems.push_back(std::move(system));
  }
  return systems;
}

}  // namespace starling
