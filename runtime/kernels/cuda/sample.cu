// Drawing a token from a row of logits: penalties, temperature, top-k, top-p,
// min-p, Gumbel noise; and log-probabilities over the unchanged logits. The
// arithmetic is in double where a cut or a comparison of candidates depends on
// it, and every sum has one order, so that a draw repeats bitwise.
#include "abi.cuh"
#include "candidates.cuh"

constexpr int THREADS = CANDIDATE_THREADS;

// log(sum(exp(logits))) over the whole row. A logit that is not a number makes
// the result none.
__device__ inline double log_sum_exp(const float *logits, int vocabulary) {
    float top = -INFINITY;
    each(logits, 0, vocabulary, [&](int, float x) { top = fmaxf(top, x); });
    top = block_reduce<THREADS>(top, Largest());
    double sum = 0;
    each(logits, 0, vocabulary, [&](int, float x) { sum += static_cast<double>(expf(x - top)); });
    return static_cast<double>(top) + log(block_reduce<THREADS>(sum, Add()));
}

__device__ inline void top_logprobs(List &list, Result &result, const float *raw, int tokens, int count, double norm) {
    gather(list, raw, tokens, key_at(raw, tokens, count));
    if (static_cast<int>(threadIdx.x) < count) {
        int id = id_of(list.keys[threadIdx.x]);
        result.top_token[threadIdx.x] = id;
        result.top_logprob[threadIdx.x] = static_cast<float>(static_cast<double>(raw[id]) - norm);
    }
}

__device__ inline bool penalised(const Draw &d) {
    return d.presence != 0 || d.frequency != 0 || (d.repetition != 0 && d.repetition != 1);
}

// Changes the logits of the sequence's tokens. marks is zero before and after;
// in between it holds 1 for a token of the sequence plus 2 for each time that
// it was generated. Whoever takes a token's mark changes its logit.
__device__ inline void penalise(float *logits, int *marks, const int *sequence, const Draw &d) {
    for (int i = threadIdx.x; i < d.length; i += THREADS) {
        int token = sequence[i];
        atomicOr(&marks[token], 1);
        if (i >= d.generated) {
            atomicAdd(&marks[token], 2);
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < d.length; i += THREADS) {
        int token = sequence[i], mark = atomicExch(&marks[token], 0);
        if (mark == 0) {
            continue;
        }
        float x = logits[token];
        if (d.repetition != 0) {
            x = x > 0 ? x / d.repetition : x * d.repetition;
        }
        if (mark > 1) {
            x -= __fadd_rn(d.presence, __fmul_rn(static_cast<float>(mark >> 1), d.frequency));
        }
        logits[token] = x;
    }
    __syncthreads();
}

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011).
__device__ inline uint4 philox(uint4 counter, uint2 key) {
    for (int round = 0; round < 10; round++) {
        unsigned high0 = __umulhi(0xD2511F53u, counter.x), low0 = 0xD2511F53u * counter.x;
        unsigned high1 = __umulhi(0xCD9E8D57u, counter.z), low1 = 0xCD9E8D57u * counter.z;
        counter = make_uint4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
        key = make_uint2(key.x + 0x9E3779B9u, key.y + 0xBB67AE85u);
    }
    return counter;
}

// The noise -log(-log(u)) of an id; position is that of the token drawn.
__device__ inline double gumbel(unsigned long long seed, int position, int id) {
    uint4 words = philox(make_uint4(position, 0, static_cast<unsigned>(id) >> 2, 0),
                         make_uint2(static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32)));
    unsigned word = id & 2 ? (id & 1 ? words.w : words.z) : (id & 1 ? words.y : words.x);
    double u = (static_cast<double>(word) + 0.5) * 0x1p-32;
    return -log(-log(u));
}

constexpr double MAX_GUMBEL = 23; // above the noise of the largest u, 1 - 2^-33

// What the cuts are made in.
struct Distribution {
    const float *logits;
    int tokens;
    double top, temperature; // the first candidate's logit

    __device__ double weight(float x) const { return exp((static_cast<double>(x) - top) / temperature); }

    // The sum of the weights of the candidates whose keys reach least.
    __device__ double mass(Key least) const {
        double sum = 0;
        each(logits, 0, tokens, [&](int id, float x) {
            if (key_of(x, id) >= least) {
                sum += weight(x);
            }
        });
        return block_reduce<THREADS>(sum, Add());
    }
};

// The largest key for which the candidates that reach it have that mass, bit
// by bit. An id has at most `id_bits` bits; the others of its complement are set.
__device__ inline Key search_mass(const Distribution &d, double target) {
    int id_bits = 32 - __clz(d.tokens);
    Key found = 0;
    for (int bit = 63; bit >= 0; bit--) {
        Key tried = found | static_cast<Key>(1) << bit;
        if ((bit < 32 && bit >= id_bits) || d.mass(tried) >= target) {
            found = tried;
        }
    }
    return found;
}

