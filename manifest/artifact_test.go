package manifest

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// sample is a small artifact with one layer of each encoding.
func sample() Artifact {
	shard := File{Path: "weights/a&b<c.safetensors", Mode: ModeFile, Size: 5, Digest: DigestBytes([]byte("shard"))}
	return Artifact{
		Config: DescribeBytes(MediaTypeConfig, []byte("{}")),
		Layers: []Descriptor{
			RawLayer(KindWeight, shard),
			TarLayer(KindConfig, DigestBytes([]byte("tar")), 3),
		},
		Annotations: map[string]string{AnnotationSetDigest: DigestBytes([]byte("set")).String()},
	}
}

func TestArtifactGolden(t *testing.T) {
	got, err := sample().Encode()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/artifact.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, bytes.TrimSpace(want)) {
		t.Errorf("encoding changed, and with it every digest:\n got %s\nwant %s", got, want)
	}
	back, err := DecodeArtifact(got)
	if err != nil {
		t.Fatal(err)
	}
	file, err := back.Layers[0].RawFile()
	if err != nil || file.Path != "weights/a&b<c.safetensors" || file.Mode != ModeFile || file.Size != 5 {
		t.Errorf("raw file %+v, %v", file, err)
	}
}

func TestDecodeArtifactRefuses(t *testing.T) {
	clean, err := sample().Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, old, new, fault string }{
		{"clean", "", "", ""},
		{"schema version", `"schemaVersion":2`, `"schemaVersion":1`, "schemaVersion is 1"},
		{"docker manifest", MediaTypeManifest, "application/vnd.docker.distribution.manifest.v2+json", "media type"},
		{"no artifact type", `"artifactType":"` + ArtifactTypeModel + `",`, ``, "artifact type"},
		{"duplicate key", `"schemaVersion":2`, `"schemaVersion":2,"schemaVersion":2`, "given twice"},
		{"wrong case", `"layers":`, `"Layers":`, `must be written "layers"`},
		{"unknown key", `"layers":`, `"subject":{},"layers":`, `unknown key "subject"`},
		{"compressed layer", "weight.config.v1.tar", "weight.config.v1.tar+gzip", "layer media type"},
		{"foreign config", MediaTypeConfig, "application/vnd.oci.image.config.v1+json", "config media type"},
		{"negative size", `"size":5,"annotations"`, `"size":-5,"annotations"`, "size -5"},
		{"short digest", DigestBytes([]byte("tar")).String(), "sha256:12", "parse digest"},
		{"null layers", `"layers":[`, `"layers":null,"x":[`, "layers: null"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := strings.Replace(string(clean), tc.old, tc.new, 1)
			if tc.old != "" && in == string(clean) {
				t.Fatal("the vector changes nothing")
			}
			_, err := DecodeArtifact([]byte(in))
			if tc.fault == "" && err != nil || tc.fault != "" && (err == nil || !strings.Contains(err.Error(), tc.fault)) {
				t.Fatalf("error %v, want %q", err, tc.fault)
			}
		})
	}
}

func TestRawFileRefusesOtherAnnotations(t *testing.T) {
	clean := sample().Layers[0]
	for _, tc := range []struct{ old, new, fault string }{
		{`"mtime":"1970-01-01T00:00:00Z"`, `"mtime":"2026-01-01T00:00:00Z"`, "differ"},
		{`"uid":0`, `"uid":1000`, "differ"},
		{`"mode":420`, `"mode":511`, "neither 0644 nor 0755"},
		{`"size":5`, `"size":6`, "differ"},
		{`"name":`, `"NAME":`, `must be written "name"`},
	} {
		d := clean
		d.Annotations = map[string]string{}
		for k, v := range clean.Annotations {
			d.Annotations[k] = strings.Replace(v, tc.old, tc.new, 1)
		}
		if _, err := d.RawFile(); err == nil || !strings.Contains(err.Error(), tc.fault) {
			t.Errorf("%s: error %v, want %q", tc.new, err, tc.fault)
		}
	}
}

func TestTooManyLayers(t *testing.T) {
	a := sample()
	for len(a.Layers) <= MaxLayers {
		a.Layers = append(a.Layers, a.Layers[0])
	}
	if _, err := a.Encode(); err == nil {
		t.Errorf("%d layers were accepted", len(a.Layers))
	}
}

func FuzzDecodeArtifact(f *testing.F) {
	clean, err := sample().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(clean)
	f.Add([]byte(`{"schemaVersion":2}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		fuzzRoundTrip(t, in, DecodeArtifact, Artifact.Encode)
	})
}

// fuzzRoundTrip asks of every accepted input that its canonical encoding is
// accepted too and encodes to itself.
func fuzzRoundTrip[T any](t *testing.T, in []byte, decode func([]byte) (T, error), encode func(T) ([]byte, error)) {
	value, err := decode(in)
	if err != nil {
		return
	}
	first, err := encode(value)
	if err != nil {
		t.Fatalf("accepted %q but cannot encode it: %v", in, err)
	}
	again, err := decode(first)
	if err != nil {
		t.Fatalf("accepted %q but not its own encoding %q: %v", in, first, err)
	}
	second, err := encode(again)
	if err != nil || !bytes.Equal(first, second) {
		t.Fatalf("encodings differ: %q and %q (%v)", first, second, err)
	}
}

// The published schema is data of the specification; it is not part of this
// repository, so the test takes what it needs from it here: every key that a
// config may have. TestModelConfigKeys keeps the struct within them.
var modelSpecKeys = map[string][]string{
	"descriptor": {"createdAt", "authors", "family", "name", "docURL", "sourceURL", "datasetsURL", "version", "revision", "vendor", "licenses", "title", "description"},
	"config":     {"architecture", "format", "paramSize", "precision", "quantization", "capabilities"},
	"modelfs":    {"type", "diffIds"},
}

func TestModelConfigKeys(t *testing.T) {
	yes := true
	full := ModelConfig{
		ModelDescriptor{"t", []string{"a"}, "f", "n", "d", "s", []string{"u"}, "v", "r", "v", []string{"l"}, "t", "d"},
		ModelFacts{"a", "f", "p", "p", "q", &ModelCapabilities{Reasoning: &yes}},
		ModelFS{"layers", []Digest{DigestBytes(nil)}},
	}
	data, err := full.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]map[string]any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	for section, keys := range modelSpecKeys {
		if len(got[section]) != len(keys) {
			t.Errorf("%s has keys %v, the specification %v", section, got[section], keys)
		}
		for _, key := range keys {
			if _, ok := got[section][key]; !ok {
				t.Errorf("%s.%s is missing", section, key)
			}
		}
	}
}

func FuzzDecodeModelConfig(f *testing.F) {
	clean, err := ModelConfig{ModelFS: ModelFS{"layers", []Digest{DigestBytes(nil)}}}.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(clean)
	f.Fuzz(func(t *testing.T, in []byte) { fuzzRoundTrip(t, in, DecodeModelConfig, ModelConfig.Encode) })
}

func TestParameterSize(t *testing.T) {
	for count, want := range map[int64]string{0: "", 7: "7", 5_272_496: "5.3M", 3_570_052_096: "3.6B", 999: "999", 1000: "1.0K"} {
		if got := ParameterSize(count); got != want {
			t.Errorf("%d parameters: %q, want %q", count, got, want)
		}
	}
}
