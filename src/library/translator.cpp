#include "starling/translator.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "backend/device_choice.h"
#include "base/resource_error.h"
#include "batching/search_budget.h"
#include "decode/framing.h"
#include "interop/usable_model.h"
#include "library/describe.h"
#include "library/guarded.h"
#include "library/impl.h"

namespace starling {
namespace {

constexpr size_t kSplitAtOnce = 256 << 10;  // bytes of a text, between looking whether the caller gives up

LoadedModel loaded_model(const std::string& path, const v0::TranslatorOptions& o) {
  for (const auto& [name, value, least, most] :
       {std::tuple{"threads", o.threads, 0, 4096}, {"max_source_tokens", o.max_source_tokens, 1, 1000000}, {"rows", o.rows, 1, 100000}})
    if (value < least || value > most)
      throw ConfigError(fmt::format("{}: {} is not allowed; it must lie between {} and {}", name, value, least, most));
  for (const std::string& text : {path, o.device, o.precision})
    if (text.find('\0') != std::string::npos)
      throw ConfigError(fmt::format("'{}\\0...' has a NUL character; leave it out", text.substr(0, std::min<size_t>(text.find('\0'), 60))));
  const auto files = real_file_system();
  const auto say = [&](const std::string& line) {
    if (o.log) o.log(line);
  };
  return load_model(*files, usable_model(*files, path, say), DeviceChoice{o.precision, o.threads, o.device});
}

// Nobody is refused: callers of a library decide themselves how much they ask for.
SchedulerLimits unlimited(int64_t rows) {
  return {.queue_sentences = std::numeric_limits<int64_t>::max(),
          .wait_seconds = std::numeric_limits<double>::infinity(),
          .rows = rows,
          .cache_bytes = 0};
}

std::vector<std::string> tokens_of(const Vocabulary& vocabulary, std::string_view sentence, const std::function<bool()>& stop) {
  Stopping stopping(stop);
  std::vector<std::string> tokens;
  if (const int32_t tag = vocabulary.take_tag(sentence); tag >= 0) tokens.push_back(vocabulary.token(tag));
  while (!sentence.empty()) {
    const size_t first = first_bytes(sentence, kSplitAtOnce);
    for (const int32_t id : vocabulary.encode(sentence.substr(0, first))) tokens.push_back(vocabulary.token(id));
    sentence.remove_prefix(first);
    stopping.poll();
  }
  return tokens;
}

}  // namespace

v0::Translator::Impl::Impl(const std::string& path, const TranslatorOptions& o)
    : process_(getpid()),
      loaded_(loaded_model(path, o)),
      device_(resolve({o.precision, o.threads, o.device}, loaded_.description.quantized).device),
      info_(info_of(loaded_.description)),
      usual_(with_prefixes(loaded_.description.search, loaded_.description.vocabularies)),
      most_tokens_(
          std::min<int64_t>(o.max_source_tokens, longest_sentence(loaded_.description.config) - 1 - std::ssize(usual_.source_prefix_ids))),
      scheduler_(
          unlimited(fit_search_budget(loaded_.description, *loaded_.backend, {o.rows, most_tokens_, usual_, usual_}, usable_memory()).rows),
          events_),
      requests_(scheduler_),
      workers_(loaded_, scheduler_, events_, 0) {
  require_room(usual_, loaded_.description.config);
}

bool v0::Translator::Impl::in_its_process() const { return process_ == getpid(); }

v0::Translator::Translator(const std::string& model, const TranslatorOptions& options)
    : impl_(guarded([&] { return std::make_unique<Impl>(model, options); })) {}
v0::Translator::~Translator() {
  // In a forked process there are no threads to end, and locks may be held by threads that are not there.
  if (impl_ && !impl_->in_its_process()) (void)impl_.release();
}
v0::Translator::Translator(Translator&&) noexcept = default;
v0::Translator& v0::Translator::operator=(Translator&& other) noexcept {
  Translator old(std::move(*this));
  impl_ = std::move(other.impl_);
  return *this;
}

v0::Translator::Impl& v0::Translator::here() const {
  if (!impl_) throw Error(ErrorKind::usage, "this translator has been moved from; use the one that it was moved to");
  if (!impl_->in_its_process()) throw Error(ErrorKind::usage, "this translator was opened before the process forked; open one here");
  return *impl_;
}

std::vector<v0::Translation> v0::Translator::translate(const std::vector<std::string>& sentences, const TranslateOptions& options) const {
  return guarded([&] { return here().translate(sentences, options, SentenceForm::text); });
}

std::string v0::Translator::translate(const std::string& sentence, const TranslateOptions& options) const {
  return translate(std::vector<std::string>{sentence}, options).front().text();
}

std::vector<v0::Translation> v0::Translator::translate_tokens(const std::vector<std::vector<std::string>>& sentences,
                                                              const TranslateOptions& options) const {
  return guarded([&] { return here().translate(joined(sentences), options, SentenceForm::pieces); });
}

std::future<std::vector<v0::Translation>> v0::Translator::translate_tokens_async(const std::vector<std::vector<std::string>>& sentences,
                                                                                 const TranslateOptions& options) const {
  return guarded([&] { return here().submit(joined(sentences), options, SentenceForm::pieces, nullptr); });
}

std::future<std::vector<v0::Translation>> v0::Translator::translate_async(std::vector<std::string> sentences,
                                                                          const TranslateOptions& options) const {
  return guarded([&] { return here().submit(std::move(sentences), options, SentenceForm::text, nullptr); });
}

std::int64_t v0::Translator::translate_async(std::vector<std::string> sentences, const TranslateOptions& options,
                                             std::function<void(std::vector<Translation>, std::exception_ptr)> done) const {
  return guarded([&] { return here().submit(std::move(sentences), options, SentenceForm::text, std::move(done)); });
}

std::int64_t v0::Translator::translate_tokens_async(const std::vector<std::vector<std::string>>& sentences, const TranslateOptions& options,
                                                    std::function<void(std::vector<Translation>, std::exception_ptr)> done) const {
  return guarded([&] { return here().submit(joined(sentences), options, SentenceForm::pieces, std::move(done)); });
}

void v0::Translator::cancel(std::int64_t number) const {
  guarded([&] { here().cancel(number); });
}

void v0::Translator::cancel() const {
  guarded([&] { here().cancel_all(); });
}

std::string v0::Translator::translate_document(const std::string& text, Format format, const TranslateOptions& options) const {
  return guarded([&] { return here().translate_document(text, format, options); });
}

std::vector<v0::Score> v0::Translator::score(const std::vector<std::string>& sources, const std::vector<std::string>& targets,
                                             const TranslateOptions& options) const {
  return guarded([&] { return here().score(sources, targets, options, SentenceForm::text); });
}

std::vector<v0::Score> v0::Translator::score_tokens(const std::vector<std::vector<std::string>>& sources,
                                                    const std::vector<std::vector<std::string>>& targets,
                                                    const TranslateOptions& options) const {
  return guarded([&] { return here().score(joined(sources), joined(targets), options, SentenceForm::pieces); });
}

std::vector<std::string> v0::Translator::source_tokens(const std::string& sentence, const std::function<bool()>& stop) const {
  return guarded([&] { return tokens_of(here().vocabularies().source(), sentence, stop); });
}

std::vector<std::string> v0::Translator::target_tokens(const std::string& sentence, const std::function<bool()>& stop) const {
  return guarded([&] { return tokens_of(here().vocabularies().target(), sentence, stop); });
}

std::string v0::Translator::join_target_tokens(const std::vector<std::string>& tokens) const {
  return guarded([&] {
    const Vocabulary& target = here().vocabularies().target();
    std::vector<int32_t> ids;
    for (const std::string& token : tokens) {
      const int32_t id = target.token_id(token);
      ids.push_back(id < 0 ? target.unk() : id);
    }
    return target.decode(ids);
  });
}

std::vector<std::string> v0::Translator::known_target_tokens(const std::vector<std::string>& tokens) const {
  return guarded([&] {
    const Vocabulary& target = here().vocabularies().target();
    std::vector<std::string> known;
    for (const std::string& token : tokens) known.push_back(target.token_id(token) < 0 ? target.token(target.unk()) : token);
    return known;
  });
}

const v0::ModelInfo& v0::Translator::model() const { return here().info(); }
std::string v0::Translator::machine() const { return machine_text(*here().loaded().backend, here().loaded().precision == "int8"); }
std::string v0::Translator::device() const { return here().device(); }
std::string v0::Translator::precision() const { return here().loaded().precision; }
std::size_t v0::Translator::under_way() const { return here().under_way(); }

int v0::card_count() { return starling::card_count(); }

}  // namespace starling
