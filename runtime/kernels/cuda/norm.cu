// RMS norms: of rows after the residual is added, and of query and key heads
// before they are rotated. y = weight * (x / sqrt(mean(x^2) + epsilon)), the
// mean and the root in double.
#include "abi.cuh"
#include "reduce.cuh"

__device__ inline float inverse_root(float squares, int width, float epsilon) {
    return static_cast<float>(rsqrt(static_cast<double>(squares) / width + static_cast<double>(epsilon)));
}

// If delta: residual += delta. Then dst = norm(residual). dst may be delta.
// Grid (rows), block 256.
extern "C" __global__ void __launch_bounds__(256)
add_norm(float *dst, int dst_stride, float *residual, int residual_stride, const float *delta, int delta_stride,
         const float *weight, int width, float epsilon, const int *counts) {
    int row = blockIdx.x;
    if (row >= counts[ROWS]) {
        return;
    }
    float *x = residual + static_cast<size_t>(row) * residual_stride;
    const float *d = delta ? delta + static_cast<size_t>(row) * delta_stride : nullptr;
    float *out = dst + static_cast<size_t>(row) * dst_stride;
    float squares = 0;
    int whole = width / 4 * 4;
#pragma unroll 2
    for (int c = threadIdx.x * 4; c < whole; c += 1024) {
        float4 a = *reinterpret_cast<float4 *>(x + c);
        if (d) {
            float4 b = *reinterpret_cast<const float4 *>(d + c);
            a = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
            *reinterpret_cast<float4 *>(x + c) = a;
        }
        squares = fmaf(a.x, a.x, fmaf(a.y, a.y, fmaf(a.z, a.z, fmaf(a.w, a.w, squares))));
    }
    int rest = whole + threadIdx.x; // at most three values are left
    if (rest < width) {
        if (d) {
            x[rest] += d[rest];
        }
        squares = fmaf(x[rest], x[rest], squares);
    }
    float inverse = inverse_root(block_reduce<256>(squares, Add()), width, epsilon);
    // Each thread reads back only what it wrote itself.
#pragma unroll 2
    for (int c = threadIdx.x * 4; c < whole; c += 1024) {
        float4 a = *reinterpret_cast<float4 *>(x + c);
        *reinterpret_cast<float4 *>(out + c) =
            make_float4(weight[c] * (a.x * inverse), weight[c + 1] * (a.y * inverse), weight[c + 2] * (a.z * inverse),
                        weight[c + 3] * (a.w * inverse));
    }
    if (rest < width) {
        out[rest] = weight[rest] * (x[rest] * inverse);
    }
}

// dst = norm of dim values of src, the leading 2*half rotated in pairs
// (i, i+half) by the row's cosines and sines. dst may be src: a thread writes
// only values that it alone read, after all have been summed.
__device__ inline void norm_rope(float *dst, const float *src, const float *weight, float epsilon, int dim,
                                 const float *table, int half) {
    float squares = 0;
    for (int c = threadIdx.x; c < dim; c += 128) {
        squares = fmaf(src[c], src[c], squares);
    }
    float inverse = inverse_root(block_reduce<128>(squares, Add()), dim, epsilon);
    for (int i = threadIdx.x; i < half; i += 128) {
        float a = weight[i] * (src[i] * inverse), b = weight[half + i] * (src[half + i] * inverse);
        float cosine = table[i], sine = table[half + i];
        dst[i] = a * cosine - b * sine;
        dst[half + i] = b * cosine + a * sine;
    }
    for (int c = 2 * half + threadIdx.x; c < dim; c += 128) {
        dst[c] = weight[c] * (src[c] * inverse);
    }
}

// Query heads are normed and rotated in place, key heads on their way into the
// cache; values are copied there.
// Grid (rows, query_heads + kv_heads), block 128.
extern "C" __global__ void __launch_bounds__(128)
head_norm_rope(float *q, int q_stride, const float *k, int k_stride, const float *v, int v_stride, float *keys,
               float *values, const float *q_weight, float q_epsilon, const float *k_weight, float k_epsilon,
               const float *table, int table_stride, int half, int query_heads, int kv_heads, int dim, int q_step,
               const int *slot, const int *position, const int *pages, int pages_per_slot, const int *counts) {
    int row = blockIdx.x, head = blockIdx.y;
    if (row >= counts[ROWS]) {
        return;
    }
    const float *angles = table + static_cast<size_t>(row) * table_stride;
    if (head < query_heads) {
        float *x = q + static_cast<size_t>(row) * q_stride + static_cast<size_t>(head) * q_step;
        norm_rope(x, x, q_weight, q_epsilon, dim, angles, half);
        return;
    }
    head -= query_heads;
    int at = position[row];
    int page = pages[static_cast<size_t>(slot[row]) * pages_per_slot + at / PAGE_TOKENS];
    size_t offset = cache_offset(page, kv_heads, head, at, dim);
    const float *value = v + static_cast<size_t>(row) * v_stride + static_cast<size_t>(head) * dim;
    for (int c = threadIdx.x; c < dim; c += 128) {
        values[offset + c] = value[c];
    }
    const float *key = k + static_cast<size_t>(row) * k_stride + static_cast<size_t>(head) * dim;
    norm_rope(keys + offset, key, k_weight, k_epsilon, dim, angles, half);
}
