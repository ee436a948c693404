// Configurations of other programs as ones of ours: `starling train --from-marian`, `--from-opennmt`.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace starling {

struct Conversion {
  std::vector<std::pair<std::string, std::string>> keys;  // of ours, "train.seed", and their values as text
  // A line each for people: what is approximate, what has no counterpart, and what is not needed here.
  std::vector<std::string> approximate, missing, not_needed;
  std::string file;                          // the last one
  std::map<std::string, std::string> names;  // by key: the option of the file that has its value
};
// Returns use(), which reads the keys; where it throws ConfigError about one of them, the message names the file's option.
std::string with_names_of_file(const Conversion& conversion, const std::function<std::string()>& use);

struct PeerFile {
  std::string text, name;  // of YAML; its name in messages, beside which relative paths are
};

// Convert files, of which later ones win. `given`: keys of ours that the user gives besides. Throw ConfigError if one is not a map, or has
// a value that is not of its option's kind, DataError for what is not YAML or has aliases.
Conversion convert_marian(const std::vector<PeerFile>& files, const std::set<std::string>& given = {});
Conversion convert_opennmt(const std::vector<PeerFile>& files);

// The options of a file, each of which is taken once, and what is made of them.
class PeerOptions {
 public:
  // peer: the letter of PeerName::peers.
  PeerOptions(const std::vector<PeerFile>& files, char peer);

  // Sets an option that no file gives, as one that an alias stands for; it needs no remark.
  void imply(const std::string& name, const std::vector<std::string>& value);

  // Return the value, or nothing if the option is not there; it counts as taken then. A list's first value counts as a scalar's.
  std::optional<std::string> text(const std::string& name);
  std::vector<std::string> list(const std::string& name);
  std::optional<double> number(const std::string& name);
  bool flag(const std::string& name);
  bool has(const std::string& name) const { return values_.contains(name); }
  // Takes options whose value is of no interest.
  void take(std::initializer_list<const char*> names);
  // The options that begin with a prefix, which is cut off: those of a map, "data/corpus_1/path_src".
  std::vector<std::string> names_below(const std::string& prefix) const;

  void set(const std::string& key, const std::string& value) { result_.keys.emplace_back(key, value); }
  void set(const std::string& key, double value);
  // Sets a key whose value is a whole number.
  void set_count(const std::string& key, double value);
  // Sets a key to an option's value, if that is there.
  void copy(const std::string& name, const std::string& key);
  void approximate(const std::string& line) { add(result_.approximate, line); }
  void missing(const std::string& line) { add(result_.missing, line); }
  void not_needed(const std::string& line) { add(result_.not_needed, line); }

  // Returns the result, with a note for each option that has not been taken, but for those at the program's own default.
  Conversion done();

 private:
  // Adds a remark as one line of a comment, whatever names and values of the file are in it.
  static void add(std::vector<std::string>& remarks, std::string_view line);
  void remark(const std::string& name, const std::vector<std::string>& values);

  std::string file_;  // the last one
  char peer_;
  std::map<std::string, std::vector<std::string>> values_;  // lists by value; maps by "outer/inner"
  std::map<std::string, bool> taken_;
  std::set<std::string> implied_;
  Conversion result_;
};

}  // namespace starling
