// The vocabularies of a run: those of the model that it begins with or goes on from, those of files, or trained from its text.
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "base/task_progress.h"
#include "decode/model_directory.h"
#include "train/config.h"

namespace starling {

// The files of the vocabulary, or of the two: named by the configuration, or inside the run directory.
std::vector<std::string> vocabulary_paths(const Config& config);

// The vocabularies of a run; trained, and `say` told so, if their files are missing. ConfigError if a file that is there was made with
// other settings than the configuration says.
Vocabularies open_vocabularies(const Config& config, FileSystem& files, const Say& say);

// Makes the vocabularies of a model the run's: writes those that are missing, and refuses (ConfigError) other files and other settings.
// `owner` names the model in messages.
void adopt_vocabularies(const Config& config, FileSystem& files, const Vocabularies& vocabularies, const std::string& owner);

// Sets the settings of section vocab to those that a vocabulary was made with, as far as it says.
void copy_settings(const Vocabulary& vocabulary, VocabConfig& to);

}  // namespace starling
