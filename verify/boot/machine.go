package boot

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"slipway/verify/profiles"
	"slipway/verify/words"
)

// machine is what the measurements were made on.
type machine struct {
	text string
	accelerator
}

// accelerator is this machine's; the zero value is none.
type accelerator struct {
	card           string // as the driver names it
	bytesPerSecond float64
}

// bandwidths are the memory bandwidths of known accelerators in bytes a second,
// from their makers' data sheets, by words of the driver's name; the first entry
// all of whose words are there counts.
var bandwidths = []struct {
	words          string
	bytesPerSecond float64
}{
	{"H200", 4.8e12}, {"GH200", 4.0e12}, {"B200", 8e12},
	{"H100 NVL", 3.9e12}, {"H100 PCIe", 2.0e12}, {"H100", 3.35e12}, {"H800", 3.35e12}, {"H20", 4.0e12},
	{"A100 80GB PCIe", 1.935e12}, {"A100 80GB", 2.039e12}, {"A100", 1.555e12}, {"A800 80GB", 2.039e12},
	{"L40S", 864e9}, {"L40", 864e9}, {"L4", 300e9}, {"A40", 696e9}, {"A30", 933e9}, {"A10G", 600e9}, {"A10", 600e9}, {"T4", 320e9}, {"V100", 900e9},
	{"RTX 6000 Ada", 960e9}, {"RTX A6000", 768e9},
	{"RTX 5090", 1.792e12}, {"RTX 4090", 1.008e12}, {"RTX 3090", 936e9}, {"RTX 4080", 717e9}, {"RTX 3080", 760e9},
}

// bandwidthOf returns the memory bandwidth of a card; 0 where it is unknown.
func bandwidthOf(card string) float64 {
	have := strings.FieldsFunc(card, func(r rune) bool { return r == ' ' || r == '-' || r == '_' })
	for _, known := range bandwidths {
		missing := slices.ContainsFunc(strings.Fields(known.words), func(word string) bool {
			return !slices.ContainsFunc(have, func(h string) bool { return strings.EqualFold(h, word) })
		})
		if !missing {
			return known.bytesPerSecond
		}
	}
	return 0
}

// describeMachine reads what Linux says of the machine below root; elsewhere
// little is known.
func describeMachine(root string) machine {
	m := machine{text: fieldOf(filepath.Join(root, "proc/cpuinfo"), "model name", runtime.GOARCH) + ", " + words.Plural(runtime.NumCPU(), "core")}
	if memory := fieldOf(filepath.Join(root, "proc/meminfo"), "MemTotal", ""); memory != "" {
		var kib int64
		if _, err := fmt.Sscanf(memory, "%d kB", &kib); err == nil {
			m.text += fmt.Sprintf(", %.1f GiB of memory", float64(kib)/(1<<20))
		}
	}
	cards, _ := filepath.Glob(filepath.Join(root, "proc/driver/nvidia/gpus/*/information"))
	if len(cards) > 0 {
		m.card = fieldOf(cards[0], "Model", "an unknown card")
		m.bytesPerSecond = bandwidthOf(m.card)
		m.text += fmt.Sprintf(", %d x %s", len(cards), m.card)
	}
	return m
}

// fieldOf returns the value of the first line "name : value" of a file.
func fieldOf(file, name, otherwise string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return otherwise
	}
	for line := range strings.Lines(string(data)) {
		key, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return otherwise
}

// scaling says how a time that was measured here becomes one on the grader's
// accelerator.
type scaling struct {
	factor float64 // of the time
	text   string  // "" where nothing had to be scaled
	slower bool    // it is at most the time here, and nobody knows how much less
	blind  bool    // nobody knows whether more or less
}

// scaleTo scales by memory bandwidth, which is what bounds decoding. A processor
// is slower than any accelerator that a profile names.
func (a accelerator) scaleTo(device *profiles.Device) scaling {
	switch {
	case device == nil:
		return scaling{factor: 1}
	case a.card == "":
		return scaling{factor: 1, slower: true, text: "measured without an accelerator, not scaled to " + device.Name}
	case a.bytesPerSecond == 0 || device.BytesPerSecond == 0:
		return scaling{factor: 1, blind: !strings.EqualFold(a.card, device.Name), text: fmt.Sprintf("measured on %s, not scaled to %s: the bandwidth of one of them is unknown", a.card, device.Name)}
	}
	factor := a.bytesPerSecond / float64(device.BytesPerSecond)
	if factor > 0.99 && factor < 1.01 {
		return scaling{factor: 1}
	}
	return scaling{factor: factor, text: fmt.Sprintf("measured on %s, and scaled by %.3g, the ratio of the memory bandwidths, to %s", a.card, factor, device.Name)}
}
