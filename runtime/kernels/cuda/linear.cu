// y = W x for up to four matrices over one input.
//
// A row's result has one order of summation, which depends on the shape alone:
// lane l of a warp takes the columns 256 j + 8 l .. + 7 for ascending j, sums their
// eight products from zero, and adds scale times that sum (their group has one
// scale) to its accumulator; lanes are joined in pairs at distance 16, 8, 4, 2,
// 1. Multiplications and additions are fused where written so, the same for
// each row of the eight.
#include "abi.cuh"

constexpr int OUTPUTS = 4;    // of a warp
constexpr int ROW_BLOCK = 8;  // input rows that share a matrix element's reading
constexpr int TILE = 16;      // outputs of a block's four warps
constexpr int COLUMNS = 8;    // consecutive ones of a lane
constexpr int STEP = 32 * COLUMNS;

// Codes of eight consecutive elements of a row in one format: how they are
// fetched at once, and widened.
template <int FORMAT> struct Codes;

template <> struct Codes<BF16> {
    uint4 raw;
    __device__ void widen(float *w) const {
        const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            w[2 * i] = from_bf16(words[i]);
            w[2 * i + 1] = __uint_as_float(words[i] & 0xFFFF0000u);
        }
    }
};

template <> struct Codes<F16> {
    uint4 raw;
    __device__ void widen(float *w) const {
        const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            w[2 * i] = from_f16(words[i] & 0xFFFFu);
            w[2 * i + 1] = from_f16(words[i] >> 16);
        }
    }
};

template <> struct Codes<F32> {
    float4 low, high;
    __device__ void widen(float *w) const {
        w[0] = low.x, w[1] = low.y, w[2] = low.z, w[3] = low.w;
        w[4] = high.x, w[5] = high.y, w[6] = high.z, w[7] = high.w;
    }
};

template <> struct Codes<E4M3> {
    uint2 raw;
    __device__ void widen(float *w) const {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            w[i] = from_e4m3(raw.x >> (8 * i) & 0xFFu);
            w[4 + i] = from_e4m3(raw.y >> (8 * i) & 0xFFu);
        }
    }
};

template <> struct Codes<PACKED> {
    unsigned short raw;
    __device__ void widen(float *w) const {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            w[i] = from_packed(static_cast<unsigned>(raw) >> (2 * i));
        }
    }
};

__device__ constexpr int code_bits(int format) { return format == F32 ? 32 : format == E4M3 ? 8 : format == PACKED ? 2 : 16; }

// What a lane reads of one step: the codes of its columns in the warp's four
// rows, and the bits of their scales. Neither is converted before its use, so
// that nothing waits for it earlier.
template <int FORMAT> struct Slice {
    Codes<FORMAT> codes[OUTPUTS];
    unsigned scales[OUTPUTS];
};

