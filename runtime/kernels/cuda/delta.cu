// The mixer of a Gated DeltaNet layer between its projections ("Gated Delta
// Networks", arXiv 2412.06464): a causal convolution, and the gated delta rule as
// a recurrence, token after token.
#include "abi.cuh"
#include "reduce.cuh"

constexpr int THREADS = 128;
constexpr int MAX_TAPS = 8;
constexpr int AHEAD = 8; // rows that are read before their results are written

// What delta_convolve does for a channel with more than MAX_TAPS taps: what lies before a row is moved up in memory
// row after row.
__device__ inline void convolve_long(float *row, int stride, const float *taps, float *kept, int channels, int taps_count,
                                     const Run &run) {
    int before = taps_count - 1;
    for (int j = 0; j < before && run.start == 0; j++) {
        kept[static_cast<size_t>(j) * channels] = 0;
    }
    for (int t = 0; t < run.count; t++, row += stride) {
        float x = *row, sum = 0;
        for (int j = 0; j < before; j++) {
            float *at = kept + static_cast<size_t>(j) * channels, value = *at;
            sum = fmaf(taps[static_cast<size_t>(j) * channels], value, sum);
            if (j > 0) {
                at[-channels] = value;
            }
        }
        if (before > 0) {
            kept[static_cast<size_t>(before - 1) * channels] = x;
        }
        *row = silu(fmaf(taps[static_cast<size_t>(before) * channels], x, sum));
    }
}

// A depthwise causal convolution over each run's rows, then silu, in place. taps
// is [taps_count][channels], the last for the current token; tail,
// [slot][taps_count-1][channels], has the inputs before the run, oldest first,
// and is left with the last ones after it.
// Grid (runs, channels in blocks of 128), block 128: a channel a thread.
extern "C" __global__ void __launch_bounds__(THREADS)
delta_convolve(float *mixed, int stride, const float *taps, float *tail, int channels, int taps_count, const Run *runs,
               const int *counts) {
    int channel = blockIdx.y * THREADS + threadIdx.x;
    if (static_cast<int>(blockIdx.x) >= counts[RUNS] || channel >= channels) {
        return;
    }
    Run run = runs[blockIdx.x];
    int before = taps_count - 1;
    float *kept = tail + static_cast<size_t>(run.slot) * before * channels + channel;
    if (taps_count > MAX_TAPS) {
        convolve_long(mixed + static_cast<size_t>(run.first) * stride + channel, stride, taps + channel, kept, channels, taps_count, run);
        return;
    }
    // Index 7 is the current token's, whatever taps_count is; what lies before
    // the first tap is zero.
    int first = MAX_TAPS - taps_count;
    float w[MAX_TAPS], x[MAX_TAPS];
#pragma unroll
    for (int j = 0; j < MAX_TAPS; j++) {
        w[j] = j >= first ? taps[static_cast<size_t>(j - first) * channels + channel] : 0.0f;
        bool had = j >= first && j < MAX_TAPS - 1 && run.start > 0;
        x[j] = had ? kept[static_cast<size_t>(j - first) * channels] : 0.0f;
    }
    float *row = mixed + static_cast<size_t>(run.first) * stride + channel;
    for (int t = 0; t < run.count; t += AHEAD, row += static_cast<size_t>(AHEAD) * stride) {
        float in[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            in[i] = t + i < run.count ? row[static_cast<size_t>(i) * stride] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            if (t + i >= run.count) {
                break;
            }
            x[MAX_TAPS - 1] = in[i];
            float sum = 0;
#pragma unroll
            for (int j = 0; j < MAX_TAPS; j++) {
                sum = j >= first ? fmaf(w[j], x[j], sum) : sum;
            }
            row[static_cast<size_t>(i) * stride] = silu(sum);
#pragma unroll
            for (int j = 0; j + 1 < MAX_TAPS; j++) {
                x[j] = x[j + 1];
            }
        }
    }
#pragma unroll
    for (int j = 0; j + 1 < MAX_TAPS; j++) {
        if (j >= first) {
            kept[static_cast<size_t>(j - first) * channels] = x[j];
        }
    }
}

constexpr int PIECE = 4;            // tokens whose inputs are prepared together, one by each warp
constexpr int SHARED_STATE = 16384; // largest state of a head that is kept in shared memory, in floats

// Everything that delta_rule is given.
struct DeltaRule {
    float *dst;
    int dst_stride;
    const float *mixed;
    int mixed_stride;
    const float *z;
    int z_stride;
    const float *b;
    int b_stride;
    const float *a;
    int a_stride;
    const float *decay, *time_bias, *norm_weight;
    float epsilon;
    int key_heads, value_heads, key_dim, value_dim;

    __device__ const float *input(int row) const { return mixed + static_cast<size_t>(row) * mixed_stride; }

