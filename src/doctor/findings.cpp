#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "doctor/doctor.h"

namespace starling {
namespace {

using nlohmann::json;

// Findings on their way between ranks. Paths and messages of the system need not be UTF-8.
std::string packed(const std::vector<Examined>& all) {
  json topics = json::array();
  for (const Examined& examined : all) {
    json findings = json::array();
    for (const Finding& f : examined.findings) findings.push_back({{"level", f.level}, {"what", f.what}, {"mend", f.mend}});
    topics.push_back({{"topic", examined.topic}, {"findings", findings}});
  }
  return json{{"topics", topics}}.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::vector<Examined> unpacked(const std::string& text) {
  const json read = parse_json_object(text, "findings of a rank");
  std::vector<Examined> all;
  for (const json& topic : read.at("topics")) {
    Examined& examined = all.emplace_back(Examined{topic.at("topic"), {}});
    for (const json& f : topic.at("findings")) examined.findings.push_back({f.at("level"), f.at("what"), f.at("mend")});
  }
  return all;
}

struct SharedFinding {
  std::string topic;
  Finding finding;
  std::vector<std::string> hosts;
};

void add_finding(std::vector<SharedFinding>& all, const std::string& topic, const Finding& f, const std::string& host) {
  for (SharedFinding& known : all)
    if (known.topic == topic && known.finding.level == f.level && known.finding.what == f.what && known.finding.mend == f.mend)
      return known.hosts.push_back(host);
  all.push_back({topic, f, {host}});
}

}  // namespace

std::vector<Examined> gather_findings(Communicator& comm, const std::vector<Examined>& own) {
  comm.barrier().wait(kNoDeadline);  // disks may be slow
  const std::vector<int> firsts = first_ranks(comm);
  const bool sends = comm.rank() != 0 && std::find(firsts.begin(), firsts.end(), comm.rank()) != firsts.end();
  const std::vector<std::string> texts = gather_texts(comm, sends ? packed(own) : "");
  if (comm.rank() != 0) return {};
  std::vector<SharedFinding> shared;
  for (const int rank : firsts)
    if (rank != 0)
      for (const Examined& examined : unpacked(texts[static_cast<size_t>(rank)]))
        for (const Finding& f : examined.findings) add_finding(shared, examined.topic, f, comm.host(rank));
  const auto first_of_topic = [&](const SharedFinding& f) {
    return std::find_if(shared.begin(), shared.end(), [&](const SharedFinding& other) { return other.topic == f.topic; });
  };
  std::vector<Examined> all;
  for (auto first = shared.begin(); first != shared.end(); ++first) {
    if (first_of_topic(*first) != first) continue;
    for (auto f = first; f != shared.end(); ++f) {
      if (f->topic != first->topic) continue;
      const std::string topic = fmt::format("{} on {}", f->topic, fmt::join(f->hosts, ", "));
      auto known = std::find_if(all.begin(), all.end(), [&](const Examined& e) { return e.topic == topic; });
      if (known == all.end()) known = all.insert(all.end(), Examined{topic, {}});
      known->findings.push_back(f->finding);
    }
  }
  return all;
}

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
