// The sums of a step as numbers on the wire, and the end of a step that must not change anything.
#pragma once

#include <span>

#include "strategies/worker.h"

namespace starling {

constexpr int kTotals = 13;  // numbers in StepTotals
void write_totals(const StepTotals& totals, std::span<double> numbers);
StepTotals read_totals(std::span<const double> numbers);
StepTotals& operator+=(StepTotals& a, const StepTotals& b);

// The DivergedError of a step whose loss or gradient (`what`) is not finite: names the batch, and what to do.
[[noreturn]] void refuse_step(Worker& worker, const char* what);

}  // namespace starling
