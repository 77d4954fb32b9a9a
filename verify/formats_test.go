package verify

import (
	"strings"
	"testing"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/report"
	"slipway/verify/ternary"
	"slipway/verify/ternary/ternarytest"
)

// repack stores a packed entry in another format, with random trits and scales
// of 1/64.
func (f *fixture) repack(name string, entry manifest.Quantity) *ternary.Layout {
	entry.Kind, entry.Shape = manifest.KindPacked2Bit, f.quant.Tensors[name].Shape
	l, err := ternary.LayoutOf(entry)
	if err != nil {
		panic(err)
	}
	r, values, dtype := random(name), make([]float32, l.Elements()), l.Scales.DType
	if dtype == 0 {
		dtype = safetensors.BF16
	}
	for i := range values {
		values[i] = float32(r.IntN(3)-1) * float32(1+int64(i)/l.UnitSize%7) / 64
	}
	s, err := l.Encode(values, dtype)
	if err != nil {
		panic(err)
	}
	put := func(as string, dtype safetensors.DType, shape []int64, data []byte) *manifest.StoredTensor {
		f.shards[ternaryShard][name+"."+as] = &stored{dtype, shape, data}
		return &manifest.StoredTensor{File: ternaryShard, Tensor: name + "." + as}
	}
	entry.Codes, entry.Scales = put("codes", l.Codes.DType, l.Codes.Shape, s.Codes), put("scales", dtype, l.Scales.Shape, s.Scales)
	if l.Biases != nil {
		entry.Biases = put("biases", dtype, l.Biases.Shape, s.Biases)
	}
	f.quant.Tensors[name] = entry
	return &l
}

// Every format that is known, those that tests alone know too, goes through all
// gates: good codes pass, and a code that stands for nothing is found where it is.
func TestEveryFormatIsJudged(t *testing.T) {
	for _, format := range ternary.Formats() {
		entry := manifest.Quantity{Format: format.ID}
		if entry.Kind = manifest.KindPacked2Bit; entry.ScaleUnit() == manifest.UnitGroup {
			entry.GroupSize = 256
		}
		t.Run(format.ID, func(t *testing.T) {
			f := newFixture()
			f.repack(gate0, entry)
			r := run(t, f.write(t), Options{Profile: toyProfile()})
			if r.Err() != nil {
				t.Fatalf("%v\n%s", r.Err(), text(t, r))
			}
			for _, tensor := range r.Tensors {
				if h := tensor.Histogram; tensor.Name == gate0 && (h == nil || h[0] < 20000 || h[1] < 20000 || h[2] < 20000 || h[3] != 0 || h[0]+h[1]+h[2] != 256*256) {
					t.Errorf("histogram %v", h)
				}
			}
		})
		t.Run(format.ID+", bad code", func(t *testing.T) {
			f := newFixture()
			l := f.repack(gate0, entry)
			at, slot := l.Slot(37*256 + 11)
			codes := f.codes(gate0).data
			if b, ok := format.Packing.Set(codes[at], slot, ternary.Bad); ok {
				codes[at] = b
			} else {
				codes[at] = 1 // of five trits, none give it
			}
			want := format.Packing.BadOne + " stands 1 times, first at row 37, input 11"
			if format.ID == ternarytest.TQ1 {
				want = format.Packing.BadOne + " stands 5 times, first at row 37, input 11"
			}
			vector{names: want}.look(t, onlyTernaryFails(t, f), "ternary", report.Error)
		})
		t.Run(format.ID+", scale zero", func(t *testing.T) {
			f := newFixture()
			f.repack(gate0, entry)
			clear(f.scales(gate0).data)
			if biases := f.shards[ternaryShard][gate0+".biases"]; biases != nil {
				clear(biases.data)
			}
			vector{names: "s have scale zero over codes that are not, the first at "}.look(t, onlyTernaryFails(t, f), "ternary", report.Error)
		})
	}
}

func onlyTernaryFails(t *testing.T, f *fixture) *report.Report {
	t.Helper()
	r := run(t, f.write(t), Options{Profile: toyProfile()})
	if got := r.Failed(); strings.Join(got, " ") != "ternary" {
		t.Fatalf("gates %v fail\n%s", got, text(t, r))
	}
	return r
}

// Padding between codes, and behind the last code of a row, is looked at.
func TestPaddingOfEveryKind(t *testing.T) {
	for _, tc := range []struct {
		name  string
		entry manifest.Quantity
		at    int64
		code  byte
		row   string
	}{
		{gate0, manifest.Quantity{Format: ternarytest.TQ1, GroupSize: 256}, 5*52 + 51, 255, "packed row 5"}, // a fifth trit in a byte of four
		{padded, manifest.Quantity{Format: manifest.FormatCompressedTensors, Unit: manifest.UnitRow}, 3*8 + 7, 0x40, "packed row 3"},
	} {
		f := newFixture()
		if tc.name == padded {
			f.edit(gate0, func(e *manifest.Quantity) { e.Shape = []int64{256, 20} })
		}
		f.repack(gate0, tc.entry)
		f.codes(gate0).data[tc.at] = tc.code
		profile := toyProfile()
		if tc.name == padded {
			profile = withoutBase()
		}
		r := run(t, f.write(t), Options{Profile: profile})
		vector{names: "1 codes of the padding are not its code, the first in " + tc.row}.look(t, r, "ternary", report.Error)
	}
}

// padded says that an entry is to have rows which end within a word.
const padded = "padded"

// What an entry says of its scales has to be so: scale_dtype, unit, group_size
// and axis, in every type that scales may have.
func TestWhatAnEntrySaysOfItsScales(t *testing.T) {
	axis := func(a int64) func(*manifest.Quantity) { return func(e *manifest.Quantity) { e.Axis = &a } }
	for _, tc := range []struct {
		name  string
		alter func(*manifest.Quantity)
		fault string
	}{
		{"type", func(e *manifest.Quantity) { e.ScaleDType = "BF16" }, ""},
		{"another type", func(e *manifest.Quantity) { e.ScaleDType = "F16" }, "not of the type that the entry gives"},
		{"a wider type", func(e *manifest.Quantity) { e.ScaleDType = "F32" }, "not of the type that the entry gives"},
		{"axis", axis(1), ""},
		{"another axis", axis(0), "axis 0 is not the last one"},
		{"unit", func(e *manifest.Quantity) { e.Unit = manifest.UnitGroup }, ""},
		{"rows", func(e *manifest.Quantity) { e.Unit, e.GroupSize = manifest.UnitRow, 0 }, "not exactly one of the scales for each row"},
		{"one in all", func(e *manifest.Quantity) { e.Unit, e.GroupSize = manifest.UnitTensor, 0 }, "not exactly one of the scales for each tensor"},
		{"another group", func(e *manifest.Quantity) { e.GroupSize = 128 }, "not exactly one of the scales for each group"},
		{"a group that does not divide", func(e *manifest.Quantity) { e.GroupSize = 96 }, "256 inputs are not a multiple of group_size 96"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture()
			f.repack(gate0, manifest.Quantity{GroupSize: 64}) // BF16
			f.edit(gate0, tc.alter)
			if tc.fault == "" {
				if r := run(t, f.write(t), Options{Profile: toyProfile()}); r.Err() != nil {
					t.Fatalf("%v\n%s", r.Err(), text(t, r))
				}
				return
			}
			vector{names: tc.fault}.look(t, onlyTernaryFails(t, f), "ternary", report.Error)
		})
	}
}
