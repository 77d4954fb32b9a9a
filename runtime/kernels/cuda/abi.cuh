// The structures that the launchers pass, and how stored matrices are read.
// Activations are float32 rows: a pointer and a stride in floats that is a
// multiple of 8; pointers are aligned to 16 bytes. `counts` holds this step's
// token rows, runs and draws: a grid is sized for more, and nothing beyond the
// counts is written.
#pragma once

enum Format { BF16, F16, F32, E4M3, PACKED };

enum Count { ROWS, RUNS, DRAWS }; // index in counts

// A [rows, columns] parameter, row-major. The scale of element (r, c) is
// scales[r / group_rows * groups + c / group_columns]; without scales it is 1.
// group_columns is a multiple of 8.
struct Matrix {
    const void *data, *scales;
    int rows, columns, format, scale_format, group_rows, group_columns, groups, pad;
};

// A matrix of linear and where its outputs go; first_tile is the first of its
// tiles in the grid.
struct Projection {
    Matrix weight;
    float *dst;
    int dst_stride, first_tile;
};

struct Projections {
    Projection p[4];
    int count, pad;
};

// Consecutive rows of one slot; start is the position of the first.
struct Run {
    int slot, first, count, start;
};

struct Draw {
    int row, slot, length, generated;
    float temperature;
    int top_k;
    float top_p, min_p;
    unsigned long long seed;
    float presence, frequency, repetition;
    int top_logprobs;
};

constexpr int MAX_TOP_LOGPROBS = 20;

struct Result {
    int token;
    float logprob;
    int top_token[MAX_TOP_LOGPROBS];
    float top_logprob[MAX_TOP_LOGPROBS];
};

static_assert(sizeof(Matrix) == 48 && sizeof(Projection) == 64 && sizeof(Projections) == 264, "layout of matrices");
static_assert(sizeof(Run) == 16 && sizeof(Draw) == 56 && sizeof(Result) == 168, "layout of a step");

__device__ inline float from_bf16(unsigned bits) { return __uint_as_float(bits << 16); }

__device__ inline float from_f16(unsigned bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<unsigned short>(bits)));
    return value;
}

// With its bits moved to float32's places an E4M3 code (exponent bias 7) is
// 2^-120 times too small, for subnormals too. 0x7F and 0xFF are no numbers.
__device__ inline float from_e4m3(unsigned code) {
    float value = __uint_as_float((code & 0x80u) << 24 | (code & 0x7Fu) << 20) * 0x1p120f;
    return (code & 0x7Fu) == 0x7Fu ? __uint_as_float(0x7FC00000u) : value;
}

// code - 1 for the code in the lowest two bits. The float with these bits is
// 2^23 + code, which needs no conversion instruction.
__device__ inline float from_packed(unsigned bits) {
    return __uint_as_float(0x4B000000u | (bits & 3u)) - 8388609.0f;
}

// The value of one stored element, without its scale.
__device__ inline float element(const void *data, int format, size_t at) {
    switch (format) {
    case BF16:
        return from_bf16(static_cast<const unsigned short *>(data)[at]);
    case F16:
        return from_f16(static_cast<const unsigned short *>(data)[at]);
    case E4M3:
        return from_e4m3(static_cast<const unsigned char *>(data)[at]);
    case PACKED:
        return from_packed(static_cast<const unsigned char *>(data)[at / 4] >> (2 * (at % 4)));
    }
    return static_cast<const float *>(data)[at];
}

// Where the scales of a row begin.
__device__ inline size_t scale_row(const Matrix &m, int row) {
    return m.scales ? static_cast<size_t>(row / m.group_rows) * m.groups : 0;
}

// Where the values of a position's key or value begin in a cache of layout
// [page][kv head][64 tokens][dim].
constexpr int PAGE_TOKENS = 64;

__device__ inline size_t cache_offset(int page, int kv_heads, int head, int position, int dim) {
    return ((static_cast<size_t>(page) * kv_heads + head) * PAGE_TOKENS + position % PAGE_TOKENS) * dim;
}

__device__ inline float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

__device__ inline float silu(float x) { return x / (1.0f + expf(-x)); }