// A warp's four rows of a matrix, as one lane walks over them. Beyond the last
// row that one is read again; its results are not written.
template <int FORMAT> struct Walk {
    const Matrix &m;
    int scale_format;
    int column;                                // of the lane's next slice
    int group = 0, in_group = 0;               // column / group_columns, and the remainder
    int step_groups = 0, step_in = 0;          // the same of STEP
    size_t elements[OUTPUTS], scales[OUTPUTS]; // where each row's elements and scales begin

    __device__ Walk(const Matrix &m, int first, int lane) : m(m), column(lane * COLUMNS) {
        scale_format = m.scales ? m.scale_format : F32;
        if (m.scales) {
            group = column / m.group_columns, in_group = column % m.group_columns;
            step_groups = STEP / m.group_columns, step_in = STEP % m.group_columns;
        }
#pragma unroll
        for (int i = 0; i < OUTPUTS; i++) {
            int row = min(first + i, m.rows - 1);
            elements[i] = static_cast<size_t>(row) * m.columns;
            scales[i] = scale_row(m, row);
        }
    }

    // Fetches whole, aligned slices.
    __device__ void fetch(Slice<FORMAT> &s) const {
        const char *data = static_cast<const char *>(m.data);
#pragma unroll
        for (int i = 0; i < OUTPUTS; i++) {
            size_t at = elements[i] + column;
            s.codes[i] = *reinterpret_cast<const Codes<FORMAT> *>(data + at / 8 * code_bits(FORMAT));
        }
        fetch_scales(s);
    }

    __device__ void fetch_scales(Slice<FORMAT> &s) const {
#pragma unroll
        for (int i = 0; i < OUTPUTS; i++) {
            size_t at = scales[i] + group;
            if (!m.scales) {
                s.scales[i] = __float_as_uint(1.0f);
            } else if (scale_format == F32) {
                s.scales[i] = static_cast<const unsigned *>(m.scales)[at];
            } else {
                s.scales[i] = static_cast<const unsigned short *>(m.scales)[at];
            }
        }
    }

    __device__ float scale(const Slice<FORMAT> &s, int i) const {
        unsigned bits = s.scales[i];
        return scale_format == F32 ? __uint_as_float(bits) : scale_format == BF16 ? from_bf16(bits) : from_f16(bits);
    }

    __device__ void advance() {
        column += STEP, group += step_groups, in_group += step_in;
        if (m.scales && in_group >= m.group_columns) {
            in_group -= m.group_columns, group++;
        }
    }
};

// Adds the products of a slice to the accumulators of the rows: sums[i*8+r] is
// output i of row r. x is row 0 at the lane's column; of its eight values count
// are within the row.
__device__ inline void accumulate(float *sums, const float (*w)[COLUMNS], const float *scales, const float *x,
                                  int x_stride, int rows, int count) {
#pragma unroll
    for (int r = 0; r < ROW_BLOCK; r++) {
        if (r >= rows) {
            continue;
        }
        // The padding of a row may be read, and is not used.
        const float4 *in = reinterpret_cast<const float4 *>(x + static_cast<size_t>(r) * x_stride);
        float4 low = in[0], high = in[1];
        float v[COLUMNS] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
        if (count < COLUMNS) {
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                v[c] = c < count ? v[c] : 0.0f;
            }
        }
#pragma unroll
        for (int i = 0; i < OUTPUTS; i++) {
            float sum = w[i][0] * v[0];
#pragma unroll
            for (int c = 1; c < COLUMNS; c++) {
                sum = fmaf(w[i][c], v[c], sum);
            }
            sums[i * ROW_BLOCK + r] = fmaf(scales[i], sum, sums[i * ROW_BLOCK + r]);
        }
    }
}

// Slices that are on their way while one is used: the smaller they are, the
// more of them hide the memory's latency.
__device__ constexpr int slices_ahead(int format) { return format == PACKED ? 4 : format == E4M3 ? 2 : 1; }

// The sums of one lane over matrix rows whose slices can be read at once.
template <int FORMAT>
__device__ inline void sum_aligned(float *sums, const Matrix &m, int first, int lane, const float *x, int x_stride,
                                   int rows) {
    constexpr int ahead = slices_ahead(FORMAT);
    Walk<FORMAT> walk(m, first, lane);
    Slice<FORMAT> next[ahead] = {};
    int column = walk.column;
#pragma unroll
    for (int i = 0; i < ahead; i++, walk.advance()) {
        if (walk.column < m.columns) {
            walk.fetch(next[i]);
        }
    }
    while (column < m.columns) {
#pragma unroll
        for (int a = 0; a < ahead; a++, column += STEP, walk.advance()) {
            if (column >= m.columns) {
                break;
            }
            Slice<FORMAT> slice = next[a];
            if (walk.column < m.columns) {
                walk.fetch(next[a]);
            }
            float w[OUTPUTS][COLUMNS], scales[OUTPUTS];
#pragma unroll
            for (int i = 0; i < OUTPUTS; i++) {
                slice.codes[i].widen(w[i]);
                scales[i] = walk.scale(slice, i);
            }
            accumulate(sums, w, scales, x + column, x_stride, rows, COLUMNS);
        }
    }
}

