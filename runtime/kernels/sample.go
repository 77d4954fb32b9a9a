package kernels

import (
	"math"
	"math/bits"
)

// Sampling says how a token is drawn. The zero value is greedy: the largest
// logit, the lowest id where several are equal. Penalties come first
// (repetition, then presence and frequency), then temperature, top-k, top-p and
// min-p, each over what the one before has left.
type Sampling struct {
	Temperature float32
	TopK        int
	TopP        float32
	MinP        float32
	Seed        uint64

	PresencePenalty   float32
	FrequencyPenalty  float32
	RepetitionPenalty float32

	TopLogprobs int
}

// Draw asks for a token after a row. Its random numbers are Philox(Seed,
// position of the token drawn): the token is the largest of logit/Temperature +
// Gumbel noise, one noise value for each id, so that neither the order of
// candidates nor other draws matter.
type Draw struct {
	Row       int     // of the batch
	Sequence  []int32 // the row's sequence, its own token last
	Generated int     // index in Sequence of the first generated token
	Params    Sampling

	// Results. Log-probabilities are over the unchanged logits.
	Token   int32
	Logprob float32
	Top     [MaxTopLogprobs]TokenLogprob // the first TopLogprobs are set
}

// MaxTopLogprobs bounds Sampling.TopLogprobs.
const MaxTopLogprobs = 20

// TokenLogprob is one candidate.
type TokenLogprob struct {
	Token   int32
	Logprob float32
}

// Sample appends the drawing of a token for each of the batch's draws from its
// row of logits. Ids from tokens on are padding: they are neither drawn nor among
// the top candidates, and count only in the norm of log-probabilities.
func (p *Program) Sample(logits *Activation, tokens int) {
	if p.backend != nil {
		p.backend.sample(logits, tokens)
		return
	}
	p.reserve(logits.width)
	for i := range p.scratch {
		s := &p.scratch[i]
		s.marks, s.order = make([]int32, logits.width), make([]int32, logits.width)
	}
	task := func(worker, begin, end int) {
		for i := begin; i < end; i++ {
			p.Batch.Draws[i].sample(logits.Row(i), tokens, &p.scratch[worker])
		}
	}
	p.then(func() { p.share(len(p.Batch.Draws), 16*logits.width, task) })
}

func (d *Draw) sample(raw []float32, tokens int, s *scratch) {
	d.topLogprobs(raw, tokens)
	logits := raw
	if d.penalised() {
		logits = s.float[:len(raw)]
		copy(logits, raw)
		d.penalise(logits, s.marks) // a prompt may hold any id
	}
	logits = logits[:tokens]
	if d.Params.Temperature > 0 {
		d.Token = d.random(logits, s.order[:tokens])
	} else {
		d.Token = argmax(logits)
	}
	d.Logprob = float32(float64(raw[d.Token]) - logSumExp(raw))
}

func argmax(logits []float32) int32 {
	best := 0
	for i, x := range logits {
		if x > logits[best] {
			best = i
		}
	}
	return int32(best)
}

func logSumExp(logits []float32) float64 {
	top, sum := logits[argmax(logits)], 0.0
	var part [256]float32
	for len(logits) > 0 {
		n := copy(part[:], logits)
		exponentials(part[:n], top)
		for _, x := range part[:n] {
			sum += float64(x)
		}
		logits = logits[n:]
	}
	return float64(top) + math.Log(sum)
}

// topLogprobs keeps the largest logits by insertion; equal ones stay in the
// order of their ids.
func (d *Draw) topLogprobs(raw []float32, tokens int) {
	n := min(d.Params.TopLogprobs, MaxTopLogprobs, tokens)
	if n <= 0 {
		return
	}
	top := d.Top[:0]
	for id, x := range raw[:tokens] {
		if len(top) == n && !(x > top[n-1].Logprob) {
			continue
		}
		if len(top) < n {
			top = append(top, TokenLogprob{})
		}
		i := len(top) - 1
		for ; i > 0 && x > top[i-1].Logprob; i-- {
			top[i] = top[i-1]
		}
		top[i] = TokenLogprob{int32(id), x}
	}
	norm := logSumExp(raw)
	for i := range top {
		top[i].Logprob = float32(float64(top[i].Logprob) - norm)
	}
}

func (d *Draw) penalised() bool {
	p := d.Params
	return p.PresencePenalty != 0 || p.FrequencyPenalty != 0 || p.RepetitionPenalty != 0 && p.RepetitionPenalty != 1
}

// penalise changes the logits of the sequence's tokens. marks is zero before
// and after; in between it holds 1 for a token of the sequence plus 2 for each
// time that it was generated.
func (d *Draw) penalise(logits []float32, marks []int32) {
	for i, token := range d.Sequence {
		marks[token] |= 1
		if i >= d.Generated {
			marks[token] += 2
		}
	}
	p := d.Params
	for _, token := range d.Sequence {
		mark := marks[token]
		if mark == 0 {
			continue // done
		}
		marks[token] = 0
		x := logits[token]
		if r := p.RepetitionPenalty; r != 0 && x > 0 {
			x /= r
		} else if r != 0 {
			x *= r
		}
		if count := mark >> 1; count > 0 {
			x -= p.PresencePenalty + float32(count)*p.FrequencyPenalty
		}
		logits[token] = x
	}
}

