// Small models.
#pragma once

#include <string>

namespace starling {

inline const std::string kFixtures = STARLING_SOURCE_DIR "/tests/fixtures/models/";
inline const std::string kModel = kFixtures + "pre/model";
// Another one with the same vocabulary, which translates differently, and one whose translations are empty.
inline const std::string kOtherModel = kFixtures + "gnmt-clip/model", kMuteModel = kFixtures + "post/model";

}  // namespace starling
