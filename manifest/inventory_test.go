package manifest

import (
	"strings"
	"testing"
)

func sampleInventory() Inventory {
	return Inventory{[]File{
		{"serve.sh", ModeExecutable, 2, DigestBytes([]byte("hi"))},
		{"weights/a.safetensors", ModeFile, 0, DigestBytes(nil)},
	}}
}

func TestInventory(t *testing.T) {
	clean, err := sampleInventory().Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, old, new, fault string }{
		{"clean", "", "", ""},
		{"schema", `"schema": 1`, `"schema": 2`, "schema 2"},
		{"mode", `"0755"`, `"0777"`, "neither 0644 nor 0755"},
		{"order", `"serve.sh"`, `"x.sh"`, "does not come after"},
		{"itself", `"serve.sh"`, `"inventory.json"`, "lists itself"},
		{"escape", `"serve.sh"`, `"../serve.sh"`, "'..'"},
		{"digest", DigestBytes(nil).Hex(), "00", "parse digest"},
		{"negative", `"size": 2`, `"size": -2`, "size -2"},
		{"fractional", `"size": 2`, `"size": 2.0`, "want a whole number"},
		{"key case", `"sha256"`, `"SHA256"`, `must be written "sha256"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := strings.Replace(string(clean), tc.old, tc.new, 1)
			_, err := DecodeInventory([]byte(in))
			if tc.fault == "" && err != nil || tc.fault != "" && (err == nil || !strings.Contains(err.Error(), tc.fault)) {
				t.Fatalf("error %v, want %q", err, tc.fault)
			}
		})
	}
}

// The value is what GNU coreutils 9.1 printed for the two files.
func TestSetDigestGolden(t *testing.T) {
	want := "sha256:72cb476731838336e76473b918cfefb5ff04522f1dc6b220539e55c5ed301fba"
	if got := SetDigest(sampleInventory().Files).String(); got != want {
		t.Errorf("set digest %s, want %s", got, want)
	}
	reversed := sampleInventory().Files
	reversed[0], reversed[1] = reversed[1], reversed[0]
	if got := SetDigest(reversed).String(); got != want {
		t.Errorf("the order of the files changes the set digest to %s", got)
	}
}

func FuzzDecodeInventory(f *testing.F) {
	clean, err := sampleInventory().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(clean)
	f.Fuzz(func(t *testing.T, in []byte) { fuzzRoundTrip(t, in, DecodeInventory, Inventory.Encode) })
}