// random draws among the candidates that the cuts leave.
func (d *Draw) random(logits []float32, order []int32) int32 {
	p := d.Params
	temperature := float64(p.Temperature)
	top := float64(logits[argmax(logits)])
	floor := math.Inf(-1)
	if p.MinP > 0 {
		floor = top + temperature*math.Log(float64(p.MinP))
	}
	noise := gumbel{seed: p.Seed, position: uint32(len(d.Sequence)), block: -1}
	if p.TopK <= 0 && (p.TopP <= 0 || p.TopP >= 1) {
		best, bestScore := int32(0), math.Inf(-1)
		for id, x := range logits {
			if float64(x) < floor || float64(x)/temperature+maxGumbel <= bestScore {
				continue // cut, or no noise makes it the largest
			}
			if score := float64(x)/temperature + noise.of(int32(id)); score > bestScore {
				best, bestScore = int32(id), score
			}
		}
		return best
	}
	best, bestScore := int32(0), math.Inf(-1)
	for _, id := range d.cut(logits, order) {
		x := float64(logits[id])
		if x < floor {
			break // candidates descend
		}
		score := x/temperature + noise.of(id)
		if score > bestScore || score == bestScore && id < best {
			best, bestScore = id, score
		}
	}
	return best
}

// cut returns the candidates of top-k and top-p, largest logit first, lowest id
// first where equal. Top-p keeps the fewest that reach the probability.
func (d *Draw) cut(logits []float32, order []int32) []int32 {
	p := d.Params
	for i := range order {
		order[i] = int32(i)
	}
	h := heap{logits, order}
	for i := len(order)/2 - 1; i >= 0; i-- {
		h.sink(i)
	}
	temperature, top := float64(p.Temperature), float64(logits[order[0]])
	weight := func(id int32) float64 { return math.Exp((float64(logits[id]) - top) / temperature) }
	limit, total := len(logits), 0.0
	// Popped candidates gather at the end of order, the largest last.
	if p.TopK > 0 && p.TopK < limit {
		limit = p.TopK
		for range limit {
			total += weight(h.pop())
		}
		kept := order[len(order)-limit:]
		reverse(kept)
		if p.TopP <= 0 || p.TopP >= 1 {
			return kept
		}
		sum := 0.0
		for i, id := range kept {
			if sum += weight(id); sum >= float64(p.TopP)*total {
				return kept[:i+1]
			}
		}
		return kept
	}
	for id := range logits {
		total += weight(int32(id))
	}
	probability := float64(p.TopP)
	if probability <= 0 {
		probability = 1
	}
	count := 0
	for sum := 0.0; count < limit && sum < probability*total; count++ {
		sum += weight(h.pop())
	}
	kept := order[len(order)-count:]
	reverse(kept)
	return kept
}

func reverse(ids []int32) {
	for i, j := 0, len(ids)-1; i < j; i, j = i+1, j-1 {
		ids[i], ids[j] = ids[j], ids[i]
	}
}

// heap has the candidate that comes first at its root.
type heap struct {
	logits []float32
	ids    []int32
}

func (h *heap) before(i, j int) bool {
	a, b := h.ids[i], h.ids[j]
	return h.logits[a] > h.logits[b] || h.logits[a] == h.logits[b] && a < b
}

func (h *heap) sink(i int) {
	for {
		first := 2*i + 1
		if first >= len(h.ids) {
			return
		}
		if first+1 < len(h.ids) && h.before(first+1, first) {
			first++
		}
		if !h.before(first, i) {
			return
		}
		h.ids[i], h.ids[first] = h.ids[first], h.ids[i]
		i = first
	}
}

// pop moves the root behind the heap's end and returns it.
func (h *heap) pop() int32 {
	last := len(h.ids) - 1
	h.ids[0], h.ids[last] = h.ids[last], h.ids[0]
	id := h.ids[last]
	h.ids = h.ids[:last]
	h.sink(0)
	return id
}

// maxGumbel is above the noise of the largest u, 1 - 2^-33.
const maxGumbel = 23

// gumbel gives each id of a draw its noise -log(-log(u)).
type gumbel struct {
	seed     uint64
	position uint32
	block    int32 // the four ids that words belongs to
	words    [4]uint32
}

func (g *gumbel) of(id int32) float64 {
	if block := id >> 2; block != g.block {
		g.block = block
		g.words = philox([4]uint32{g.position, 0, uint32(block), 0}, [2]uint32{uint32(g.seed), uint32(g.seed >> 32)})
	}
	u := (float64(g.words[id&3]) + 0.5) * 0x1p-32
	return -math.Log(-math.Log(u))
}

// philox is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011).
func philox(counter [4]uint32, key [2]uint32) [4]uint32 {
	for range 10 {
		high0, low0 := bits.Mul32(0xD2511F53, counter[0])
		high1, low1 := bits.Mul32(0xCD9E8D57, counter[2])
		counter = [4]uint32{high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0}
		key[0] += 0x9E3779B9
		key[1] += 0xBB67AE85
	}
	return counter
}
