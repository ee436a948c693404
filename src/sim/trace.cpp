// Operations of one rank may overlap on the network line, which viewers show badly. So each is drawn from the end of the previous one, and
// its arguments say when it really began.
#include "sim/trace.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>

#include "base/error.h"
#include "base/system_reason.h"

namespace starling::sim {

void Trace::write(const std::string& path, const std::vector<int>& node_of) const {
  std::vector<Event> events = events_;
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.to_ns < b.to_ns; });
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  const auto out = std::back_inserter(text);
  int last_node = -1;
  for (size_t r = 0; r < node_of.size(); ++r) {
    const int node = node_of[r];
    if (node != last_node)
      fmt::format_to(out, "{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{0},\"args\":{{\"name\":\"node {0}\"}}}},\n", node);
    last_node = node;
    for (int line = 0; line < 2; ++line)
      fmt::format_to(out, "{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":\"rank {} {}\"}}}},\n", node,
                     2 * r + static_cast<size_t>(line), r, line == 0 ? "computing" : "network");
  }
  std::map<int, int64_t> drawn;  // end of what is already on each line
  for (const Event& e : events) {
    const int tid = 2 * e.rank + e.line;
    const int64_t from = std::max(e.from_ns, drawn[tid]), to = std::max(from, e.to_ns);
    drawn[tid] = to;
    fmt::format_to(out, "{{\"ph\":\"X\",\"name\":\"{}\",\"cat\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},\"args\":{{",
                   e.stage < 0 ? e.name : fmt::format("{} {}", e.name, e.micro_batch), e.line == compute ? "compute" : "network",
                   node_of[static_cast<size_t>(e.rank)], tid, 1e-3 * static_cast<double>(from), 1e-3 * static_cast<double>(to - from));
    if (e.stage >= 0) fmt::format_to(out, "\"stage\":{},\"micro_batch\":{}", e.stage, e.micro_batch);
    if (e.bytes >= 0) fmt::format_to(out, "\"bytes\":{},\"began_us\":{:.3f}", e.bytes, 1e-3 * static_cast<double>(e.from_ns));
    text += "}},\n";
  }
  text.resize(text.size() - 2);  // the last comma
  text += "\n]}\n";
  std::FILE* file = std::fopen(path.c_str(), "wb");
  bool good = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file) good = std::fclose(file) == 0 && good;
  if (!good) throw IoError(fmt::format("cannot write the trace {}: {}", path, system_reason(errno)));
}

}  // namespace starling::sim
