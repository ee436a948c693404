// The vocabularies of a run: those of the model that it begins with or goes on from, those of files, or trained from its text. A file
// outside the run may be shared: it appears there only when the start has succeeded, and is never taken back.
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "base/task_progress.h"
#include "decode/model_directory.h"
#include "settings/config.h"

namespace starling {

// The files of the vocabulary, or of the two: named by the configuration, or inside the run directory.
std::vector<std::string> vocabulary_paths(const Config& config);

// The files, all inside the run directory, that open_vocabularies makes: none if the vocabularies are there.
std::vector<std::string> vocabularies_to_train(const Config& config, FileSystem& files);

// The vocabularies of a run; trained, and `say` told so, if their files are missing. ConfigError if a file that is there was made with
// other settings than the configuration says.
Vocabularies open_vocabularies(const Config& config, FileSystem& files, const Say& say);

// Copies of a model's vocabularies for the run. ConfigError if the configuration has other settings, or names other files. `owner` names
// the model in messages.
Vocabularies adopt_vocabularies(const Config& config, FileSystem& files, const Vocabularies& vocabularies, const std::string& owner);

// Writes the vocabularies into those of their files that are missing. ConfigError if another run has made one of them since.
void publish_vocabularies(const Config& config, FileSystem& files, const Vocabularies& vocabularies);

// Sets the settings of section vocab to those that a vocabulary was made with, as far as it says.
void copy_settings(const Vocabulary& vocabulary, VocabConfig& to);
// Of these settings the normalization; `bytes`: of a sound vocabulary.
void copy_normalization(const std::string& bytes, VocabConfig& to);

}  // namespace starling
