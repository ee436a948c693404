// The models of a translation, loaded, and the translator that they make.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "base/task_progress.h"
#include "storage/outputs.h"
#include "translate/options.h"
#include "translate/shard_ranks.h"

namespace starling {

class TranslationModels {
 public:
  // Loads the models that the options name, this rank's shard of the only one. `say` gets lines about what takes time or is not there.
  // Throws ConfigError for a search that cannot be done.
  TranslationModels(FileSystem& files, const TranslateOptions& options, ShardRanks& shards, const Say& say);

  // Returns a translator of the models, which must outlive it. `processes`: how many translate on this host.
  Translator translator(const TranslateOptions& options, int processes) const;

  const LoadedModel& first() const { return first_; }
  const SearchOptions& search() const { return search_; }
  const Languages& languages() const { return languages_; }  // of sources and translations
  std::vector<NamedPath> directories() const;
  // Returns whether a line, with its prefix, has at most so many tokens for each model.
  bool have_room(std::string_view line, int64_t tokens) const;

 private:
  const LoadedModel first_;
  std::deque<LoadedModel> others_;  // of an ensemble
  std::vector<EnsembleMember> members_;
  SearchOptions search_;
  Languages languages_;
};

}  // namespace starling
