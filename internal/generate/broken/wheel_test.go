package broken

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"slipway/verify/wheel"
)

// What lies below X.whl/ becomes a wheel without a fault, and nothing else does.
func TestPackWheels(t *testing.T) {
	files := map[string]file{
		"wheels/a_b-1.0-py3-none-any.whl/a_b/__init__.py": {data: []byte("x = 1\n")},
		"wheels/a_b-1.0-py3-none-any.whl/c.py":            {data: nil},
		"code/server.py":                                  {data: []byte("import a_b\n")},
	}
	if err := packWheels(files); err != nil {
		t.Fatal(err)
	}
	packed := files["wheels/a_b-1.0-py3-none-any.whl"].data
	facts := wheel.Read(context.Background(), bytes.NewReader(packed), int64(len(packed)), wheel.Options{Weights: func(string, int64, []byte) string { return "" }})
	if len(files) != 2 || facts.Err != nil || len(facts.Faults) != 0 || facts.Members != 5 {
		t.Errorf("%d files; the wheel: %+v", len(files), facts)
	}
	again := map[string]file{"x.whl/a.py": {}}
	if err := packWheels(again); err == nil || !strings.Contains(err.Error(), "x.whl: is no wheel's name") {
		t.Errorf("a name that says nothing: %v", err)
	}
	if data, err := packWheel("a_b-1.0-py3-none-any.whl", map[string][]byte{"a_b/__init__.py": []byte("x = 1\n"), "c.py": nil}); err != nil || !slices.Equal(data, packed) {
		t.Errorf("packed again it differs (%v)", err)
	}
}
