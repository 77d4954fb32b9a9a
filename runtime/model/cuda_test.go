//go:build cuda

package model

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"slipway/runtime/kernels"
	"slipway/runtime/weights"
)

// onDevice runs bodies on a GPU.
func onDevice(t *testing.T, options kernels.DeviceOptions, bodies map[string]func(t *testing.T)) {
	if n, err := kernels.Devices(); n == 0 && os.Getenv("REQUIRE_GPU") == "" {
		t.Skip("no device: ", err)
	}
	device, err := kernels.OpenDevice(options)
	if err != nil {
		t.Fatal(err)
	}
	testDevice = device
	defer func() {
		testDevice = nil
		if err := device.Close(); err != nil {
			t.Error(err)
		}
	}()
	for name, body := range bodies {
		t.Run(name, body)
	}
}

// The tests of goldens, by graphs where nothing is observed.
func TestGoldenOnDevice(t *testing.T) {
	onDevice(t, kernels.DeviceOptions{}, map[string]func(t *testing.T){
		"Golden": TestGolden, "ReusedSlot": TestGoldenReusedSlot, "Invariance": TestGoldenInvariance, "AbacusAnswers": TestAbacusAnswers,
		"StepAllocatesNothing": TestStepAllocatesNothing, "StepDrawsBelowTokens": TestStepDrawsBelowTokens, "StepResults": TestStepResults,
		"Repeats": testRepeats, "TooLarge": testTooLarge, "LoadRefuses": testRefusedLoads,
	})
}

// What compares states needs them on the host.
func TestGoldenStatesOnDevice(t *testing.T) {
	onDevice(t, kernels.DeviceOptions{Mirrored: true}, map[string]func(t *testing.T){"Split": TestGoldenSplit, "Blocks": TestGoldenBlocks})
}

// testRepeats: the same steps give bitwise the same results, and the same as
// without observers, which have the kernels launched one by one.
func testRepeats(t *testing.T) {
	for _, g := range goldens(t) {
		ids := g.longest(t)
		var first []Result
		for round := range 6 {
			m := loadFolder(t, g.checkpoint, g.limits(3))
			if round%2 == 1 {
				m.observe = func(int, *kernels.Activation) {}
			}
			var results []Result
			for i := range 3 {
				work := []Work{{Slot: i, Tokens: ids[:len(ids)-2], Sample: true, Params: Sampling{TopLogprobs: 20}}}
				for slot := range i {
					work = append(work, Work{Slot: slot, Tokens: ids[:1], Sample: true, Params: Sampling{Temperature: 1, TopK: 50, TopLogprobs: 5}})
				}
				for _, r := range step(t, m, work...) {
					r.Top = slices.Clone(r.Top)
					results = append(results, r)
				}
			}
			if round == 0 {
				first = results
			} else if got, want := fmt.Sprint(results), fmt.Sprint(first); got != want {
				t.Errorf("%s, round %d: %s, first %s", g.name, round, got, want)
			}
		}
	}
}

// What the device has no memory for is refused before anything is read, with
// what would fit.
func testTooLarge(t *testing.T) {
	g := goldens(t)[0]
	checkpoint, err := weights.Open(g.checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	defer checkpoint.Close()
	limits := Limits{Slots: 1 << 16, Context: checkpoint.Config.Int("max_position_embeddings"), Device: testDevice}
	_, err = Load(checkpoint, limits)
	const pattern = `^load model: [0-9.]+ GB are needed and [0-9.]+ GB of .* memory are free: [0-9.]+ GB for weights and work, [0-9.]+ GB for each of 65536 sequences of [0-9]+ tokens; ([0-9]+) would fit$`
	match := regexp.MustCompile(pattern).FindStringSubmatch(fmt.Sprint(err))
	if match == nil {
		t.Fatalf("error %v", err)
	}
	if fits, err := strconv.Atoi(match[1]); err != nil || fits < 1 || fits >= limits.Slots {
		t.Errorf("%d would fit", fits)
	}
}

// What is refused says the same as in plain Go, and leaves no memory taken.
func testRefusedLoads(t *testing.T) {
	before, _, err := testDevice.Memory()
	if err != nil {
		t.Fatal(err)
	}
	TestLoadRefuses(t)
	after, _, err := testDevice.Memory()
	if err != nil {
		t.Fatal(err)
	}
	if lost := before - after; lost > 64<<20 { // what the driver keeps for graphs
		t.Errorf("%d bytes of the device's memory are not free again", lost)
	}
}