// The same over rows of any width and alignment, element by element.
__device__ inline void sum_scattered(float *sums, const Matrix &m, int first, int lane, const float *x, int x_stride,
                                     int rows) {
    Walk<F32> walk(m, first, lane);
    for (; walk.column < m.columns; walk.advance()) {
        Slice<F32> slice;
        walk.fetch_scales(slice);
        int count = min(COLUMNS, m.columns - walk.column);
        float w[OUTPUTS][COLUMNS], scales[OUTPUTS];
#pragma unroll
        for (int i = 0; i < OUTPUTS; i++) {
            size_t at = walk.elements[i] + walk.column;
            scales[i] = walk.scale(slice, i);
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                w[i][c] = c < count ? element(m.data, m.format, at + c) : 0.0f;
            }
        }
        accumulate(sums, w, scales, x + walk.column, x_stride, rows, count);
    }
}

// Whether each row's slices begin at multiples of their own size, at most 16
// bytes.
__device__ inline bool aligned(const Matrix &m) {
    int bytes = min(code_bits(m.format), 16);
    return m.columns % COLUMNS == 0 && reinterpret_cast<size_t>(m.data) % bytes == 0;
}

// Joins 2*HALF sums over 32 lanes: lane l gets the whole of sums[l], for HALF = 16.
// At each distance a lane keeps one half of its sums and hands the other half
// over.
template <int HALF> __device__ inline float join_lanes(float *sums, int lane) {
    bool upper = lane & HALF;
#pragma unroll
    for (int j = 0; j < HALF; j++) {
        float mine = upper ? sums[HALF + j] : sums[j];
        float other = upper ? sums[j] : sums[HALF + j];
        sums[j] = mine + __shfl_xor_sync(0xFFFFFFFFu, other, HALF);
    }
    if constexpr (HALF > 1) {
        return join_lanes<HALF / 2>(sums, lane);
    }
    return sums[0];
}

// y = W x for every projection; *count rows. Blocks are numbered anew so that
// those which share a tile run together, and find its matrix in the cache.
// Grid (tiles of 16 outputs of all projections, rows in blocks of 8), block 128.
extern "C" __global__ void __launch_bounds__(128, 3)
linear(const float *x, int x_stride, int columns, const __grid_constant__ Projections projections, const int *count) {
    unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
    int tile = block / gridDim.y, row = block % gridDim.y * ROW_BLOCK;
    int rows = min(ROW_BLOCK, *count - row);
    if (rows <= 0) {
        return;
    }
    int index = 0;
    while (index + 1 < projections.count && tile >= projections.p[index + 1].first_tile) {
        index++;
    }
    const Projection &p = projections.p[index];
    const Matrix &m = p.weight;
    int lane = threadIdx.x % 32;
    int first = (tile - p.first_tile) * TILE + threadIdx.x / 32 * OUTPUTS;
    if (first >= m.rows || m.columns != columns) {
        return; // the whole warp
    }
    const float *in = x + static_cast<size_t>(row) * x_stride;
    float sums[OUTPUTS * ROW_BLOCK] = {};
    if (!aligned(m)) {
        sum_scattered(sums, m, first, lane, in, x_stride, rows);
    } else if (m.format == BF16) {
        sum_aligned<BF16>(sums, m, first, lane, in, x_stride, rows);
    } else if (m.format == F16) {
        sum_aligned<F16>(sums, m, first, lane, in, x_stride, rows);
    } else if (m.format == F32) {
        sum_aligned<F32>(sums, m, first, lane, in, x_stride, rows);
    } else if (m.format == E4M3) {
        sum_aligned<E4M3>(sums, m, first, lane, in, x_stride, rows);
    } else {
        sum_aligned<PACKED>(sums, m, first, lane, in, x_stride, rows);
    }
    float sum = join_lanes<OUTPUTS * ROW_BLOCK / 2>(sums, lane);
    int output = first + lane / ROW_BLOCK, r = lane % ROW_BLOCK;
    if (output < m.rows && r < rows) {
        p.dst[static_cast<size_t>(row + r) * p.dst_stride + output] = sum;
    }
}
