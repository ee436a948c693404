// Only six functions of MeCab's C interface are used, so they are declared here and its headers are not needed.
#include "metrics/mecab.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "base/error.h"
#include "base/shared_library.h"

namespace starling {

namespace {

// Where Debian and MeCab's own installer put the dictionary.
constexpr const char* kDictionaries[] = {"/var/lib/mecab/dic/ipadic-utf8", "/usr/lib/mecab/dic/ipadic-utf8", "/usr/lib/mecab/dic/ipadic",
                                         "/usr/local/lib/mecab/dic/ipadic"};
// Words of the IPA dictionary of 2007-08-01; Debian's has one more, the name of the era that began in 2019.
constexpr unsigned kWords = 392126;

// mecab_dictionary_info_t, whose layout is part of the library's binary interface.
struct DictionaryInfo {
  const char* filename;
  const char* charset;
  unsigned size;
  int type;
  unsigned left_size, right_size;
  unsigned short version;
  DictionaryInfo* next;
};

struct Tagger;

class Mecab {
 public:
  static std::shared_ptr<Mecab> open(const char* library) {
    auto mecab = std::make_shared<Mecab>();
    mecab->load(library);
    return mecab;
  }
  Mecab() = default;
  Mecab(const Mecab&) = delete;
  Mecab& operator=(const Mecab&) = delete;
  ~Mecab() {
    if (tagger_) destroy_(tagger_);
  }

  const char* version() const { return version_(); }

  std::string split(std::string_view sentence) const {
    const char* words = parse_(tagger_, sentence.data(), sentence.size());
    if (!words) throw DataError(fmt::format("MeCab cannot split a sentence of {} bytes into words: {}", sentence.size(), error_(tagger_)));
    return words;
  }

 private:
  template <typename Function>
  void find(Function*& function, const char* name) {
    function = library_->find<Function>(name);
  }

  [[noreturn]] static void missing(const std::string& why) {
    throw ConfigError(
        fmt::format("tokenizer ja-mecab needs MeCab and its IPA dictionary: {}; install the Debian packages libmecab2 and "
                    "mecab-ipadic-utf8, or choose the tokenizer char",
                    why));
  }

  void load(const char* library) {
    library_.emplace(library);
    try {
      find(new_, "mecab_new2");
      find(destroy_, "mecab_destroy");
      find(parse_, "mecab_sparse_tostr2");
      find(version_, "mecab_version");
      find(info_, "mecab_dictionary_info");
      find(error_, "mecab_strerror");
    } catch (const ConfigError& e) {
      missing(e.what());
    }
    std::string why = "there is no dictionary in " + fmt::format("{}", fmt::join(kDictionaries, ", "));
    for (const char* directory : kDictionaries) {
      // Ignores the machine's mecabrc, which may name user dictionaries.
      tagger_ = new_(fmt::format("-r /dev/null -d {} -Owakati", directory).c_str());
      if (!tagger_) continue;
      const DictionaryInfo& info = *info_(tagger_);
      if ((info.size == kWords || info.size == kWords + 1) && !info.next) return;
      why = fmt::format("{} has {} words instead of {}", directory, info.size, kWords);
      destroy_(tagger_);
      tagger_ = nullptr;
    }
    missing(why);
  }

  std::optional<SharedLibrary> library_;
  Tagger* tagger_ = nullptr;
  Tagger* (*new_)(const char*) = nullptr;
  void (*destroy_)(Tagger*) = nullptr;
  const char* (*parse_)(Tagger*, const char*, size_t) = nullptr;
  const char* (*version_)() = nullptr;
  const char* (*error_)(Tagger*) = nullptr;
  const DictionaryInfo* (*info_)(Tagger*) = nullptr;
};

}  // namespace

BleuTokenizer mecab_tokenizer(const char* library) {
  const std::shared_ptr<Mecab> mecab = Mecab::open(library);
  return {fmt::format("ja-mecab-{}-IPA", mecab->version()), [mecab](std::string_view sentence) { return mecab->split(sentence); }};
}

bool mecab_is_installed() {
  try {
    mecab_tokenizer();
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

}  // namespace starling
