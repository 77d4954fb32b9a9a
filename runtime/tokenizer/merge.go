package tokenizer

import "sync"

// workspaces hold what merging needs, so that encoding allocates its result only.
var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// workspace is a word under merging: a linked list of symbols, indexed by the
// offset of their first byte, and the merges waiting.
type workspace struct {
	symbols []symbolNode
	queue   []uint64 // a binary heap of rank<<32 | offset of the left symbol
}

// maxKept is how many bytes of workspace are kept for the next text: a word of
// megabytes, which takes about fifty times its length, comes once.
const maxKept = 1 << 20

func (w *workspace) release() {
	if w.size() <= maxKept {
		workspaces.Put(w)
	}
}

// size returns bytes.
func (w *workspace) size() int { return 12*cap(w.symbols) + 8*cap(w.queue) }

// symbolNode is one symbol; offsets of its neighbours, -1 for none.
type symbolNode struct {
	id, previous, next int32
}

// merge appends the ids of word: starting from its bytes, the neighbours whose
// merge has the lowest rank are joined, leftmost first where equal, until none
// can be. It takes O(n log n) for n bytes.
func (w *workspace) merge(ids []int32, word string, v *vocabulary) []int32 {
	if len(word) == 1 {
		return append(ids, v.bytes[word[0]])
	}
	w.start(word, v)
	for len(w.queue) > 0 {
		top := w.pop()
		rank, left := uint32(top>>32), int32(uint32(top))
		node := &w.symbols[left]
		if node.id < 0 || node.next < 0 {
			continue // merged away since it was queued
		}
		joined, ok := v.merges[pair(node.id, w.symbols[node.next].id)]
		if !ok || joined.rank != rank {
			continue // a neighbour changed since it was queued
		}
		w.join(left, joined.id)
		if node.previous >= 0 {
			w.offer(node.previous, v)
		}
		w.offer(left, v)
	}
	for i := int32(0); i >= 0; i = w.symbols[i].next {
		ids = append(ids, w.symbols[i].id)
	}
	return ids
}

// start lists the bytes of word and queues the merges of neighbouring bytes.
func (w *workspace) start(word string, v *vocabulary) {
	w.symbols, w.queue = w.symbols[:0], w.queue[:0]
	for i := range len(word) {
		w.symbols = append(w.symbols, symbolNode{v.bytes[word[i]], int32(i) - 1, int32(i) + 1})
	}
	w.symbols[len(word)-1].next = -1
	for i := range len(word) - 1 {
		w.offer(int32(i), v)
	}
}

// offer queues the merge of the symbol at left with its right neighbour, if
// there is one.
func (w *workspace) offer(left int32, v *vocabulary) {
	node := w.symbols[left]
	if node.next < 0 {
		return
	}
	if joined, ok := v.merges[pair(node.id, w.symbols[node.next].id)]; ok {
		w.push(uint64(joined.rank)<<32 | uint64(left))
	}
}

// join makes one symbol of the one at left and its right neighbour.
func (w *workspace) join(left, id int32) {
	node := &w.symbols[left]
	gone := &w.symbols[node.next]
	node.id, node.next = id, gone.next
	gone.id = -1
	if node.next >= 0 {
		w.symbols[node.next].previous = left
	}
}

func (w *workspace) push(entry uint64) {
	w.queue = append(w.queue, entry)
	i := len(w.queue) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if w.queue[parent] <= entry {
			break
		}
		w.queue[i] = w.queue[parent]
		i = parent
	}
	w.queue[i] = entry
}

func (w *workspace) pop() uint64 {
	top := w.queue[0]
	last := len(w.queue) - 1
	entry := w.queue[last]
	w.queue = w.queue[:last]
	i := 0
	for {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && w.queue[child+1] < w.queue[child] {
			child++
		}
		if entry <= w.queue[child] {
			break
		}
		w.queue[i] = w.queue[child]
		i = child
	}
	if last > 0 {
		w.queue[i] = entry
	}
	return top
}
