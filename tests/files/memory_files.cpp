// A directory keeps the list of its states since the last sync_directory; a crash picks one of them. So changes within one directory
// survive in order, and a rename is never half there, as on a journaling file system; between directories nothing is promised.
#include "tests/files/memory_files.h"

#include <algorithm>
#include <cerrno>

namespace starling {

struct MemoryFileSystem::Node {
  bool directory = false;
  std::string data, synced_data;  // a file's content: as seen, and as on the disk
  Names names;                    // a directory's entries as seen
  std::vector<Names> history{1};  // front: as on the disk; then the state after each change since
  void changed() { history.push_back(names); }
};

class MemoryFileSystem::Output final : public OutputFile {
 public:
  Output(MemoryFileSystem& owner, NodePtr node, std::string path, uint64_t expected)
      : owner_(owner), node_(std::move(node)), path_(std::move(path)), expected_(expected) {}

  void write(std::span<const std::byte> bytes) override {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (owner_.hit(path_, Does::writes)) {
      node_->data += text.substr(0, text.size() / 2);
      if (owner_.plan_.fault == Fault::crash) throw SimulatedCrash{};
      throw detail::write_error(path_, EIO, node_->data.size(), expected_);
    }
    const int64_t capacity = owner_.plan_.capacity_bytes;
    const int64_t used = capacity < 0 ? 0 : static_cast<int64_t>(owner_.used_bytes(*owner_.root_));
    if (capacity >= 0 && used + static_cast<int64_t>(text.size()) > capacity) {
      node_->data += text.substr(0, static_cast<size_t>(std::max<int64_t>(0, capacity - used)));
      throw detail::write_error(path_, ENOSPC, node_->data.size(), std::max<uint64_t>(expected_, node_->data.size()));
    }
    node_->data += text;
  }
  void sync() override {
    owner_.hit(path_, Does::changes);
    node_->synced_data = node_->data;
  }
  void close() override { owner_.hit(path_, Does::reads); }  // changes nothing that is stored

 private:
  MemoryFileSystem& owner_;
  NodePtr node_;
  std::string path_;
  uint64_t expected_;
};

namespace {

class MemoryMapping final : public MappedFile {
 public:
  explicit MemoryMapping(std::string data) : data_(std::move(data)) {}
  std::span<const std::byte> bytes() const override { return std::as_bytes(std::span(data_)); }

 private:
  std::string data_;
};

}  // namespace

MemoryFileSystem::MemoryFileSystem() : root_(std::make_shared<Node>()) { root_->directory = true; }
MemoryFileSystem::~MemoryFileSystem() = default;

void MemoryFileSystem::set_faults(const FaultPlan& plan) {
  plan_ = plan;
  random_ = Random(plan.seed, 0);
  operations_ = 0;
  changes_.clear();
}

// Counts an operation and makes it fail if the plan says so. True: it is a write that must do half of its work first.
bool MemoryFileSystem::hit(const std::string& path, Does what) {
  if (crashed_) throw SimulatedCrash{};
  const int64_t operation = ++operations_;
  if (what != Does::reads) changes_.push_back(operation);
  if (operation != plan_.at) return false;
  crashed_ = plan_.fault == Fault::crash;
  if (what == Does::writes && plan_.fault != Fault::io_error) return true;
  if (crashed_) throw SimulatedCrash{};
  throw IoError(fmt::format("{}: operation {} fails as planned", path, operation));
}

void MemoryFileSystem::reboot() {
  forget(*root_);
  restart_program();
}

void MemoryFileSystem::restart_program() {
  crashed_ = false;
  set_faults({});
}

void MemoryFileSystem::forget(Node& node) {
  size_t state = node.history.size() - 1;
  if (plan_.surviving == Surviving::synced_only) state = 0;
  if (plan_.surviving == Surviving::random) state = random_.below(node.history.size());
  node.names = node.history[state];
  node.history = {node.names};
  if (plan_.surviving == Surviving::synced_only) node.data = node.synced_data;
  if (plan_.surviving == Surviving::names_only && node.data != node.synced_data) node.data.assign(node.data.size(), '\0');
  if (plan_.surviving == Surviving::random && node.data != node.synced_data) {
    node.data = random_.below(2) == 0 ? node.synced_data : node.data.substr(0, random_.below(node.data.size() + 1));
  }
  node.synced_data = node.data;
  for (auto& [name, child] : node.names) forget(*child);
}

MemoryFileSystem::NodePtr MemoryFileSystem::find(const std::string& path) const {
  NodePtr node = root_;
  for (size_t at = 0; at < path.size() && node;) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string name = path.substr(at, end - at);
    at = end + 1;
    if (name.empty() || name == ".") continue;
    const auto found = node->names.find(name);
    node = found == node->names.end() ? nullptr : found->second;
  }
  return node;
}

