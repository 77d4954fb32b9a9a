// Operations that move or change rows value by value: embedding, SwiGLU's
// product, selection of rows, and the table of rotary angles.
#include "abi.cuh"

// dst row r = row token[r] of table, scales applied; the token is entered in its
// slot's sequence, which sample reads.
// Grid (rows), block 256.
extern "C" __global__ void __launch_bounds__(256)
embed(float *dst, int stride, const __grid_constant__ Matrix table, const int *token, const int *position,
      const int *slot, int *sequences, int context, const int *counts) {
    int row = blockIdx.x;
    if (row >= counts[ROWS]) {
        return;
    }
    int id = token[row];
    if (threadIdx.x == 0) {
        sequences[static_cast<size_t>(slot[row]) * context + position[row]] = id;
    }
    size_t first = static_cast<size_t>(id) * table.columns, scales = scale_row(table, id);
    float *out = dst + static_cast<size_t>(row) * stride;
#pragma unroll 4
    for (int c = threadIdx.x; c < table.columns; c += 256) {
        float x = element(table.data, table.format, first + c);
        if (table.scales) {
            x *= element(table.scales, table.scale_format, scales + c / table.group_columns);
        }
        out[c] = x;
    }
}

// dst = silu(gate) * up; dst may be gate.
// Grid (rows, width in blocks of 1024), block 256: four values a thread.
extern "C" __global__ void __launch_bounds__(256)
silu_mul(float *dst, int dst_stride, const float *gate, int gate_stride, const float *up, int up_stride, int width,
         const int *counts) {
    int row = blockIdx.x, c = blockIdx.y * 1024 + threadIdx.x * 4;
    if (row >= counts[ROWS] || c >= width) {
        return;
    }
    float *out = dst + static_cast<size_t>(row) * dst_stride + c;
    const float *g = gate + static_cast<size_t>(row) * gate_stride + c;
    const float *u = up + static_cast<size_t>(row) * up_stride + c;
    if (c + 4 > width) {
        for (int i = 0; c + i < width; i++) {
            out[i] = silu(g[i]) * u[i];
        }
        return;
    }
    float4 a = *reinterpret_cast<const float4 *>(g), b = *reinterpret_cast<const float4 *>(u);
    *reinterpret_cast<float4 *>(out) = make_float4(silu(a.x) * b.x, silu(a.y) * b.y, silu(a.z) * b.z, silu(a.w) * b.w);
}

// dst row i = the row of src that draw i names.
// Grid (draws), any block.
extern "C" __global__ void select_rows(float *dst, int dst_stride, const float *src, int src_stride, int width,
                                       const Draw *draws, const int *counts) {
    int i = blockIdx.x;
    if (i >= counts[DRAWS]) {
        return;
    }
    float *out = dst + static_cast<size_t>(i) * dst_stride;
    const float *in = src + static_cast<size_t>(draws[i].row) * src_stride;
    for (int c = threadIdx.x; c < width; c += blockDim.x) {
        out[c] = in[c];
    }
}

// A row's table: `half` cosines, then as many sines, of position * inverse[i]. The
// angle is a float32, as published models compute it. Dividing it by pi in
// double costs less than 1e-16 of the angle and spares the reduction by pi,
// which would need local memory.
// Grid (rows), block half rounded up to 32 (fewer threads do).
extern "C" __global__ void rotary(float *table, int stride, const float *inverse, int half, const int *position,
                                  const int *counts) {
    int row = blockIdx.x;
    if (row >= counts[ROWS]) {
        return;
    }
    float *out = table + static_cast<size_t>(row) * stride;
    float at = static_cast<float>(position[row]);
    for (int i = threadIdx.x; i < half; i += blockDim.x) {
        double sine, cosine, angle = __fmul_rn(at, inverse[i]);
        sincospi(angle / 3.14159265358979323846, &sine, &cosine);
        out[i] = static_cast<float>(cosine);
        out[half + i] = static_cast<float>(sine);
    }
}
