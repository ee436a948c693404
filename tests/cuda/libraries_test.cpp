// Where NVIDIA's libraries are looked for.
#include "backend/cuda/libraries.h"

#include <gtest/gtest.h>

namespace starling::STARLING_CUDA {
namespace {

namespace fs = std::filesystem;

class NvidiaFolders : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(root_); }
  void TearDown() override { fs::remove_all(root_); }
  std::string make(const char* folder) {
    fs::create_directories(root_ / folder);
    return (root_ / folder).string();
  }
  // The folders below the test's own, without its name.
  std::vector<std::string> found(std::map<std::string, std::string> variables) {
    std::vector<std::string> names;
    const auto folders = nvidia_folders([&](const char* name) {
      const auto at = variables.find(name);
      return at == variables.end() ? nullptr : at->second.c_str();
    });
    for (const fs::path& folder : folders)
      if (folder.string().starts_with(root_.string() + "/")) names.push_back(folder.string().substr(root_.string().size() + 1));
    return names;
  }
  const fs::path root_ = fs::path(testing::TempDir()) / fmt::format("nvidia-{}", getpid());
};

TEST_F(NvidiaFolders, TheToolkitsComeBeforePythonsPackages) {
  const std::string venv = make("venv"), cuda = make("cuda-13"), home = make("home");
  make("venv/lib/python3.11/site-packages/nvidia/cu13/lib"), make("venv/lib/python3.11/site-packages/nvidia/nccl/lib");
  make("venv/lib/python3.11/site-packages/nvidia/cudnn");  // without lib
  make("home/.local/lib/python3.9/site-packages/nvidia/cublas/lib");
  make("cuda-13/lib64"), make("cuda-13/targets/x86_64-linux/lib");
  EXPECT_EQ(found({{"VIRTUAL_ENV", venv}, {"HOME", home}, {"CUDA_HOME", cuda}}),
            (std::vector<std::string>{
                "cuda-13/lib64", "cuda-13/targets/x86_64-linux/lib", "venv/lib/python3.11/site-packages/nvidia/nccl/lib",
                "venv/lib/python3.11/site-packages/nvidia/cu13/lib", "home/.local/lib/python3.9/site-packages/nvidia/cublas/lib"}));
}

// The packages of the python3 that the shell would start, also where that is a link to the one of a version.
TEST_F(NvidiaFolders, ThePythonOfThePathIsAsked) {
  make("tools"), make("python/bin"), make("python/lib/python3.12/site-packages/nvidia/cublas/lib");
  std::ofstream(root_ / "python/bin/python3.12") << "";
  fs::create_symlink(root_ / "python/bin/python3.12", root_ / "tools/python3");
  EXPECT_EQ(found({{"PATH", "/nowhere:" + (root_ / "tools").string()}}),
            (std::vector<std::string>{"python/lib/python3.12/site-packages/nvidia/cublas/lib"}));
  EXPECT_EQ(found({}), (std::vector<std::string>{}));
}

TEST(NvidiaLibrary, IsOpenedOnce) {
  const SharedLibrary& none = nvidia_library("libnothing-of-nvidia.so.1");
  EXPECT_FALSE(none.is_open());
  EXPECT_EQ(&none, &nvidia_library("libnothing-of-nvidia.so.1"));
}

}  // namespace
}  // namespace starling::STARLING_CUDA
