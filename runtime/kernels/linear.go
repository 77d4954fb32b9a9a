package kernels

import "fmt"

const (
	blockColumns = 128 // inputs that are summed from zero
	tileRows     = 4   // outputs that are computed together
	rowBlock     = 32  // rows that share a decoded tile
)

// Projection is one matrix of a Linear and where its outputs go.
type Projection struct {
	Dst    *Activation
	Weight *Matrix
}

type linear struct {
	p     *Program
	src   *Activation
	outs  []Projection
	tiles []int // first tile of each projection, and the end
}

// Linear appends y = W x for each projection over one input. The same layout
// serves few rows and prefill: a tile of outputs is widened once for 32 rows.
func (p *Program) Linear(src *Activation, outs ...Projection) {
	l := &linear{p: p, src: src, outs: outs, tiles: []int{0}}
	for _, out := range outs {
		if err := out.Weight.Check(); err != nil || out.Weight.Columns != src.width || out.Weight.Rows != out.Dst.width || out.Dst.drawn != src.drawn {
			panic(fmt.Sprintf("kernels: linear of %d to %d values over a matrix [%d %d]: %v", src.width, out.Dst.width, out.Weight.Rows, out.Weight.Columns, err))
		}
		l.tiles = append(l.tiles, l.tiles[len(l.tiles)-1]+(out.Weight.Rows+tileRows-1)/tileRows)
	}
	if p.backend != nil {
		p.backend.linear(src, outs)
		return
	}
	task := l.compute
	p.then(func() {
		rows := p.rows(src)
		if rows > 0 {
			p.share(l.tiles[len(outs)], tileRows*src.width*rows, task)
		}
	})
}

func (l *linear) compute(worker, begin, end int) {
	s := &l.p.scratch[worker]
	out := 0
	for tile := begin; tile < end; tile++ {
		for tile >= l.tiles[out+1] {
			out++
		}
		first := (tile - l.tiles[out]) * tileRows
		for row, rows := 0, l.p.rows(l.src); row < rows; row += rowBlock {
			l.tile(s, l.outs[out], first, row, min(rowBlock, rows-row))
		}
	}
}

// tile computes outputs first..first+3 of a projection for count rows.
func (l *linear) tile(s *scratch, out Projection, first, row, count int) {
	m, src := out.Weight, l.src
	height := min(tileRows, m.Rows-first)
	lanes := s.lanes[:count*tileRows*8]
	clear(lanes)
	var scales [tileRows]float32
	direct := m.Format == Packed && count == 1 && height == tileRows // a tile would be read once only
	group, groupEnd := -1, 0
	for k := 0; k < m.Columns; {
		if k == groupEnd {
			group++
			groupEnd = m.groupEnd(group)
			for i := range height {
				scales[i] = m.scale(first+i, group)
			}
		}
		n := min(blockColumns, groupEnd-k)
		x := src.data[row*src.stride+k:]
		if direct {
			codes := m.Data[(first*m.Columns+k)/4:]
			if packedProduct(codes, m.Columns/4, x, n, &scales, lanes) {
				k += n
				continue
			}
		}
		padded := (n + 7) &^ 7
		for i := range tileRows {
			part := s.tile[i*blockColumns:][:padded]
			if i >= height {
				clear(part)
				continue
			}
			m.decode(part[:n], first+i, k)
			clear(part[n:])
		}
		tileProduct(&s.tile, x, src.stride, count, padded, &scales, lanes)
		k += n
	}
	for r := range count {
		dst := out.Dst.data[(row+r)*out.Dst.stride+first:]
		for i := range height {
			dst[i] = sumLanes((*[8]float32)(lanes[(r*tileRows+i)*8:]))
		}
	}
}

func sumLanes(a *[8]float32) float32 {
	return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]))
}

// tileProductGo adds scale * (tile x) to the lanes of count rows. x is the
// first row at the block's first column; n is a multiple of 8.
func tileProductGo(tile *[tileRows * blockColumns]float32, x []float32, stride, count, n int, scales *[tileRows]float32, lanes []float32) {
	for r := range count {
		row := x[r*stride:][:n]
		for i := range tileRows {
			dst := (*[8]float32)(lanes[(r*tileRows+i)*8:])
			addBlock(dst, tile[i*blockColumns:][:n], row, scales[i])
		}
	}
}

// addBlock adds scale times the lane sums of w*x to dst. The conversions keep
// compilers from fusing multiply and add.
func addBlock(dst *[8]float32, w, x []float32, scale float32) {
	var a0, a1, a2, a3, a4, a5, a6, a7 float32
	for len(w) >= 8 && len(x) >= 8 {
		a0 += float32(w[0] * x[0])
		a1 += float32(w[1] * x[1])
		a2 += float32(w[2] * x[2])
		a3 += float32(w[3] * x[3])
		a4 += float32(w[4] * x[4])
		a5 += float32(w[5] * x[5])
		a6 += float32(w[6] * x[6])
		a7 += float32(w[7] * x[7])
		w, x = w[8:], x[8:]
	}
	dst[0] += float32(scale * a0)
	dst[1] += float32(scale * a1)
	dst[2] += float32(scale * a2)
	dst[3] += float32(scale * a3)
	dst[4] += float32(scale * a4)
	dst[5] += float32(scale * a5)
	dst[6] += float32(scale * a6)
	dst[7] += float32(scale * a7)
}