    __device__ const float *value(int row, int head) const {
        return input(row) + 2 * key_heads * key_dim + head * value_dim;
    }
};

// The prepared inputs and the outputs of a piece, in shared memory.
struct Piece {
    float *queries, *keys; // [PIECE][padded]
    float *forget, *rate;  // [PIECE]: the factor of the state, beta
    float *outputs;        // [PIECE][value_dim]
    int padded;            // key_dim rounded up to 4

    // Lays the arrays over shared memory and returns what lies behind them.
    __device__ float *bind(float *shared, int key_dim, int value_dim) {
        padded = (key_dim + 3) / 4 * 4;
        queries = shared, keys = queries + PIECE * padded;
        forget = keys + PIECE * padded, rate = forget + PIECE;
        float *state = rate + PIECE; // at a multiple of 16 bytes
        outputs = state + (key_dim * value_dim <= SHARED_STATE ? key_dim * value_dim : 0);
        return state;
    }
};

__device__ inline double softplus(double x) { return x > 20 ? x : log1p(exp(x)); }

// dst = src / sqrt(sum src^2 + 1e-6) * factor, by a warp.
__device__ inline void unit(float *dst, const float *src, int dim, double factor, int lane) {
    float squares = 0;
    for (int c = lane; c < dim; c += 32) {
        squares = fmaf(src[c], src[c], squares);
    }
    squares = warp_reduce(squares, Add());
    float inverse = static_cast<float>(factor * rsqrt(static_cast<double>(squares) + 1e-6));
    for (int c = lane; c < dim; c += 32) {
        dst[c] = src[c] * inverse;
    }
}

// A warp prepares token t of a piece, which is that row.
__device__ inline void prepare(const DeltaRule &d, const Piece &piece, int t, int row, int head, int lane) {
    int key_head = head / (d.value_heads / d.key_heads);
    const float *query = d.input(row) + key_head * d.key_dim, *key = query + d.key_heads * d.key_dim;
    unit(piece.queries + t * piece.padded, query, d.key_dim, rsqrt(static_cast<double>(d.key_dim)), lane);
    unit(piece.keys + t * piece.padded, key, d.key_dim, 1, lane);
    if (lane == 0) {
        float time = d.a[static_cast<size_t>(row) * d.a_stride + head] + d.time_bias[head];
        piece.forget[t] = static_cast<float>(exp(static_cast<double>(d.decay[head]) * softplus(time)));
        piece.rate[t] = sigmoid(d.b[static_cast<size_t>(row) * d.b_stride + head]);
    }
}

