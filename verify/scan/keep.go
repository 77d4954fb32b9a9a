package scan

// keepObserver keeps some of a tensor's bytes.
type keepObserver struct {
	ranges []Range // those that are not complete
	offset int64
	part   []byte // of the first of them
	kept   [][]byte
}

func (o *keepObserver) write(p []byte) {
	end := o.offset + int64(len(p))
	for len(o.ranges) > 0 && o.ranges[0].Begin < end {
		r := o.ranges[0]
		if o.part == nil {
			o.part = make([]byte, 0, r.End-r.Begin)
		}
		from, to := max(r.Begin, o.offset), min(r.End, end)
		o.part = append(o.part, p[from-o.offset:to-o.offset]...)
		if to < r.End {
			break
		}
		o.kept, o.part, o.ranges = append(o.kept, o.part), nil, o.ranges[1:]
	}
	o.offset = end
}

func (o *keepObserver) finish(facts *Tensor) { facts.Kept = o.kept }
