// Opens the tokens of a run's text in <run>/data, on every host that its ranks are on. Tokens of another text never replace the run's.
#pragma once

#include <functional>
#include <string>

#include "base/files.h"
#include "comm/world.h"
#include "data/token_store.h"
#include "decode/model_directory.h"

namespace starling {

// Opens the tokens of a text in <run>/data, and makes them if necessary. In a run that has begun, tokens of other files are made in
// <run>/data.new, and replace <run>/data only if `check` does not throw, which it does if they are not the run's. An unfinished data.new
// (full disk, killed process) is kept for the next start, until a text is found to be the run's or is refused.
TokenStore open_run_tokens(FileSystem& files, const std::string& run, const DataOptions& data, const Vocabularies& vocabularies,
                           const StoreBuild& build, bool begun, const std::function<void(const TokenStore&)>& check);

// The same for all ranks together: rank 0 calls `first`; then one rank of every other host that does not see those tokens makes them in its
// own <run>/data; then the others open them. Throws DataError on a rank whose text is not rank 0's. Sets `digest` to that of the data. If
// it fails, what this host has made is removed, unless the next start can use it (PathRollback).
TokenStore open_tokens_together(FileSystem& files, const std::string& run, const DataOptions& data, const Vocabularies& vocabularies,
                                const StoreBuild& build, World& world, const std::function<TokenStore()>& first, std::string& digest);

// Returns a digest that tells training sets apart, whatever their files are called: of the sizes, and the tokens of up to 4,096 pairs
// spread evenly.
std::string data_digest(const TokenStore& store);

}  // namespace starling