// The least key of the fewest candidates that have `share` of the mass of the
// `kept` ones, which reach least. Nearly always the first THREADS candidates
// suffice, and are summed in order.
__device__ inline Key cut_mass(List &list, const Distribution &d, Key least, int kept, double share) {
    __shared__ double weights[THREADS];
    __shared__ Key cut;
    double target = share * d.mass(least);
    int listed = min(kept, THREADS);
    gather(list, d.logits, d.tokens, listed == kept ? least : key_at(d.logits, d.tokens, listed));
    int i = threadIdx.x;
    weights[i] = i < listed ? d.weight(d.logits[id_of(list.keys[i])]) : 0;
    __syncthreads();
    if (i == 0) {
        double sum = 0;
        int k = 0;
        while (k < listed && (sum += weights[k]) < target) {
            k++;
        }
        cut = k < listed ? list.keys[k] : 0; // no key is 0
    }
    __syncthreads();
    if (cut != 0) {
        return cut;
    }
    return listed == kept ? least : search_mass(d, target);
}

// Draws among the candidates that the cuts leave: the largest of logit /
// temperature + noise, the lowest id where equal.
__device__ inline int draw_token(List &list, const float *logits, int tokens, const Draw &draw) {
    int first = first_candidate(logits, tokens);
    Distribution d = {logits, tokens, static_cast<double>(logits[first]), static_cast<double>(draw.temperature)};
    Key least = 0;
    int kept = tokens;
    if (draw.top_k > 0 && draw.top_k < tokens) {
        kept = draw.top_k;
        least = key_at(logits, tokens, kept);
    }
    if (draw.top_p > 0 && draw.top_p < 1) {
        least = cut_mass(list, d, least, kept, static_cast<double>(draw.top_p));
    }
    double floor = draw.min_p > 0 ? d.top + d.temperature * log(static_cast<double>(draw.min_p)) : -INFINITY;
    // The first candidate's score is one that any other must reach.
    double reached = d.top / d.temperature + gumbel(draw.seed, draw.length, first);
    double best = -INFINITY;
    int best_id = INT_MAX;
    each(logits, 0, tokens, [&](int id, float logit) {
        double x = static_cast<double>(logit), scaled = x / d.temperature;
        if (x < floor || scaled + MAX_GUMBEL <= reached || key_of(logit, id) < least) {
            return;
        }
        double score = scaled + gumbel(draw.seed, draw.length, id);
        if (score > best) {
            best = score, best_id = id;
            reached = max(reached, score);
        }
    });
    double winner = block_reduce<THREADS>(best, Largest());
    int id = block_reduce<THREADS>(best == winner ? best_id : INT_MAX, Smallest());
    return id < tokens ? id : 0; // none where logits are not numbers
}

// A token for each draw, from row i of logits. Ids from tokens on are padding:
// neither drawn nor listed, they count in the norm of log-probabilities alone.
// scratch and marks have `vocabulary` elements for each draw; marks is zero
// before and after. Of a result's top candidates the first top_logprobs are
// set.
// Grid (draws), block 1024.
extern "C" __global__ void __launch_bounds__(THREADS)
sample(const float *logits, int stride, int vocabulary, int tokens, const Draw *draws, const int *sequences,
       int context, float *scratch, int *marks, Result *results, const int *counts) {
    __shared__ List list;
    int i = blockIdx.x;
    if (i >= counts[DRAWS]) {
        return;
    }
    Draw draw = draws[i];
    const float *raw = logits + static_cast<size_t>(i) * stride, *used = raw;
    double norm = log_sum_exp(raw, vocabulary);
    int listed = min(min(draw.top_logprobs, MAX_TOP_LOGPROBS), tokens);
    if (listed > 0) {
        top_logprobs(list, results[i], raw, tokens, listed, norm);
    }
    if (penalised(draw)) {
        float *own = scratch + static_cast<size_t>(i) * vocabulary;
        each(raw, 0, vocabulary, [&](int id, float x) { own[id] = x; });
        penalise(own, marks + static_cast<size_t>(i) * vocabulary, sequences + static_cast<size_t>(draw.slot) * context, draw);
        used = own;
    }
    int token = draw.temperature > 0 ? draw_token(list, used, tokens, draw) : first_candidate(used, tokens);
    if (threadIdx.x == 0) {
        results[i].token = token;
        results[i].logprob = static_cast<float>(static_cast<double>(logits[static_cast<size_t>(blockIdx.x) * stride + token]) - norm);
    }
}
