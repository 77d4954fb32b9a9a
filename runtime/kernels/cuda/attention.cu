// Attention of one row's query head over the paged cache.
//
// Keys go in splits of 256, each with its own maximum and sum; splits are joined
// in ascending order with the running maximum. The order of every sum depends
// on the head's width and the row's position alone.
#include "abi.cuh"
#include "reduce.cuh"

constexpr int THREADS = 128;
constexpr int SPLIT_KEYS = 256;
constexpr int KEY_LANES = 8; // lanes that share a key
static_assert(SPLIT_KEYS % PAGE_TOKENS == 0, "a page lies in one split");

// A slot's keys or values of one kv head.
struct Pages {
    const float *data;
    const int *pages; // of the slot
    int kv_heads, head, dim;

    __device__ const float *at(int position) const {
        return data + cache_offset(pages[position / PAGE_TOKENS], kv_heads, head, position, dim);
    }
};

// A lane's part of a key's product: of every 32 values the four from 4*lane on,
// where rows begin at multiples of 16 bytes, else of every 8 the one.
__device__ inline float partial_dot(const float *query, const float *key, int dim, int lane) {
    float sum = 0;
    if (dim % 4 == 0) {
#pragma unroll 4
        for (int c = 4 * lane; c < dim; c += 4 * KEY_LANES) {
            float4 a = *reinterpret_cast<const float4 *>(query + c), b = *reinterpret_cast<const float4 *>(key + c);
            sum = fmaf(a.x, b.x, fmaf(a.y, b.y, fmaf(a.z, b.z, fmaf(a.w, b.w, sum))));
        }
        return sum;
    }
    for (int c = lane; c < dim; c += KEY_LANES) {
        sum = fmaf(query[c], key[c], sum);
    }
    return sum;
}

// scores[i] = factor * query * key first+i for i < count, eight lanes a key.
__device__ inline void score(float *scores, const float *query, const Pages &keys, int first, int count,
                             float factor) {
    int lane = threadIdx.x % KEY_LANES;
    // Every lane takes part in the exchange; those beyond count read the last key.
    for (int base = 0; base < count; base += THREADS / KEY_LANES) {
        int i = base + threadIdx.x / KEY_LANES;
        float sum = partial_dot(query, keys.at(first + min(i, count - 1)), keys.dim, lane);
        sum = warp_reduce<KEY_LANES>(sum, Add());
        if (lane == 0 && i < count) {
            scores[i] = factor * sum;
        }
    }
}

// The sum of weights[i] * value first+i of one column, in ascending order; first
// is at the start of a page.
__device__ inline float weigh(const float *weights, const Pages &values, int first, int count, int column) {
    float sum = 0;
    for (int base = 0; base < count; base += PAGE_TOKENS) {
        const float *page = values.at(first + base) + column;
        int tokens = min(PAGE_TOKENS, count - base);
#pragma unroll 8
        for (int t = 0; t < tokens; t++) {
            sum = fmaf(weights[base + t], page[static_cast<size_t>(t) * values.dim], sum);
        }
    }
    return sum;
}

// dst = softmax(q k / sqrt(dim)) v over positions 0 to the row's own, head h
// reading kv head h / (query_heads / kv_heads); where gated, times sigmoid of
// the dim values behind the query.
// Grid (rows, query_heads), block 128, shared 256 + 2*dim floats at least: a
// split's scores, the query, the outputs.
extern "C" __global__ void __launch_bounds__(THREADS, 8)
attention(float *dst, int dst_stride, const float *q, int q_stride, const float *keys, const float *values,
          int query_heads, int kv_heads, int dim, int q_step, int gated, const int *slot, const int *position,
          const int *pages, int pages_per_slot, const int *counts) {
    extern __shared__ float4 shared[];
    int row = blockIdx.x, head = blockIdx.y;
    if (row >= counts[ROWS]) {
        return;
    }
    float *scores = reinterpret_cast<float *>(shared), *query = scores + SPLIT_KEYS, *out = query + dim;
    const float *q_head = q + static_cast<size_t>(row) * q_stride + static_cast<size_t>(head) * q_step;
    for (int c = threadIdx.x; c < dim; c += THREADS) { // a thread has the same columns throughout
        query[c] = q_head[c];
        out[c] = 0;
    }
    const int *own = pages + static_cast<size_t>(slot[row]) * pages_per_slot;
    int kv = head / (query_heads / kv_heads);
    Pages all_keys = {keys, own, kv_heads, kv, dim}, all_values = {values, own, kv_heads, kv, dim};
    float factor = static_cast<float>(rsqrt(static_cast<double>(dim)));
    float maximum = -INFINITY, sum = 0;
    int length = position[row] + 1;
    __syncthreads(); // the query is complete
    for (int first = 0; first < length; first += SPLIT_KEYS) {
        int count = min(SPLIT_KEYS, length - first);
        score(scores, query, all_keys, first, count, factor);
        __syncthreads();
        float top = -INFINITY;
        for (int i = threadIdx.x; i < count; i += THREADS) {
            top = fmaxf(top, scores[i]);
        }
        top = block_reduce<THREADS>(top, Largest());
        float weights = 0;
        for (int i = threadIdx.x; i < count; i += THREADS) {
            scores[i] = expf(scores[i] - top);
            weights += scores[i];
        }
        weights = block_reduce<THREADS>(weights, Add()); // a barrier: the weights are complete
        float joined = fmaxf(maximum, top);
        float old = expf(maximum - joined), added = expf(top - joined);
        for (int c = threadIdx.x; c < dim; c += THREADS) {
            out[c] = out[c] * old + added * weigh(scores, all_values, first, count, c);
        }
        sum = sum * old + weights * added;
        maximum = joined;
        __syncthreads(); // the scores have been used
    }
    float *result = dst + static_cast<size_t>(row) * dst_stride + static_cast<size_t>(head) * dim;
    float inverse = 1.0f / sum;
    for (int c = threadIdx.x; c < dim; c += THREADS) {
        float x = out[c] * inverse;
        result[c] = gated ? x * sigmoid(q_head[dim + c]) : x;
    }
}
