// The vocabularies of a run: those of its initial model or checkpoint, those of files, or trained from its text. A file outside the run
// directory may be shared with other runs, so it is written only when the start has succeeded, and never removed again.
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "base/task_progress.h"
#include "decode/model_directory.h"
#include "settings/config.h"

namespace starling {

// Returns the path of the vocabulary, or of the two: named by the configuration, or inside the run directory.
std::vector<std::string> vocabulary_paths(const Config& config);

// Returns the files, all inside the run directory, that open_vocabularies will make: none if the vocabularies exist.
std::vector<std::string> vocabularies_to_train(const Config& config, FileSystem& files);

// Opens the vocabularies of a run; trains them, reporting to `say`, if their files are missing. Throws ConfigError if an existing file was
// made with settings other than the configuration's.
Vocabularies open_vocabularies(const Config& config, FileSystem& files, const Say& say);

// Returns copies of a model's vocabularies for the run. Throws ConfigError if the configuration has other settings, or names files of other
// vocabularies. `owner` names the model in messages.
Vocabularies adopt_vocabularies(const Config& config, FileSystem& files, const Vocabularies& vocabularies, const std::string& owner);

// Writes the vocabularies whose files are missing. Throws ConfigError if another run has made a different one in the same place in the
// meantime.
void publish_vocabularies(const Config& config, FileSystem& files, const Vocabularies& vocabularies);

// Sets the settings of section vocab to those that a vocabulary was made with, as far as it records them.
void copy_settings(const Vocabulary& vocabulary, VocabConfig& to);
// The same for the normalization alone; `bytes`: a valid vocabulary.
void copy_normalization(const std::string& bytes, VocabConfig& to);

}  // namespace starling
