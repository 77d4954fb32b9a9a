package model

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/runtime/kernels"
	"slipway/runtime/weights"
)

// tolerance is the relative error ||d||/||ref|| that float32 against a float32
// reference may show.
const tolerance = 5e-5

// golden is a folder of reference values beside its checkpoint; testdata/golden
// holds ours, and SLIPWAY_GOLDEN names more by absolute paths, separated by
// colons. Of those, what a folder does not have is not compared, and the log says
// so.
type golden struct {
	name       string
	ours       bool
	checkpoint string // a folder that holds the checkpoint alone
	values     *safetensors.File
}

func goldens(t testing.TB) []golden {
	folders, err := filepath.Glob("testdata/golden/*")
	if err != nil || len(folders) < 4 {
		t.Fatalf("golden folders %v, error %v", folders, err)
	}
	var list []golden
	for _, folder := range folders {
		list = append(list, openGolden(t, folder))
	}
	for _, folder := range filepath.SplitList(os.Getenv("SLIPWAY_GOLDEN")) {
		if !filepath.IsAbs(folder) { // the test runs in its package's folder
			t.Fatalf("SLIPWAY_GOLDEN has the path %s; absolute paths are needed", folder)
		}
		g := openGolden(t, folder)
		g.ours = false
		list = append(list, g)
	}
	return list
}

// has reports whether the folder has a tensor. Ours must; what another one lacks
// is logged.
func (g golden) has(t testing.TB, name string) bool {
	_, ok := g.values.Header.Lookup(name)
	if !ok && g.ours {
		t.Fatalf("%s has no %s", g.name, name)
	}
	if !ok {
		t.Logf("%s has no %s: not compared", g.name, name)
	}
	return ok
}

