// What the steps of several strategies have in common: sums as numbers on the wire, the norm and the update of one replica, the end of
// a step that must not change anything, and tensors that take part in timing alone.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "strategies/strategy.h"
#include "strategies/worker.h"

namespace starling {

constexpr int kSums = 15;  // numbers in StepSums
void write_sums(const StepSums& sums, std::span<double> numbers);
StepSums read_sums(std::span<const double> numbers);
StepSums& operator+=(StepSums& a, const StepSums& b);

// The DivergedError of a step in which something (`what`: "the loss") is not finite: names the batch, and what to do.
[[noreturn]] void refuse_step(Worker& worker, const std::string& what);

// [count] in the memory of the worker's backend.
Tensor working_tensor(Worker& worker, int64_t count, DType type);
Tensor view(const Tensor& flat, const Range& range);

// The only element of x, f64; waits. 0 where nothing is computed.
double number(const Tensor& x);
// sum, f64 [1], += the squares of x; charged to the clock.
void add_squares(Worker& worker, const Tensor& x, const Tensor& sum);
double sum_of_squares(Worker& worker, const Tensor& x);
// Norm of a gradient, whose squares add up to that, divided as the totals say; refuses the step if it is not finite.
double gradient_norm(Worker& worker, double squares, const StepTotals& totals);
// Of the gradient of the whole replica, on all ranks that have a part of it.
double own_gradient_norm(Worker& worker, const StepTotals& totals);
// The sums of the whole replica, likewise.
StepSums own_sums(Worker& worker);
// Updates the whole replica by its gradient, the sum over what `sums` says; `norm`: of the gradient divided as they say.
StepResult update_replica(Worker& worker, const StepSums& sums, double norm);

// Starts the sum of x over the ranks in pieces of so many MiB, which travel one behind the other; with bf16 on the wire when `narrow`.
std::vector<Pending> all_reduce_in_pieces(Communicator& comm, const Tensor& x, double mib, bool narrow);
// x /= n, charged to the clock.
void divide_by(Worker& worker, const Tensor& x, int n);

}  // namespace starling
