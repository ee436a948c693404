// What the steps of several strategies have in common: sums as numbers on the wire, the norm and the update of one replica, refusing a step
// before it changes anything, and tensors that only take part in timing.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "strategies/strategy.h"
#include "strategies/worker.h"

namespace starling {

void write_sums(const StepSums& sums, std::span<double> numbers);
StepSums read_sums(std::span<const double> numbers);
StepSums& operator+=(StepSums& a, const StepSums& b);

// Throws the DivergedError of a step in which something (`what`: "the loss") is not finite; it names the batch and what to do.
[[noreturn]] void refuse_step(Worker& worker, const std::string& what);

// A tensor [count] in the memory of the worker's backend.
Tensor working_tensor(Worker& worker, int64_t count, DType type);
Tensor view(const Tensor& flat, const Range& range);

// The only element of x, f64; waits. 0 if nothing is computed.
double number(const Tensor& x);
// sum, f64 [1], += the squares of x; charged to the clock.
void add_squares(Worker& worker, const Tensor& x, const Tensor& sum);
double sum_of_squares(Worker& worker, const Tensor& x);
// The norm of a gradient with this sum of squares, divided as the totals say; refuses the step if it is not finite.
double gradient_norm(Worker& worker, double squares, const StepTotals& totals);
// The norm of the whole replica's gradient, on all ranks that have a part of it.
double own_gradient_norm(Worker& worker, const StepTotals& totals);
// The sums of the whole replica, likewise.
StepSums own_sums(Worker& worker);
// Updates the whole replica by its gradient, which is the sum over what `sums` counts; `norm`: of the gradient after division.
StepResult update_replica(Worker& worker, const StepSums& sums, double norm);

// Starts summing x over the ranks in pieces of that many MiB, which travel one after another; with bf16 on the wire if `narrow`.
std::vector<Pending> all_reduce_in_pieces(Communicator& comm, const Tensor& x, double mib, bool narrow);
// x /= n, charged to the clock.
void divide_by(Worker& worker, const Tensor& x, int n);

}  // namespace starling
