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
	if locked, ok := lock.Find("cpu"); !ok || locked.Source != carried.Digest {
		t.Errorf("runtime/runtime.lock is of source %s, the source is %s; run: go run . rehearse --relock", locked.Source, carried.Digest)
	}
}
