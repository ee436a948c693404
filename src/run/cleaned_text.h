// The training text of a configuration that has a section `clean`: cleaned once, into the run's directory.
#pragma once

#include <string>

#include "base/files.h"
#include "cleaning/clean_job.h"
#include "comm/world.h"
#include "settings/config.h"

namespace starling {

// Returns what the configuration asks of `starling clean`.
CleanJob clean_job(const Config& config, const std::string& output);

// Names the cleaned corpora in `directory` in place of the given ones.
void take_cleaned(Config& config, const std::string& directory);

// With clean.before-training, cleans the text into <run>/cleaned, unless it is there already, and names it in the configuration. Each host
// has its own, unless they share the directory. Throws ConfigError if what is there was made of other text or with other options, and for
// keys of the section `clean` without that one.
void clean_together(FileSystem& files, Config& config, World& world, const Say& say, const TaskScreen& screen);

}  // namespace starling
