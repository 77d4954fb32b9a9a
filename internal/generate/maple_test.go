package generate

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// bytesOf sums the tensors of a plan that keep holds for.
func bytesOf(p *plan, keep func(name string) bool) (tensors int, bytes int64) {
	for _, s := range p.shards {
		for _, t := range s.tensors() {
			if keep(t.Name) {
				tensors, bytes = tensors+1, bytes+t.Bytes()
			}
		}
	}
	return tensors, bytes
}

func TestMapleAsPublished(t *testing.T) {
	options := Options{Family: Maple}
	p := mustPlan(t, options)
	if tensors, bytes := bytesOf(p, func(string) bool { return true }); tensors != 18_651 || bytes != 40_428_060_672 {
		t.Errorf("%d tensors of %d bytes", tensors, bytes)
	}
	contract, ok, err := options.Contract()
	if err != nil || !ok || len(contract.Tensors) != len(p.quantization.Tensors) {
		t.Fatalf("a contract of %d tensors, error %v", len(contract.Tensors), err)
	}
	literal := 0
	for name, entry := range p.quantization.Tensors {
		if !slices.Equal(entry.Shape, contract.Tensors[name].Shape) {
			t.Errorf("%s: shape %v, want %v", name, entry.Shape, contract.Tensors[name].Shape)
		}
		if entry.Kind == manifest.KindLiteral {
			literal++
		}
	}
	if literal != 24*(4+3*256) {
		t.Errorf("%d literal entries", literal)
	}
}

// The published packing has 5,308,186,624 bytes in 463 tensors, with 350,060,544
// of them in six tensors of a four-bit embedding and head; here both are BF16.
func TestMaplePacked(t *testing.T) {
	options := Options{Family: MaplePacked}
	p := mustPlan(t, options)
	vocabulary := func(name string) bool { return name == headName || strings.Contains(name, "word_embeddings") }
	tensors, bytes := bytesOf(p, func(name string) bool { return !vocabulary(name) })
	if tensors != 463-6 || bytes != 5_308_186_624-350_060_544 {
		t.Errorf("%d tensors of %d bytes without embedding and head", tensors, bytes)
	}
	if tensors, bytes := bytesOf(p, vocabulary); tensors != 2 || bytes != 2*2*311_164_928 {
		t.Errorf("embedding and head: %d tensors of %d bytes", tensors, bytes)
	}
	entry := p.quantization.Tensors["model.layers.23.mlp.switch_mlp.down_proj.weight"]
	if !slices.Equal(entry.Shape, []int64{256, 2048, 512}) || entry.FormatID() != manifest.FormatMLXRowAlpha {
		t.Errorf("the last down projection is %v, %s", entry.Shape, entry.FormatID())
	}
	if _, ok, err := options.Contract(); ok || err != nil {
		t.Errorf("a contract of stacked experts: %v, error %v", ok, err)
	}
}

func TestFirstLayersOfMaple(t *testing.T) {
	p := mustPlan(t, Options{Family: Maple, Layers: 2, Vocabulary: 100})
	if got, want := len(p.quantization.Tensors), 2*777+3; got != want {
		t.Errorf("%d entries, want %d", got, want)
	}
	config := p.config.(mapleConfig)
	if config.Layers != 2 || len(config.LayerTypes) != 2 || config.Vocabulary != 100 {
		t.Errorf("config %+v", config)
	}
	if shape := p.quantization.Tensors["model.word_embeddings.weight"].Shape; !slices.Equal(shape, []int64{100, 2048}) {
		t.Errorf("embedding %v", shape)
	}
}

// Every row has one magnitude of its own, and a quarter each of zeros of both
// signs, of a and of -a.
func TestLiteralRows(t *testing.T) {
	const rowBytes = 4096
	block := make([]byte, blockBytes)
	literalRows(rowBytes)(newSource(3, "rows"), block)
	magnitudes := map[uint16]bool{}
	var counts [4]int
	for row := range slices.Chunk(block, rowBytes) {
		a := uint16(0)
		for v := range slices.Chunk(row, 2) {
			b := binary.LittleEndian.Uint16(v)
			kind := int(b >> 15)
			if m := b & 0x7fff; m != 0 {
				if kind += 2; a != 0 && m != a {
					t.Fatalf("a row has magnitudes %#x and %#x", a, m)
				}
				a = m
			}
			counts[kind]++
		}
		magnitudes[a] = true
	}
	if len(magnitudes) < 100 {
		t.Errorf("only %d magnitudes in %d rows", len(magnitudes), blockBytes/rowBytes)
	}
	for kind, n := range counts {
		if share := float64(n) / (blockBytes / 2); share < 0.245 || share > 0.255 {
			t.Errorf("kind %d is %.4f of all", kind, share)
		}
	}
}

// Files of headers are as long as those with values.
func TestHeadersOnly(t *testing.T) {
	options := Options{Family: Maple, Shards: 9, HeadersOnly: true}
	folder := filepath.Join(t.TempDir(), "weights")
	summary, err := Write(t.Context(), folder, options)
	if err != nil {
		t.Fatal(err)
	}
	tensors, bytes := 0, int64(0)
	for i, s := range mustPlan(t, options).shards {
		file, err := os.Open(filepath.Join(folder, s.name))
		if err != nil {
			t.Fatal(err)
		}
		header, err := safetensors.ReadHeader(file, summary.ShardBytes[i])
		if err != nil {
			t.Fatal(err)
		}
		tensors += len(header.Tensors)
		bytes += summary.ShardBytes[i] - header.DataStart
		if info, err := file.Stat(); err != nil || info.Size() != summary.ShardBytes[i] {
			t.Errorf("%s: %v, error %v, want %d bytes", s.name, info, err, summary.ShardBytes[i])
		}
		file.Close()
	}
	if tensors != 18_651 || bytes != 40_428_060_672 {
		t.Errorf("%d tensors of %d bytes", tensors, bytes)
	}
}

func mustPlan(t *testing.T, options Options) *plan {
	t.Helper()
	p, err := makePlan(options)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