// sum_i key[i] * forget * state[i][column], in four running sums, i mod 4.
__device__ inline float recall(const float *column, int value_dim, const float *key, int key_dim, float forget) {
    float sums[4] = {};
    int whole = key_dim / 4 * 4;
#pragma unroll 4
    for (int i = 0; i < whole; i += 4) {
        float4 k = *reinterpret_cast<const float4 *>(key + i);
        const float *s = column + i * value_dim;
        sums[0] = fmaf(k.x, forget * s[0], sums[0]);
        sums[1] = fmaf(k.y, forget * s[value_dim], sums[1]);
        sums[2] = fmaf(k.z, forget * s[2 * value_dim], sums[2]);
        sums[3] = fmaf(k.w, forget * s[3 * value_dim], sums[3]);
    }
    for (int i = whole; i < key_dim; i++) {
        sums[0] = fmaf(key[i], forget * column[i * value_dim], sums[0]);
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

__device__ inline float renew(float *at, float forget, float key, float correction) {
    return *at = fmaf(key, correction, forget * *at);
}

// state = forget * state + key correction^T in that column; returns the column
// times query.
__device__ inline float learn(float *column, int value_dim, const float *key, const float *query, int key_dim,
                              float forget, float correction) {
    float sums[4] = {};
    int whole = key_dim / 4 * 4;
#pragma unroll 4
    for (int i = 0; i < whole; i += 4) {
        float4 k = *reinterpret_cast<const float4 *>(key + i), q = *reinterpret_cast<const float4 *>(query + i);
        float *s = column + i * value_dim;
        sums[0] = fmaf(q.x, renew(s, forget, k.x, correction), sums[0]);
        sums[1] = fmaf(q.y, renew(s + value_dim, forget, k.y, correction), sums[1]);
        sums[2] = fmaf(q.z, renew(s + 2 * value_dim, forget, k.z, correction), sums[2]);
        sums[3] = fmaf(q.w, renew(s + 3 * value_dim, forget, k.w, correction), sums[3]);
    }
    for (int i = whole; i < key_dim; i++) {
        sums[0] = fmaf(query[i], renew(column + i * value_dim, forget, key[i], correction), sums[0]);
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// A warp finishes token t: norm, times silu(z).
__device__ inline void finish(const DeltaRule &d, const Piece &piece, int t, int row, int head, int lane) {
    const float *out = piece.outputs + t * d.value_dim;
    const float *z = d.z + static_cast<size_t>(row) * d.z_stride + head * d.value_dim;
    float *dst = d.dst + static_cast<size_t>(row) * d.dst_stride + head * d.value_dim;
    float squares = 0;
    for (int c = lane; c < d.value_dim; c += 32) {
        squares = fmaf(out[c], out[c], squares);
    }
    squares = warp_reduce(squares, Add());
    float inverse = static_cast<float>(rsqrt(static_cast<double>(squares) / d.value_dim + static_cast<double>(d.epsilon)));
    for (int c = lane; c < d.value_dim; c += 32) {
        dst[c] = d.norm_weight[c] * (out[c] * inverse) * silu(z[c]);
    }
}

// Takes a head through a run. state is [key_dim][value_dim], in shared or global
// memory; a thread reads and writes its own columns of it alone.
__device__ __forceinline__ void recur(const DeltaRule &d, const Piece &piece, float *state, const Run &run, int head) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int begin = 0; begin < run.count; begin += PIECE) {
        int count = min(PIECE, run.count - begin), row = run.first + begin;
        if (warp < count) {
            prepare(d, piece, warp, row + warp, head, lane);
        }
        __syncthreads(); // inputs are complete; so is a state that has been copied
        for (int c = threadIdx.x; c < d.value_dim; c += THREADS) {
            for (int t = 0; t < count; t++) {
                const float *query = piece.queries + t * piece.padded, *key = piece.keys + t * piece.padded;
                float value = d.value(row + t, head)[c], forget = piece.forget[t];
                float correction = piece.rate[t] * (value - recall(state + c, d.value_dim, key, d.key_dim, forget));
                piece.outputs[t * d.value_dim + c] =
                    learn(state + c, d.value_dim, key, query, d.key_dim, forget, correction);
            }
        }
        __syncthreads(); // outputs are complete, inputs have been used
        if (warp < count) {
            finish(d, piece, warp, row + warp, head, lane);
        }
    }
}

__device__ inline void copy_state(float *dst, const float *src, int size) {
    if (size % 4 == 0) {
#pragma unroll 4
        for (int i = 4 * threadIdx.x; i < size; i += 4 * THREADS) {
            *reinterpret_cast<float4 *>(dst + i) = *reinterpret_cast<const float4 *>(src + i);
        }
        return;
    }
    for (int i = threadIdx.x; i < size; i += THREADS) {
        dst[i] = src[i];
    }
}

// For each token of a run, with q and k brought to unit length (1e-6 is added
// to the sum of squares) and q times key_dim^-1/2:
//
//     S = exp(decay softplus(a + time_bias)) S
//     u = sigmoid(b) (v - S^T k),  S = S + k u^T,  o = S^T q
//     dst = norm(o) silu(z)
//
// A row of mixed is queries, keys and values, each head after head; value head h
// reads key head h / (value_heads / key_heads). state is
// [slot][value_heads][key_dim][value_dim]; a run from position 0 begins from
// zeros.
// Grid (runs, value_heads), block 128, shared floats
//     8*round4(key_dim) + 8 + 4*value_dim + (key_dim*value_dim <= 16384 ? key_dim*value_dim : 0)
// where round4 rounds up to a multiple of 4.
extern "C" __global__ void __launch_bounds__(THREADS)
delta_rule(float *dst, int dst_stride, const float *mixed, int mixed_stride, const float *z, int z_stride,
           const float *b, int b_stride, const float *a, int a_stride, const float *decay, const float *time_bias,
           const float *norm_weight, float epsilon, float *state, int key_heads, int value_heads, int key_dim,
           int value_dim, const Run *runs, const int *counts) {
    extern __shared__ float4 shared[];
    if (static_cast<int>(blockIdx.x) >= counts[RUNS]) {
        return;
    }
    DeltaRule d = {dst, dst_stride, mixed, mixed_stride, z, z_stride, b, b_stride, a, a_stride, decay, time_bias,
                   norm_weight, epsilon, key_heads, value_heads, key_dim, value_dim};
    Run run = runs[blockIdx.x]; // of one row at least
    int head = blockIdx.y, size = key_dim * value_dim;
    float *own = state + (static_cast<size_t>(run.slot) * value_heads + head) * size;
    Piece piece;
    float *near = piece.bind(reinterpret_cast<float *>(shared), key_dim, value_dim);
    bool is_near = size <= SHARED_STATE;
    float *used = is_near ? near : own;
    if (run.start == 0) {
        for (int i = threadIdx.x; i < size; i += THREADS) {
            used[i] = 0;
        }
    } else if (is_near) {
        copy_state(near, own, size);
    }
    if (!is_near) {
        recur(d, piece, own, run, head);
        return;
    }
    recur(d, piece, near, run, head);
    copy_state(own, near, size); // recur ends behind a barrier that follows the last change
}