MemoryFileSystem::NodePtr MemoryFileSystem::find_file(const std::string& path) const {
  const NodePtr node = find(path);
  if (!node || node->directory) throw IoError(fmt::format("{}: cannot open the file: {}", path, node ? "is a directory" : "no such file"));
  return node;
}

MemoryFileSystem::Node& MemoryFileSystem::parent_of(const std::string& path) const {
  const NodePtr parent = find(parent_path(path));
  if (!parent || !parent->directory) throw IoError(fmt::format("{}: there is no such directory", parent_path(path)));
  return *parent;
}

uint64_t MemoryFileSystem::used_bytes(const Node& node) const {
  uint64_t sum = node.data.size();
  for (const auto& [name, child] : node.names) sum += used_bytes(*child);
  return sum;
}

std::unique_ptr<OutputFile> MemoryFileSystem::create(const std::string& path, uint64_t expected_bytes) {
  hit(path, Does::changes);
  Node& parent = parent_of(path);
  NodePtr& node = parent.names[file_name(path)];
  if (node && node->directory) throw IoError(fmt::format("{}: cannot create the file: is a directory", path));
  if (!node) {
    node = std::make_shared<Node>();
    parent.changed();
  }
  node->data.clear();
  return std::make_unique<Output>(*this, node, path, expected_bytes);
}

void MemoryFileSystem::read_pieces(const std::string& path, const std::function<void(std::span<const std::byte>)>& take) {
  hit(path, Does::reads);
  const NodePtr node = find_file(path);
  if (!node->data.empty()) take(std::as_bytes(std::span(node->data)));
}

std::unique_ptr<MappedFile> MemoryFileSystem::map(const std::string& path) {
  hit(path, Does::reads);
  return std::make_unique<MemoryMapping>(find_file(path)->data);
}

void MemoryFileSystem::rename(const std::string& from, const std::string& to) {
  hit(from, Does::changes);
  const NodePtr node = find(from), target = find(to);
  if (!node) throw IoError(fmt::format("{}: cannot rename it: no such file", from));
  if (target && (target->directory != node->directory || !target->names.empty())) {
    throw IoError(fmt::format("{}: cannot rename it to {}: there is one already", from, to));
  }
  Node &source_parent = parent_of(from), &target_parent = parent_of(to);
  source_parent.names.erase(file_name(from));
  target_parent.names[file_name(to)] = node;
  source_parent.changed();
  if (&source_parent != &target_parent) target_parent.changed();
}

bool MemoryFileSystem::exchange(const std::string& a, const std::string& b) {
  hit(a, Does::changes);
  if (!plan_.can_exchange) return false;
  Node &parent_a = parent_of(a), &parent_b = parent_of(b);
  if (!find(a) || !find(b)) throw IoError(fmt::format("{}: cannot exchange it with {}: one is missing", a, b));
  std::swap(parent_a.names[file_name(a)], parent_b.names[file_name(b)]);
  parent_a.changed();
  if (&parent_a != &parent_b) parent_b.changed();
  return true;
}

bool MemoryFileSystem::remove(const std::string& path) {
  hit(path, Does::changes);
  const NodePtr node = find(path);
  if (!node) return true;
  if (!node->names.empty()) return false;
  Node& parent = parent_of(path);
  parent.names.erase(file_name(path));
  parent.changed();
  return true;
}

bool MemoryFileSystem::make_directory(const std::string& path) {
  hit(path, Does::changes);
  Node& parent = parent_of(path);
  NodePtr& node = parent.names[file_name(path)];
  if (node && !node->directory) throw IoError(fmt::format("{}: a directory is needed here, but a file is in the way; move it", path));
  if (node) return false;
  node = std::make_shared<Node>();
  node->directory = true;
  parent.changed();
  return true;
}

void MemoryFileSystem::sync_directory(const std::string& path) {
  hit(path, Does::changes);
  const NodePtr node = find(path);
  if (!node || !node->directory) throw IoError(fmt::format("{}: cannot open the directory: no such directory", path));
  node->history = {node->names};
}

std::vector<std::string> MemoryFileSystem::list(const std::string& path) {
  hit(path, Does::reads);
  const NodePtr node = find(path);
  if (!node || !node->directory) throw IoError(fmt::format("{}: cannot list the directory: no such directory", path));
  std::vector<std::string> names;
  for (const auto& [name, child] : node->names) names.push_back(name);
  return names;
}

FileInfo MemoryFileSystem::info(const std::string& path) {
  hit(path, Does::reads);
  const NodePtr node = find(path);
  if (!node) return {};
  return {node->directory ? FileKind::directory : FileKind::file, node->data.size()};
}

}  // namespace starling
