// The hash that other tests rely on to see that nothing was changed.
#include "tests/cli/directory_hash.h"

#include "tests/cli/program.h"

namespace starling {
namespace {

using DirectoryHash = ProgramTest;

TEST_F(DirectoryHash, SeesNamesTypesContentsAndLinks) {
  namespace fs = std::filesystem;
  EXPECT_EQ(directory_hash(path("nowhere")), "missing");
  fs::create_directories(path("run/best"));
  write("run/best/a", "x");
  write("run/b", "y");
  fs::create_symlink("b", path("run/link"));
  const auto hash = [&] { return directory_hash(path("run")); };
  const std::string before = hash();
  EXPECT_EQ(hash(), before);
  write("run/b", "y");  // written again with the same content
  EXPECT_EQ(hash(), before);
  const auto changed = [&](const auto& change, const auto& undo) {
    change();
    EXPECT_NE(hash(), before);
    undo();
    EXPECT_EQ(hash(), before);
  };
  changed([&] { write("run/b", "z"); }, [&] { write("run/b", "y"); });
  changed([&] { write("run/best/new", ""); }, [&] { fs::remove(path("run/best/new")); });
  changed([&] { fs::create_directory(path("run/empty")); }, [&] { fs::remove(path("run/empty")); });
  changed([&] { fs::rename(path("run/best/a"), path("run/a")); }, [&] { fs::rename(path("run/a"), path("run/best/a")); });
  changed([&] { fs::remove(path("run/link")), fs::create_symlink("best", path("run/link")); },
          [&] { fs::remove(path("run/link")), fs::create_symlink("b", path("run/link")); });
  changed([&] { fs::remove(path("run/b")), fs::create_directory(path("run/b")); }, [&] { fs::remove(path("run/b")), write("run/b", "y"); });
}

}  // namespace
}  // namespace starling
