package main

import (
	"testing"

	"slipway/bundle/goruntime"
)

// A change of the runtime's source is a change of the program in every bundle:
// it has to be built and locked on purpose.
func TestRuntimeLockIsCurrent(t *testing.T) {
	carried, err := goruntime.ReadSource(source)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := goruntime.DecodeLock(carried.Lock)
	if err != nil {
		t.Fatal(err)
	}
	for _, device := range goruntime.Devices {
		if locked, ok := lock.Find(device); !ok || locked.Source != carried.Digest {
			t.Errorf("runtime/runtime.lock for %s is of source %s, the source is %s; run, where there is gcc: go run . rehearse --relock", device, locked.Source, carried.Digest)
		}
	}
}
