// Lines and records of a training run; see progress.h. Each line and record is one flushed write of an append-mode file, so a killed run
// loses nothing but what it was writing, and a resumed one first completes a half-written line.
#include "progress/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/files.h"
#include "base/iso_time.h"
#include "base/messages.h"
#include "base/system_reason.h"
#include "base/text_files.h"
#include "base/this_host.h"
#include "progress/statistics.h"

namespace starling {
namespace {

using OrderedJson = nlohmann::ordered_json;
constexpr int schema_version = 1;
constexpr std::chrono::milliseconds draw_interval{200};
constexpr int64_t enough_updates = 3;  // and seconds, to estimate the time left from: the first updates also generate code and fill caches
constexpr double enough_seconds = 2;

int close_file(std::FILE* file) { return std::fclose(file); }

[[noreturn]] void write_failed(const std::string& path) { throw IoError(fmt::format("cannot write {}: {}", path, system_reason(errno))); }

// Whether the file ends within a line, as after a crash.
bool ends_within_line(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) return false;
  const bool within = std::fseek(file, -1, SEEK_END) == 0 && std::fgetc(file) != '\n';
  std::fclose(file);
  return within;
}

double seconds_since_1970(ProgressOptions::Time time) { return std::chrono::duration<double>(time.time_since_epoch()).count(); }

bool append_whole(std::FILE* file, std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
}

void append(std::FILE* file, const std::string& path, std::string_view text) {
  if (!append_whole(file, text)) write_failed(path);
}

std::unique_ptr<std::FILE, int (*)(std::FILE*)> open_log(const std::string& directory, const char* name) {
  const std::string path = directory + "/" + name;
  const bool broken = ends_within_line(path);
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "ab"), close_file);
  if (!file) write_failed(path);
  if (broken) append(file.get(), path, "\n");
  return file;
}

int terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

bool smart_terminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) && !(term && std::string_view(term) == "dumb");
}

// A piece of a line. Where the live line is too long for the screen, its pieces of the highest rank are dropped first.
struct Piece {
  int rank;
  std::string text;
};

std::vector<Piece> pieces_of(const TrainReport& r) {
  std::vector<Piece> pieces;
  for (const Statistic& s : kStatistics)
    if (s.piece && !std::isnan(s.value(r))) pieces.push_back({s.rank, s.piece(r)});
  return pieces;
}

OrderedJson record_of(const TrainReport& r) {
  OrderedJson record = {{"type", "report"}};
  for (const bool absent : {false, true})
    for (const Statistic& s : kStatistics) {
      const double value = s.value(r);
      if (!s.key || s.absent != absent || (absent && std::isnan(value))) continue;
      record[s.key] = s.count ? OrderedJson(static_cast<int64_t>(value)) : OrderedJson(value);
    }
  return record;
}

Scalars scalars_of(const TrainReport& r) {
  Scalars scalars;
  for (const Statistic& s : kStatistics)
    if (s.scalar) scalars.emplace_back(s.scalar, s.value(r));
  return scalars;
}

std::string join(const std::vector<Piece>& pieces) {
  std::string out;
  for (const auto& piece : pieces) out += (out.empty() ? "" : " | ") + piece.text;
  return out;
}

std::string fitted(std::vector<Piece> pieces, size_t columns) {
  std::string text = join(pieces);
  while (text.size() > columns && pieces.size() > 1) {
    pieces.erase(std::max_element(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.rank < b.rank; }));
    text = join(pieces);
  }
  return text.substr(0, columns);
}

}  // namespace

ProgressOptions console_progress(const std::string& mode) {
  ProgressOptions options;
  options.live = mode == "always" || (mode == "auto" && smart_terminal());
  options.width = terminal_width;
  // A closed or full standard output must not end the training, nor keep it waiting.
  options.console = [out = std::make_shared<Messages>(STDOUT_FILENO)](std::string_view text) { out->write(text); };
  return options;
}

Progress::Progress(ProgressOptions options)
    : options_(std::move(options)), log_(nullptr, close_file), events_(nullptr, close_file), scalars_(nullptr, close_file) {
  if (!options_.directory.empty()) open_files(options_.directory);
}

void Progress::open_files(const std::string& directory) {
  options_.directory = directory;
  log_ = open_log(directory, "train.log");
  events_ = open_log(directory, "events.jsonl");
  append(log_.get(), directory + "/train.log", early_log_);
  append(events_.get(), directory + "/events.jsonl", early_events_);
  open_ = true;
  early_log_.clear();
  early_events_.clear();
  if (!options_.tensorboard) return;
  const double seconds = seconds_since_1970(options_.now());
  scalars_path_ = fmt::format("{}/tensorboard/events.out.tfevents.{:.0f}.{}.{}", directory, seconds, this_host(), getpid());
  real_file_system()->make_directories(parent_path(scalars_path_));
  scalars_.reset(std::fopen(scalars_path_.c_str(), "ab"));
  if (!scalars_) write_failed(scalars_path_);
  append(scalars_.get(), scalars_path_, tensorboard_header(seconds));
}

