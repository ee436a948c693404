#include <fmt/format.h>

#include "doctor/doctor.h"

namespace starling {

std::string findings_text(const Examined& examined) {
  if (examined.findings.empty()) return "";
  std::string text = examined.topic + "\n";
  for (const Finding& f : examined.findings) {
    text += fmt::format("  {:<8}{}\n", f.level == Level::fine ? "ok" : f.level == Level::note ? "note" : "PROBLEM", f.what);
    if (!f.mend.empty()) text += fmt::format("          mend: {}\n", f.mend);
  }
  return text;
}

int64_t count(const std::vector<Examined>& all, Level level) {
  int64_t n = 0;
  for (const Examined& examined : all)
    for (const Finding& f : examined.findings) n += f.level == level;
  return n;
}

}  // namespace starling
