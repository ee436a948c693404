// What reading a file from a stranger may take besides its own bytes. Unpacking, parsing and making tables charge the same budget before
// they take memory, so that a small file cannot make the program take much: docs/guides/import.md, "Damaged and hostile files".
#pragma once

#include <cstdint>
#include <string>

namespace starling {

class ByteBudget {
 public:
  static constexpr uint64_t kSpare = uint64_t{48} << 20;  // bytes that any file may take, however small

  // Allows as many bytes as were read, and kSpare.
  explicit ByteBudget(uint64_t read = 0) : allowed_(kSpare + read) {}

  // Allows more, for bytes that were read.
  void allow(uint64_t bytes) { allowed_ += bytes; }
  // Charges bytes that are about to be taken. Throws DataError, which says that `what` of the file `where` is too large, beyond what is
  // allowed.
  void take(uint64_t bytes, const std::string& where, const char* what) {
    if (bytes > allowed_ - taken_) refuse(bytes, where, what);
    taken_ += bytes;
  }
  void give_back(uint64_t bytes) { taken_ -= bytes; }
  uint64_t taken() const { return taken_; }
  uint64_t left() const { return allowed_ - taken_; }

 private:
  [[noreturn]] void refuse(uint64_t bytes, const std::string& where, const char* what) const;
  uint64_t allowed_, taken_ = 0;
};

// Gives back, at its end, what was charged in its life.
class BudgetScope {
 public:
  explicit BudgetScope(ByteBudget& budget) : budget_(budget), before_(budget.taken()) {}
  ~BudgetScope() { budget_.give_back(budget_.taken() - before_); }
  BudgetScope(const BudgetScope&) = delete;
  BudgetScope& operator=(const BudgetScope&) = delete;

 private:
  ByteBudget& budget_;
  uint64_t before_;
};

}  // namespace starling
