// The tokens of a run's text in <run>/data, on every host that its ranks are on. Those of another text never take the place of the run's.
#pragma once

#include <functional>
#include <string>

#include "base/files.h"
#include "comm/world.h"
#include "data/token_store.h"
#include "decode/model_directory.h"

namespace starling {

// The tokens of a text in <run>/data. Where the run has begun, those of other files are made in <run>/data.new, and take that place when
// `check` does not throw, as it does if they are not the run's: then <run>/data is as it was. What of data.new is not finished, since the
// disk was full or the process was killed, stays for the next start, until a text is found to be the run's or is refused.
TokenStore open_run_tokens(FileSystem& files, const std::string& run, const DataOptions& data, const Vocabularies& vocabularies,
                           const StoreBuild& build, bool begun, const std::function<void(const TokenStore&)>& check);

// The same for all ranks together: rank 0 calls `first`; then one rank of every other host that does not see those tokens makes them in
// its own <run>/data; then the others open them. DataError on a rank whose text is another than rank 0's. `digest` becomes that of the
// data. A failure takes back what this host made.
TokenStore open_tokens_together(FileSystem& files, const std::string& run, const DataOptions& data, const Vocabularies& vocabularies,
                                const StoreBuild& build, World& world, const std::function<TokenStore()>& first, std::string& digest);

// Tells one training set from another, whatever its files are called: sizes, and tokens of up to 4,096 pairs spread evenly.
std::string data_digest(const TokenStore& store);

}  // namespace starling
