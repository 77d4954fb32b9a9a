// Sums and maxima over a warp or a block, always in the same order, so that a
// result does not depend on when its parts were ready.
#pragma once

struct Add {
    template <typename T> __device__ T operator()(T a, T b) const { return a + b; }
};

// A value that is not a number loses against one that is.
struct Largest {
    template <typename T> __device__ T operator()(T a, T b) const { return max(a, b); }
};

struct Smallest {
    template <typename T> __device__ T operator()(T a, T b) const { return min(a, b); }
};

// Every lane of LANES consecutive ones gets their result. All 32 lanes take part.
template <int LANES = 32, typename T, typename Op> __device__ inline T warp_reduce(T value, Op op) {
#pragma unroll
    for (int distance = LANES / 2; distance > 0; distance /= 2) {
        value = op(value, __shfl_xor_sync(0xFFFFFFFFu, value, distance));
    }
    return value;
}

// Every thread gets the result. All of the block's THREADS threads take part;
// the barriers make earlier accesses to shared and global memory visible too.
template <int THREADS, typename T, typename Op> __device__ inline T block_reduce(T value, Op op) {
    constexpr int warps = THREADS / 32; // a power of two
    __shared__ T parts[warps];
    value = warp_reduce(value, op);
    __syncthreads(); // the parts of the call before have been read
    if (threadIdx.x % 32 == 0) {
        parts[threadIdx.x / 32] = value;
    }
    __syncthreads();
    return warp_reduce<warps>(parts[threadIdx.x % warps], op);
}
