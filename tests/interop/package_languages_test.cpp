// The languages of packages that are not read yet.
#include "interop/package_languages.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/error.h"
#include "interop/zip.h"
#include "tests/interop/interop_test.h"

namespace starling {
namespace {

class PackageLanguages : public InteropTest {
 protected:
  std::string archive(const std::string& metadata) {
    const std::vector<std::pair<std::string, std::string>> content{{"translate-pb_en/metadata.json", metadata},
                                                                   {"translate-pb_en/model/model.bin", "not read"}};
    files_->write_file(directory_ + "/x.argosmodel", zip_archive(content));
    return directory_ + "/x.argosmodel";
  }
};

TEST_F(PackageLanguages, AreThoseOfItsMetadata) {
  EXPECT_EQ(package_languages(*files_, archive(R"({"from_code": "pb", "to_code": "en"})")), (Languages{"pb", "en"}));
  EXPECT_EQ(package_languages(*files_, archive(R"({"from_code": "pb", "languages": []})")), (Languages{"pb", ""}));
  EXPECT_EQ(package_languages(*files_, archive(R"({"from_code": "p b", "to_code": 5})")), (Languages{}));
  std::filesystem::create_directories(directory_ + "/folder/model");
  EXPECT_EQ(package_languages(*files_, directory_ + "/folder"), (Languages{}));
  files_->write_file(directory_ + "/folder/metadata.json", R"({"from_code": "zt", "to_code": "en"})");
  EXPECT_EQ(package_languages(*files_, directory_ + "/folder"), (Languages{"zt", "en"}));
}

TEST_F(PackageLanguages, AreUnknownForOthers) {
  EXPECT_EQ(package_languages(*files_, STARLING_SOURCE_DIR "/tests/fixtures/models/pre/model"), (Languages{}));
  EXPECT_EQ(package_languages(*files_, directory_ + "/nothing"), (Languages{}));
  EXPECT_THROW(package_languages(*files_, archive("[]")), DataError);
}

}  // namespace
}  // namespace starling
