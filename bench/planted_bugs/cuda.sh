# Likely mistakes in the CUDA backend: which test on emulated cards finds each? (Read by ../planted_bugs.sh.)
target=test_cuda
tests() { STARLING_WHOLE_MATRIX=1 timeout 400 "$copy/build/tests/test_cuda" --gtest_brief=1 --gtest_fail_fast 2>&1; }
cuda=src/backend/cuda
kernels=$cuda/kernels

# name | file | sed expression
bugs=(
  "sizes of a product swapped|$cuda/products.cpp|s/layout(plan->d, p.out, p.m, p.n, p.ldd)/layout(plan->d, p.out, p.n, p.m, p.n)/"
  "a bias of the wrong type|$cuda/cuda.cpp|s/if (!b || type == DType::f32) return at(b);/return at(b);/"
  "a plan used for less aligned addresses|$cuda/products.cpp|s/static_cast<int>(align_[abd])/0/"
  "partial sums in the output's type|$cuda/products.cpp|s/CUBLASLT_REDUCTION_SCHEME_NONE |/CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE |/"
  "a missing barrier|$kernels/device.cuh|0,/  __syncthreads();/s///"
  "an exchange in a divergent branch|$kernels/norm.cu|s/    sum = warp_reduce(sum, Sum{}) \* inverse/    if (lane() < 16) sum = "\
"warp_reduce(sum, Sum{}) * inverse/"
  "a tail out of bounds|$kernels/rows.cu|s/if (t.aligned \&\& begin + kWide <= t.count) {/if (t.aligned \&\& begin < t.count) {/"
  "an output that is not written|$kernels/rows.cu|s/y\[c\] = narrow<T>(0); });/(void)c; });/"
  "an address of the host's|$cuda/rows.cpp|s/{at(tokens), at(positions)/{tokens.data(), at(positions)/"
  "a pinned buffer reused too early|$cuda/device.cpp|s/    check(cudaEventSynchronize(slot.copied), \"the work so far\");//"
  "columns of the mask|$kernels/device.cuh|s/stretch \* kStretch + h \* kStretchThreads + part/stretch * kStretch + h + part * 8/"
  "an event that nobody records|$cuda/device.cpp|s/  check(cudaEventRecord(slot.copied, stream), \"an event\");//"
  "the sentence of a mask|$kernels/device.cuh|s/dropout_words(mask.key, mask.sentence\[n\]/dropout_words(mask.key, "\
"static_cast<uint32_t>(n)/"
  "the head of a mask|$cuda/attention.cpp|s/layout.first_head/0/"
  "a place in 32 bits|$kernels/device.cuh|s/static_cast<int64_t>(blockIdx.x) \* blockDim.x + threadIdx.x/static_cast<int64_t>(blockIdx.x "\
"* blockDim.x + threadIdx.x)/"
  "a grid of no blocks|$kernels/device.cuh|s/  if (blocks == 0) return;//"
  "a kept plan with a workspace that was freed|$cuda/products.cpp|s/  size_t workspace = 0;/& void* kept = nullptr;/; s/plan->workspace = "\
"first.workspaceSize;/& plan->kept = Storage(kWorkspace, device_.memory()).data();/; s/workspace_->data(), plan.workspace/plan.kept, "\
"plan.workspace/"
  "a grid of more blocks than fit|$kernels/device.cuh|s/check(blocks < (int64_t{1} << 31) ?/check(true ?/"
  "shared memory not asked for|$kernels/device.cuh|s/  if (shared > 48 << 10) allow/  if (false) allow/"
  "a sum in no fixed order|$kernels/norm.cu|s/t.parts\[part \* t.columns + first + threadIdx.x\] = all;/atomicAdd(\&t.parts[part * "\
"t.columns + first + threadIdx.x], all);/"
  "scores without their scale|$kernels/attention_tiles.cu|s/limit ? x \* plan.scale/limit ? x/"
  "no barrier between two tiles of keys|$kernels/attention_tiles.cu|s/    if (from > 0) __syncthreads();//"
  "a fragment turned the wrong way|$kernels/tensor_cores.cuh|s/load_tiles<true>(a, x/load_tiles<false>(a, x/"
  "neighbours of a mask swapped|$kernels/attention_tiles.cuh|s/(2 \* (2 \* h + odd) + e)/(2 * (2 * h + odd) + 1 - e)/"
  "a gradient without what the softmax subtracts|$kernels/attention_tiles_backward.cu|s/gradient = x \* (gradient - product);/gradient = "\
"x * gradient;/"
  "the sum of a tile before forgotten|$kernels/attention_tiles_backward.cu|s/          if (k0 > 0) {/          if (k0 > 64) {/"
  "a gradient without the mean of a row|$kernels/norm.cu|s/(g.spans\[s\].at\[i\] - sum - x/(g.spans[s].at[i] - x/"
  "columns beyond the first block|$kernels/norm.cu|s/if (first + threadIdx.x < t.columns) t.parts/if (first == 0 \&\& threadIdx.x < "\
"t.columns) t.parts/"
  "a vote about the wrong columns|$kernels/rows.cu|s/part % 2 \* kWide);/0);/"
  "pieces of a token's sum in one place|$cuda/rows.cpp|s/cut ? parts++ : -1/cut ? parts : -1/"
)