func openGolden(t testing.TB, folder string) golden {
	g := golden{name: filepath.Base(folder), ours: true, checkpoint: t.TempDir(), values: openSafetensors(t, filepath.Join(folder, "golden.safetensors"))}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	absolute, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		switch name := entry.Name(); {
		case strings.HasPrefix(name, "golden."):
		case name == "ternary-codes.safetensors":
			packTernary(t, filepath.Join(folder, name), g.checkpoint)
		default:
			if err := os.Symlink(filepath.Join(absolute, name), filepath.Join(g.checkpoint, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return g
}

func openSafetensors(t testing.TB, path string) *safetensors.File {
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	tensors, err := safetensors.Open(file, info.Size())
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return tensors
}

func tensorBytes(t testing.TB, file *safetensors.File, name string) []byte {
	section, ok := file.Section(name)
	if !ok {
		t.Fatalf("no tensor %q", name)
	}
	data, err := io.ReadAll(section)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func floats(t testing.TB, file *safetensors.File, name string) []float32 {
	data := tensorBytes(t, file, name)
	values := make([]float32, len(data)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return values
}

func integers(t testing.TB, file *safetensors.File, name string) []int32 {
	data := tensorBytes(t, file, name)
	values := make([]int32, len(data)/4)
	for i := range values {
		values[i] = int32(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return values
}

// packTernary packs codes that stand one a byte four to a byte, and writes the
// file and the quantization manifest that describes it.
func packTernary(t testing.TB, source, folder string) {
	const name = "ternary-00001.safetensors"
	file := openSafetensors(t, source)
	quantization := manifest.Quantization{Tensors: map[string]manifest.Quantity{}}
	var tensors []safetensors.Tensor
	var data []byte
	for _, codes := range file.Header.Tensors {
		base, isCodes := strings.CutSuffix(codes.Name, ".codes")
		if !isCodes {
			continue
		}
		scales, _ := file.Header.Lookup(base + ".scales")
		quantization.Tensors[base] = manifest.Quantity{
			Kind: manifest.KindPacked2Bit, Shape: codes.Shape, GroupSize: groupSize(t, codes, scales),
			Codes: &manifest.StoredTensor{File: name, Tensor: codes.Name}, Scales: &manifest.StoredTensor{File: name, Tensor: scales.Name},
		}
		loose := tensorBytes(t, file, codes.Name)
		for i := 0; i < len(loose); i += 4 {
			data = append(data, loose[i]|loose[i+1]<<2|loose[i+2]<<4|loose[i+3]<<6)
		}
		codes.Shape = []int64{codes.Shape[0], codes.Shape[1] / 4}
		data = append(data, tensorBytes(t, file, scales.Name)...)
		tensors = append(tensors, codes, scales)
	}
	encoded, err := quantization.Encode()
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(folder, manifest.QuantizationPath), encoded)
	header, err := safetensors.EncodeHeader(tensors, nil)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(folder, name), append(header, data...))
}

// groupSize is how many weights of a row share a scale: 128, or what divides the
// row.
func groupSize(t testing.TB, codes, scales safetensors.Tensor) int64 {
	columns, groups := codes.Shape[1], scales.Shape[1]
	switch {
	case (columns+127)/128 == groups:
		return 128
	case columns%groups == 0:
		return columns / groups
	}
	t.Fatalf("%s: %d scales a row of %d weights", codes.Name, groups, columns)
	return 0
}

func writeFile(t testing.TB, path string, data []byte) {
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// testDevice is where the models of tests compute: nil for plain Go. What the
// tests of goldens ask holds for every implementation.
var testDevice *kernels.Device

func loadFolder(t testing.TB, folder string, limits Limits) *Model {
	limits.Device = testDevice
	checkpoint, err := weights.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer checkpoint.Close()
	m, err := Load(checkpoint, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func step(t testing.TB, m *Model, work ...Work) []Result {
	t.Helper()
	results, err := m.Step(work)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// stepLogits steps one slot and returns its last token's logits.
func stepLogits(t testing.TB, m *Model, slot int, tokens ...int32) []float32 {
	t.Helper()
	var logits []float32
	m.observe = func(layer int, values *kernels.Activation) {
		if layer < 0 {
			logits = slices.Clone(values.Row(0))
		}
	}
	defer func() { m.observe = nil }()
	step(t, m, Work{Slot: slot, Tokens: tokens, Sample: true})
	return logits
}

func relativeError(got, want []float32) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	difference, norm := 0.0, 0.0
	for i := range got {
		d := float64(got[i]) - float64(want[i])
		difference += d * d
		norm += float64(want[i]) * float64(want[i])
	}
	if norm == 0 {
		return math.Sqrt(difference)
	}
	return math.Sqrt(difference / norm)
}

// near reports a relative error above the tolerance, and NaN.
func near(t *testing.T, what string, got, want []float32) float64 {
	t.Helper()
	e := relativeError(got, want)
	if !(e <= tolerance) {
		t.Errorf("%s: relative error %.2g, at most %.0g allowed", what, e, tolerance)
	}
	return e
}

func (g golden) prompts() int {
	n := 0
	for ; ; n++ {
		if _, ok := g.values.Header.Lookup(fmt.Sprintf("ids.%d", n)); !ok {
			return n
		}
	}
}

// limits takes every prompt in one prefill, and its continuation.
func (g golden) limits(slots int) Limits {
	longest := 0
	for prompt := range g.prompts() {
		ids, _ := g.values.Header.Lookup(fmt.Sprintf("ids.%d", prompt))
		length := int(ids.Elements())
		if greedy, ok := g.values.Header.Lookup(fmt.Sprintf("greedy.%d", prompt)); ok {
			length += int(greedy.Elements())
		}
		longest = max(longest, length)
	}
	return Limits{Slots: slots, Context: longest, Prefill: longest}
}

// longest returns the longest prompt. Without one of 20 tokens the test ends.
func (g golden) longest(t testing.TB) (ids []int32) {
	for prompt := range g.prompts() {
		if other := integers(t, g.values, fmt.Sprintf("ids.%d", prompt)); len(other) > len(ids) {
			ids = other
		}
	}
	switch {
	case len(ids) >= 20:
	case g.ours:
		t.Fatalf("%s: the longest prompt has %d tokens, want 20", g.name, len(ids))
	default:
		t.Skipf("%s: the longest prompt has %d tokens, this test needs 20", g.name, len(ids))
	}
	return ids
}

func TestGolden(t *testing.T) {
	for _, g := range goldens(t) {
		t.Run(g.name, func(t *testing.T) {
			m := loadFolder(t, g.checkpoint, g.limits(2))
			worst := g.checkLayers(t, m)
			for prompt := range g.prompts() {
				worst = max(worst, g.checkLogits(t, m, prompt))
			}
			t.Logf("largest relative error %.2g", worst)
			g.checkGreedy(t, m)
		})
	}
}

// checkLogits compares the logits of a prompt's last positions: by one prefill
// up to each, and by decoding from the first of them on.
func (g golden) checkLogits(t *testing.T, m *Model, prompt int) (worst float64) {
	if !g.has(t, fmt.Sprintf("logits.%d", prompt)) {
		return 0
	}
	ids := integers(t, g.values, fmt.Sprintf("ids.%d", prompt))
	want := floats(t, g.values, fmt.Sprintf("logits.%d", prompt))
	positions := len(want) / m.Vocabulary()
	for i := range positions {
		end := len(ids) - positions + i + 1
		row := want[i*m.Vocabulary():][:m.Vocabulary()]
		m.Reset(0)
		worst = max(worst, near(t, fmt.Sprintf("prompt %d, prefill of %d", prompt, end), stepLogits(t, m, 0, ids[:end]...), row))
		if i == 0 {
			m.Reset(1)
			near(t, fmt.Sprintf("prompt %d, slot 1", prompt), stepLogits(t, m, 1, ids[:end]...), row)
		} else {
			worst = max(worst, near(t, fmt.Sprintf("prompt %d, step to %d", prompt, end), stepLogits(t, m, 1, ids[end-1]), row))
		}
	}
	return worst
}

// checkLayers compares every layer's output for prompt 1.
func (g golden) checkLayers(t *testing.T, m *Model) (worst float64) {
	if !g.has(t, "ids.1") {
		return 0
	}
	got := map[int][]float32{}
	m.observe = func(layer int, values *kernels.Activation) {
		for row := range m.program.Batch.Token {
			if layer >= 0 {
				got[layer] = append(got[layer], values.Row(row)...)
			}
		}
	}
	m.Reset(0)
	step(t, m, Work{Slot: 0, Tokens: integers(t, g.values, "ids.1")})
	m.observe = nil
	for layer := range got {
		name := fmt.Sprintf("hidden.1.%d", layer)
		if !g.has(t, name) {
			continue
		}
		worst = max(worst, near(t, name, got[layer], floats(t, g.values, name)))
	}
	if _, more := g.values.Header.Lookup(fmt.Sprintf("hidden.1.%d", len(got))); more || len(got) < 2 {
		t.Errorf("%d layers compared, the reference has others", len(got))
	}
	return worst
}

// checkGreedy feeds the reference's tokens and compares each choice where the
// reference's margin is larger than the error that the tolerance allows.
func (g golden) checkGreedy(t *testing.T, m *Model) {
	decided, steps, free := 0, 0, 0
	for prompt := range g.prompts() {
		if !g.has(t, fmt.Sprintf("greedy.%d", prompt)) || !g.has(t, fmt.Sprintf("margin.%d", prompt)) {
			continue
		}
		ids := integers(t, g.values, fmt.Sprintf("ids.%d", prompt))
		greedy := integers(t, g.values, fmt.Sprintf("greedy.%d", prompt))
		margin := floats(t, g.values, fmt.Sprintf("margin.%d", prompt))
		m.Reset(0)
		next, diverged := ids, false
		for i, want := range greedy {
			norm := 0.0
			m.observe = func(layer int, values *kernels.Activation) {
				if layer < 0 {
					for _, x := range values.Row(0) {
						norm += float64(x) * float64(x)
					}
				}
			}
			got := step(t, m, Work{Slot: 0, Tokens: next, Sample: true})[0].Token
			m.observe = nil
			steps++
			// Two logits may be off by the tolerance times the norm together.
			if float64(margin[i]) > 2*tolerance*math.Sqrt(norm) {
				decided++
				if got != want {
					t.Errorf("prompt %d, step %d: token %d, the reference has %d with margin %g", prompt, i, got, want, margin[i])
				}
			}
			if diverged = diverged || got != want; !diverged {
				free++
			}
			next = []int32{want}
		}
	}
	t.Logf("%d of %d greedy steps have a margin above the error; %d are equal from their prompt's start", decided, steps, free)
	if g.ours && decided < steps*9/10 {
		t.Errorf("%d of %d steps decided", decided, steps)
	}
}

// blockTolerance is the relative error of what one block adds, fed the
// reference's input: what float32 in another order of summation leaves. A device
// may show one and a half times what plain Go shows, or blockNoise.
const (
	blockTolerance = 5e-6
	blockNoise     = 5e-7
)

// Every block alone, fed the reference's input, adds what the reference's adds.
func TestGoldenBlocks(t *testing.T) {
	for _, g := range goldens(t) {
		t.Run(g.name, func(t *testing.T) {
			if !g.has(t, "ids.1") || !g.has(t, "hidden.1.0") {
				t.Skip("no layers to feed")
			}
			plain := g.plainBlockErrors(t)
			t.Logf("relative error of a block, at most %.2g", slices.Max(plain))
			for i, e := range plain {
				if !(e <= blockTolerance) {
					t.Errorf("block %d: relative error %.2g of what it adds, at most %.0g allowed", i+1, e, blockTolerance)
				}
			}
			if testDevice == nil {
				return
			}
			onDevice := g.blockErrors(t)
			t.Logf("on the device, at most %.2g", slices.Max(onDevice))
			for i, e := range onDevice {
				if limit := max(1.5*plain[i], blockNoise); !(e <= limit) {
					t.Errorf("block %d: relative error %.2g of what it adds, plain Go has %.2g", i+1, e, plain[i])
				}
			}
		})
	}
}

func (g golden) plainBlockErrors(t *testing.T) []float64 {
	device := testDevice
	testDevice = nil
	defer func() { testDevice = device }()
	return g.blockErrors(t)
}

// blockErrors are the relative errors of what each block adds to prompt 1.
func (g golden) blockErrors(t *testing.T) (list []float64) {
	m := loadFolder(t, g.checkpoint, g.limits(1))
	var input []float32
	m.observe = func(layer int, values *kernels.Activation) {
		if _, more := g.values.Header.Lookup(fmt.Sprintf("hidden.1.%d", layer+1)); layer < 0 || !more { // the last is normed
			return
		}
		want := floats(t, g.values, fmt.Sprintf("hidden.1.%d", layer))
		var got []float32
		for row := range m.program.Batch.Token {
			got = append(got, values.Row(row)...)
			copy(values.Row(row), want[row*values.Width():])
		}
		if layer > 0 {
			added, reference := make([]float32, len(got)), make([]float32, len(got))
			for i := range got {
				added[i], reference[i] = got[i]-input[i], want[i]-input[i]
			}
			list = append(list, relativeError(added, reference))
		}
		input = want
	}
	step(t, m, Work{Slot: 0, Tokens: integers(t, g.values, "ids.1")})
	if len(list) == 0 {
		t.Fatal("no block was compared")
	}
	return list
}
