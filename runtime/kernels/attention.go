package kernels

import "math"

const (
	PageTokens = 64  // tokens of a cache page
	SplitKeys  = 256 // keys that share a maximum in Attention
)

// Heads is the shape of an attention layer. Where Gated, each query head's
// values are followed by as many gate values.
type Heads struct {
	Query, KV, Dim int
	Gated          bool
}

// QueryWidth returns the width of the query activation.
func (h Heads) QueryWidth() int {
	if h.Gated {
		return h.Query * h.Dim * 2
	}
	return h.Query * h.Dim
}

// Cache is the keys and values of one layer, in pages that the slots share:
// [page][kv head][token of the page][dim].
type Cache struct {
	heads        Heads
	keys, values []float32
}

// Cache allocates a layer's pages, enough for every slot at full length.
func (p *Program) Cache(heads Heads) *Cache {
	c := &Cache{heads: heads}
	if p.backend != nil {
		p.backend.cache(c)
		return c
	}
	c.keys, c.values = make([]float32, p.cacheSize(heads)), make([]float32, p.cacheSize(heads))
	return c
}

// cacheSize is how many values a layer's keys are, and its values.
func (p *Program) cacheSize(heads Heads) int {
	return p.shape.Slots * p.pagesPer * PageTokens * heads.KV * heads.Dim
}

// offset returns where a position of a slot's kv head begins.
func (c *Cache) offset(pages []int32, head, position int) int {
	page := int(pages[position/PageTokens])
	return ((page*c.heads.KV+head)*PageTokens + position%PageTokens) * c.heads.Dim
}

func (p *Program) slotPages(slot int32) []int32 {
	return p.Batch.Pages[int(slot)*p.pagesPer:][:p.pagesPer]
}

// HeadNormRope appends, for each row: q and k normed per head and rotated (in
// place for q), k and v written to the cache at the row's position.
func (p *Program) HeadNormRope(q, k, v *Activation, cache *Cache, qNorm, kNorm Norm, rotary *Rotary) {
	if p.backend != nil {
		p.backend.headNormRope(q, k, v, cache, qNorm, kNorm, rotary)
		return
	}
	h := cache.heads
	step := q.width / h.Query
	task := func(_, begin, end int) {
		for row := begin; row < end; row++ {
			pages, position := p.slotPages(p.Batch.Slot[row]), int(p.Batch.Position[row])
			for i := range h.Query {
				head := q.Row(row)[i*step:][:h.Dim]
				qNorm.apply(head, head)
				rotary.apply(head, row)
			}
			for i := range h.KV {
				at := cache.offset(pages, i, position)
				head := cache.keys[at:][:h.Dim]
				kNorm.apply(head, k.Row(row)[i*h.Dim:][:h.Dim])
				rotary.apply(head, row)
				copy(cache.values[at:][:h.Dim], v.Row(row)[i*h.Dim:])
			}
		}
	}
	p.then(func() { p.share(p.rows(q), 8*(q.width+2*k.width), task) })
}

// Attention appends dst = softmax(q k / sqrt(Dim)) v over positions 0 to the
// row's own, query head h reading kv head h / (Query/KV); where the heads are
// gated, times sigmoid(gate).
func (p *Program) Attention(dst, q *Activation, cache *Cache) {
	if p.backend != nil {
		p.backend.attention(dst, q, cache)
		return
	}
	h := cache.heads
	p.reserve(SplitKeys + h.Dim)
	step, group := q.width/h.Query, h.Query/h.KV
	task := func(worker, begin, end int) {
		scratch := p.scratch[worker].float
		for item := begin; item < end; item++ {
			row, kv := item/h.KV, item%h.KV
			pages, keys := p.slotPages(p.Batch.Slot[row]), int(p.Batch.Position[row])+1
			for i := kv * group; i < (kv+1)*group; i++ {
				query, out := q.Row(row)[i*step:][:step], dst.Row(row)[i*h.Dim:][:h.Dim]
				cache.attend(out, query[:h.Dim], pages, kv, keys, scratch)
				if h.Gated {
					for j, g := range query[h.Dim:] {
						out[j] *= sigmoid(g)
					}
				}
			}
		}
	}
	p.then(func() {
		longest := 0
		for _, run := range p.Batch.Runs {
			longest = max(longest, run.Start+run.Count)
		}
		p.share(p.rows(dst)*h.KV, 2*group*h.Dim*longest, task)
	})
}

// attend computes one head of one row.
func (c *Cache) attend(out, query []float32, pages []int32, kv, keys int, scratch []float32) {
	scores, part := scratch[:SplitKeys], scratch[SplitKeys:][:len(out)]
	factor := float32(1 / math.Sqrt(float64(c.heads.Dim)))
	clear(out)
	maximum, sum := float32(math.Inf(-1)), float32(0)
	for first := 0; first < keys; first += SplitKeys {
		scores := scores[:min(SplitKeys, keys-first)]
		top := float32(math.Inf(-1))
		for i := range scores {
			scores[i] = factor * dot(query, c.keys[c.offset(pages, kv, first+i):][:len(query)])
			top = max(top, scores[i])
		}
		exponentials(scores, top)
		clear(part)
		partSum := float32(0)
		for i, weight := range scores {
			partSum += weight
			addScaled(part, weight, c.values[c.offset(pages, kv, first+i):][:len(part)])
		}
		joined := max(maximum, top)
		old, added := exp32(maximum-joined), exp32(top-joined)
		scale(out, old)
		addScaled(out, added, part)
		sum = float32(sum*old) + float32(partSum*added)
		maximum = joined
	}
	scale(out, 1/sum)
}
