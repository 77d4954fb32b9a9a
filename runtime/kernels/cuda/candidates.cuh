// Candidates for a token in their order: largest logit first, lowest id first
// among equal ones. A candidate's key grows with its place in that order, so
// that a cut after k candidates, or after a share of the probability, is the
// least key that is kept. Everything here is for a block of CANDIDATE_THREADS
// threads that all take part.
#pragma once
#include "reduce.cuh"

constexpr int CANDIDATE_THREADS = 1024;

typedef unsigned long long Key;

// Negative zero and zero are equal logits.
__device__ inline Key key_of(float logit, int id) {
    unsigned bits = __float_as_uint(logit + 0.0f);
    bits ^= bits >> 31 ? 0xFFFFFFFFu : 0x80000000u;
    return static_cast<Key>(bits) << 32 | ~static_cast<unsigned>(id);
}

__device__ inline int id_of(Key key) { return static_cast<int>(~static_cast<unsigned>(key)); }

// Calls use(id, logit) for ids begin..end-1, in ascending order for each thread.
// Four logits are on their way at once.
template <typename Use> __device__ inline void each(const float *logits, int begin, int end, Use use) {
    constexpr int ahead = 4;
    for (int base = begin + threadIdx.x; base < end; base += ahead * CANDIDATE_THREADS) {
        float x[ahead];
#pragma unroll
        for (int i = 0; i < ahead; i++) {
            int id = base + i * CANDIDATE_THREADS;
            x[i] = id < end ? logits[id] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < ahead; i++) {
            int id = base + i * CANDIDATE_THREADS;
            if (id < end) {
                use(id, x[i]);
            }
        }
    }
}

// The first candidate's id.
__device__ inline int first_candidate(const float *logits, int tokens) {
    Key best = 0;
    each(logits, 0, tokens, [&](int id, float x) { best = max(best, key_of(x, id)); });
    return id_of(block_reduce<CANDIDATE_THREADS>(best, Largest()));
}

// One digit of a search for a key: how many candidates have each value.
struct Digits {
    unsigned counts[256];
    int digit;        // the one in which the sought candidate lies
    unsigned rank;    // its place among those, from 1
    unsigned members; // how many those are
};

// Sets digit, rank and members for the candidate of that rank. The first warp
// does it, each lane for eight values, from the largest down.
__device__ inline void choose(Digits &d, unsigned rank) {
    int lane = threadIdx.x;
    unsigned sum = 0;
    for (int i = 0; i < 8; i++) {
        sum += d.counts[255 - 8 * lane - i];
    }
    unsigned through = sum;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        unsigned lower = __shfl_up_sync(0xFFFFFFFFu, through, distance);
        through += lane >= distance ? lower : 0;
    }
    unsigned before = through - sum;
    if (before >= rank || through < rank) {
        return;
    }
    for (int i = 0; i < 8; i++) {
        unsigned members = d.counts[255 - 8 * lane - i];
        if (before + members >= rank) {
            d.digit = 255 - 8 * lane - i, d.rank = rank - before, d.members = members;
            return;
        }
        before += members;
    }
}

// A key that exactly the first `count` candidates reach, 0 < count <= tokens:
// radix selection, eight bits at a time, until all that share the bits found so
// far are among the first.
__device__ inline Key key_at(const float *logits, int tokens, int count) {
    __shared__ Digits d;
    Key found = 0, known = 0; // the bits found, and which those are
    unsigned rank = count;
    for (int shift = 56; shift >= 0; shift -= 8) {
        __syncthreads(); // d has been read
        if (threadIdx.x < 256) {
            d.counts[threadIdx.x] = 0;
        }
        __syncthreads();
        each(logits, 0, tokens, [&](int id, float x) {
            Key key = key_of(x, id);
            if ((key & known) == found) {
                // Without its old value an increment is one instruction, in
                // which the lanes of a digit are added up first.
                atomicAdd(&d.counts[key >> shift & 255], 1u);
            }
        });
        __syncthreads();
        if (threadIdx.x < 32) {
            choose(d, rank);
        }
        __syncthreads();
        found |= static_cast<Key>(d.digit) << shift;
        known |= static_cast<Key>(255) << shift;
        rank = d.rank;
        if (d.rank == d.members) {
            break;
        }
    }
    return found;
}

// Candidates in order. CANDIDATE_THREADS of them fit.
struct List {
    Key keys[CANDIDATE_THREADS];
    int count;
};

// list = the candidates whose keys reach least, of which there are at most as
// many as fit, in order: gathered as they come, then sorted (bitonic).
__device__ inline void gather(List &list, const float *logits, int tokens, Key least) {
    __syncthreads(); // list has been read
    list.keys[threadIdx.x] = 0;
    if (threadIdx.x == 0) {
        list.count = 0;
    }
    __syncthreads();
    each(logits, 0, tokens, [&](int id, float x) {
        Key key = key_of(x, id);
        if (key >= least) {
            list.keys[atomicAdd(&list.count, 1)] = key;
        }
    });
    int i = threadIdx.x;
    for (int size = 2; size <= CANDIDATE_THREADS; size *= 2) {
        for (int distance = size / 2; distance > 0; distance /= 2) {
            __syncthreads();
            int other = i ^ distance;
            if (other > i) { // one thread of the two: the other must not even read
                Key a = list.keys[i], b = list.keys[other];
                if ((a < b) == ((i & size) == 0)) {
                    list.keys[i] = b, list.keys[other] = a;
                }
            }
        }
    }
    __syncthreads();
}