// Numbers that are not finite are left out, which TensorBoard shows as a gap.
void Progress::scalars(int64_t step, const Scalars& scalars) {
  if (!scalars_) return;
  Scalars finite;
  for (const auto& [tag, value] : scalars)
    if (std::isfinite(value)) finite.emplace_back(tag, value);
  append_scalars(tensorboard_record(seconds_since_1970(options_.now()), step, finite));
}

void Progress::append_scalars(const std::string& record) {
  // A record that is cut off would hide those after it.
  if (!scalars_ || append_whole(scalars_.get(), record)) return;
  tell_lost(scalars_path_);
  scalars_.reset();
}

// A full disk must not end the training, whose checkpoints say so too (run/run_checkpoints.cpp). The file is opened anew for each try,
// since a stream that has failed keeps what it could not write.
void Progress::append_or_lose(File& file, const std::string& path, std::string_view text) {
  if (!file) {
    const bool broken = ends_within_line(path);
    file.reset(std::fopen(path.c_str(), "ab"));
    if (!file || (broken && !append_whole(file.get(), "\n"))) {
      file.reset();
      return;
    }
  }
  if (append_whole(file.get(), text)) {
    lost_.erase(path);
    return;
  }
  tell_lost(path);
  file.reset();
}

// Warns once, until a line has been written again.
void Progress::tell_lost(const std::string& path) {
  const int reason = errno;
  if (lost_.insert(path).second) tell("starling: warning: {}: {}; lines are lost, and the training goes on\n", path, system_reason(reason));
}

Progress::~Progress() {
  if (drawn_ > 0) show("\n");
}

void Progress::show(std::string_view text) {
  if (options_.console) options_.console(text);
}

void Progress::erase() {
  if (drawn_ > 0) show("\r" + std::string(drawn_, ' ') + "\r");
  drawn_ = 0;
}

void Progress::draw(const TrainReport& r) { draw(fitted(pieces_of(r), columns())); }

void Progress::draw(const std::string& text) {
  const size_t columns = this->columns();
  live_ = text.substr(0, columns);
  const size_t rest = drawn_ > live_.size() ? std::min(drawn_, columns) - live_.size() : 0;
  show("\r" + live_ + std::string(rest, ' '));
  drawn_ = live_.size() + rest;
  last_draw_ = options_.now();
}

// One stays free: many terminals wrap when the last one is written.
size_t Progress::columns() const { return static_cast<size_t>(std::max(options_.width() - 1, 1)); }

TaskScreen Progress::screen() {
  TaskScreen screen{[this](const std::string& text) { line(text); }, {}, 0};
  if (options_.live)
    screen.live = [this](const std::string& text) {
      if (text.empty())
        erase();
      else
        draw(text);
    };
  return screen;
}

void Progress::line(const std::string& text) {
  const std::string stamped = fmt::format("[{}] {}\n", iso_time(options_.now()), text);
  if (open_)
    append_or_lose(log_, options_.directory + "/train.log", stamped);
  else if (options_.files_later)
    early_log_ += stamped;
  if (!options_.live) return show(stamped);
}

double Progress::fraction(const TrainReport& r) const {
  if (!std::isnan(r.fraction)) return std::clamp(r.fraction, 0.0, 1.0);
  return r.max_steps > 0 ? std::min(1.0, static_cast<double>(r.step) / static_cast<double>(r.max_steps)) : TrainReport::unknown;
}

// Applies the pace since `from_` to what is left of the run. At first `from_` is the first report (the part of the run before it is
// unknown, and its updates were slow). It then moves on so that it lies between half and all of the time back: a slow start is forgotten,
// while occasional validations and checkpoints still count. A resumed run counts from where it resumed.
double Progress::seconds_left(const TrainReport& r) {
  const Mark now{options_.now(), r.step, fraction(r)};
  if (std::isnan(now.fraction)) return TrainReport::unknown;
  if (!from_) from_ = later_ = now;
  if (now.step - later_->step >= enough_updates &&
      seconds_between(*later_, now) >= std::max(enough_seconds, seconds_between(*from_, *later_)))
    from_ = later_, later_ = now;
  if (now.step - from_->step < enough_updates || seconds_between(*from_, now) < enough_seconds || now.fraction <= from_->fraction)
    return TrainReport::unknown;
  return seconds_between(*from_, now) * (1 - now.fraction) / (now.fraction - from_->fraction);
}

void Progress::tick(const TrainReport& r) {
  if (!options_.live || (drawn_ > 0 && options_.now() - last_draw_ < draw_interval)) return;
  draw(complete(r));
}

TrainReport Progress::complete(const TrainReport& report) {
  TrainReport r = report;
  r.seconds_left = seconds_left(report);
  r.fraction = fraction(report);
  return r;
}

void Progress::report(const TrainReport& report) {
  const TrainReport r = complete(report);
  const std::vector<Piece> pieces = pieces_of(r);
  line(join(pieces));
  if (options_.live) {  // the line stays above the live one
    erase();
    show(fitted(pieces, columns()) + "\n");
    draw(r);
  }
  event(record_of(r));
  scalars(r.step, scalars_of(r));
}

namespace {
std::string score_text(const std::string& metric, double value) {
  if (std::abs(value) >= 1e9) return fmt::format(" | {} {:.4g}", metric, value);  // of a script, which may say anything
  return metric == "cross-entropy" ? fmt::format(" | {} {:.4f}", metric, value) : fmt::format(" | {} {:.2f}", metric, value);
}
}  // namespace

void Progress::validation(const ValidReport& r) {
  std::string text = fmt::format("[valid] step {} | epoch {}", r.step, r.epoch);
  OrderedJson scores = OrderedJson::object();
  for (const auto& [metric, value] : r.scores) {
    text += score_text(metric, value);
    scores[metric] = value;
  }
  OrderedJson by_text = OrderedJson::object();
  std::vector<std::string> lines;
  for (const auto& [name, of] : r.by_text) {
    std::string& line = lines.emplace_back("[valid] " + name);
    for (const auto& [metric, value] : of) {
      line += score_text(metric, value);
      by_text[name][metric] = value;
    }
  }
  if (r.length_ratio >= 0) text += fmt::format(" | length {:.2f}", r.length_ratio);
  if (!r.metric.empty())
    text += !r.best            ? fmt::format(" | {} stalled {} time{}", r.metric, r.stalled, r.stalled == 1 ? "" : "s")
            : r.by == r.metric ? " | new best " + r.metric
            : r.by.empty()     ? fmt::format(" | taken as the best, {} being equal", r.metric)
                               : fmt::format(" | new best by {}, {} being equal", r.by, r.metric);
  message(text + " | took " + (r.seconds < 60 ? fmt::format("{:.1f} s", r.seconds) : duration_text(r.seconds)));
  for (const std::string& each : lines) message(each);
  if (!r.example.empty()) message("[valid] example: " + r.example);
  OrderedJson record{{"type", "validation"}, {"step", r.step}, {"epoch", r.epoch},     {"scores", scores},
                     {"metric", r.metric},   {"best", r.best}, {"stalled", r.stalled}, {"seconds", r.seconds}};
  if (r.best && r.by != r.metric) record["decided_by"] = r.by;
  if (!r.tokenizer.empty()) record["tokenizer"] = r.tokenizer;
  if (r.length_ratio >= 0) record["length_ratio"] = r.length_ratio;
  if (!r.by_text.empty()) record["by_text"] = by_text;
  event(record);
  Scalars all;
  const auto add = [&](const std::string& metric, double value, const std::string& of) {
    all.emplace_back((metric == "cross-entropy" ? "valid/loss" : "valid/" + metric) + of, value);
    if (metric == "cross-entropy") all.emplace_back("valid/ppl" + of, std::exp(value));
  };
  for (const auto& [metric, value] : r.scores) add(metric, value, "");
  for (const auto& [name, of] : r.by_text)
    for (const auto& [metric, value] : of) add(metric, value, "/" + name);
  scalars(r.step, all);
}

void Progress::message(std::string_view text) {
  line(std::string(text));
  if (!options_.live) return;
  const bool redraw = drawn_ > 0;
  erase();
  show(std::string(text) + "\n");
  if (redraw) {
    show(live_);
    drawn_ = live_.size();
  }
}

void Progress::event(const OrderedJson& record) {
  CHECK(record.contains("type") && record.contains("step"), "an event needs type and step: {}",
        record.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
  if (!open_ && !options_.files_later && !options_.event) return;
  OrderedJson whole = {{"schema", schema_version}, {"type", record["type"]}, {"time", iso_time(options_.now())}};
  for (const auto& [key, value] : record.items()) whole[key] = value;
  const std::string text = whole.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
  if (options_.event) options_.event(std::string_view(text).substr(0, text.size() - 1));
  const bool resumes = record["type"] == "start" && record["step"] > 0;
  if (resumes || record.contains("back_to"))
    append_scalars(tensorboard_restart(seconds_since_1970(options_.now()), record[resumes ? "step" : "back_to"].get<int64_t>() + 1));
  if (open_)
    append_or_lose(events_, options_.directory + "/events.jsonl", text);
  else if (options_.files_later)
    early_events_ += text;
}

void Progress::failure(int64_t step, const std::string& error, double seconds) noexcept {
  try {
    event({{"type", "stop"}, {"step", step}, {"reason", "error: " + error}, {"seconds", seconds}});
  } catch (const std::exception&) {  // often for the same reason
  }
}

}  // namespace starling
