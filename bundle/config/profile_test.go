package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"slipway/manifest"
	"slipway/verify/profiles"
)

const qwenContract = "qwen3.5-4b.contract.json"

// contractOf is a contract of one tensor.
func contractOf(t *testing.T, repository, revision string) []byte {
	t.Helper()
	data, err := manifest.Contract{
		Schema: 1, Repository: repository, Revision: revision, TiedHead: true,
		Tensors: map[string]manifest.ContractTensor{"a.weight": {DType: "BF16", Shape: []int64{2, 3}, Role: manifest.RoleBackbone}},
	}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func shippedSource(t *testing.T, name string) string {
	t.Helper()
	data, ok := profiles.Shipped(name)
	if !ok {
		t.Fatalf("profile %s is not shipped", name)
	}
	return string(data)
}

func TestLoadProfilePractice(t *testing.T) {
	p, digest, err := LoadProfile("practice")
	if err != nil {
		t.Fatal(err)
	}
	if want := manifest.DigestBytes([]byte(shippedSource(t, "practice"))); digest != want {
		t.Errorf("digest %s, want %s", digest, want)
	}
	wantTernary := &profiles.Ternary{
		FractionAbove: profiles.Ratio{Numerator: 95, Denominator: 100}, StoredAtMost: profiles.Ratio{Numerator: 11, Denominator: 10},
		Counting: "observed", GroupMinimum: 32, Formats: []string{"packed_2bit", "literal"}, WhenDeclared: true,
	}
	if p.Name != "practice" || len(p.Bases) != 0 || !reflect.DeepEqual(p.Ternary, wantTernary) {
		t.Errorf("got %+v, ternary %+v", p, p.Ternary)
	}
	if len(p.Required) != 0 {
		t.Errorf("required %+v", p.Required)
	}
	for _, decided := range []string{"paths", "digests", "files", "declared", "size", "safetensors", "index", "coverage", "ternary", "stored", "data", "lookup", "script", "secrets", "config"} {
		if !slices.Contains(p.Gates, decided) || slices.Contains(p.MayUndecided, decided) {
			t.Errorf("gate %s is left out or may stay undecided", decided)
		}
	}
}

func TestParseProfileTernaryChat(t *testing.T) {
	folder := fstest.MapFS{qwenContract: {Data: contractOf(t, "Qwen/Qwen3.5-4B", "851bf6e806efd8d0a36b00ddf55e13ccb7b8cd0a")},
		"grader.image.json": {Data: []byte(`{"schema":1,"submission":"/submission","absent":["accelerate"]}`)}}
	p, err := ParseProfile([]byte(shippedSource(t, "ternary-chat")), "ternary-chat.hcl", folder)
	if err != nil {
		t.Fatal(err)
	}
	want := profiles.Load{
		Endpoint: "/v1/chat/completions", Concurrency: 16, MaxTokens: 4096, Temperature: 0,
		StartSeconds: 300, RequestSeconds: 300, TotalSeconds: 82800, Port: 8000, Attempts: 3,
	}
	if p.Load != want {
		t.Errorf("load %+v", p.Load)
	}
	if len(p.Bases) != 1 || p.Bases[0].Repository != "Qwen/Qwen3.5-4B" || p.Bases[0].Revision != "851bf6e806efd8d0a36b00ddf55e13ccb7b8cd0a" || p.Bases[0].Contract == nil {
		t.Errorf("bases %+v", p.Bases)
	}
	if want := (profiles.Device{Name: "H100", MemoryBytes: 80 << 30, BytesPerSecond: 3_350_000_000_000}); p.Device == nil || *p.Device != want {
		t.Errorf("device %+v", p.Device)
	}
	if p.Image == nil || !slices.Equal(p.Image.Absent, []string{"accelerate"}) || p.Source != manifest.DigestBytes(folder["grader.image.json"].Data) {
		t.Errorf("image %+v of digest %s", p.Image, p.Source)
	}
	required := map[string]bool{}
	for _, r := range p.Required {
		required[r.Path] = r.Generated
	}
	if want := map[string]bool{
		"serve.sh": false, "architecture.json": true, "STARTING_ARTIFACT.json": true, "backbone_contract.json": true,
		"quantization_manifest.json": false, "DATA.md": false, "provenance/*.log": false,
	}; !reflect.DeepEqual(required, want) {
		t.Errorf("required %v", required)
	}
	if p.Ternary == nil || !p.Ternary.ForbidsUnreferenced() {
		t.Errorf("ternary rule %+v", p.Ternary)
	}
	if len(p.Gates) != len(gateNames) || p.VisionMTP != profiles.MayOmit || p.MaxBytes != 0 {
		t.Errorf("%d gates, vision and MTP %s, %d bytes", len(p.Gates), p.VisionMTP, p.MaxBytes)
	}
}

// Every shipped profile loads, with the contracts that ship beside it.
func TestLoadShippedProfiles(t *testing.T) {
	if got := profiles.Names(); !slices.Equal(got, []string{"drafter", "practice", "ternary-chat", "vision-chat"}) {
		t.Fatalf("shipped: %v", got)
	}
	for _, name := range profiles.Names() {
		p, _, err := LoadProfile(name)
		if err != nil {
			t.Error(err)
		} else if p.Name != name {
			t.Errorf("profile %s calls itself %q", name, p.Name)
		}
	}
}

func TestLoadProfileFile(t *testing.T) {
	dir := t.TempDir()
	source := strings.Replace(shippedSource(t, "ternary-chat"), qwenContract, "contracts/own.json", 1)
	writeFiles(t, dir, []string{"own.hcl"}, source)
	writeFiles(t, dir, []string{"contracts/own.json"}, string(contractOf(t, "Qwen/Qwen3.5-4B", "851bf6e806efd8d0a36b00ddf55e13ccb7b8cd0a")))
	writeFiles(t, dir, []string{"grader.image.json"}, `{"schema":1}`)
	p, digest, err := LoadProfile(filepath.Join(dir, "own.hcl"))
	if err != nil || digest != manifest.DigestBytes([]byte(source)) || len(p.Bases[0].Contract.Tensors) != 1 {
		t.Fatalf("%v, %s, %+v", err, digest, p.Bases)
	}
	if err := os.Remove(filepath.Join(dir, "contracts", "own.json")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := LoadProfile(filepath.Join(dir, "own.hcl")); err == nil || !strings.Contains(err.Error(), "contract contracts/own.json") {
		t.Errorf("without its contract: %v", err)
	}
	elsewhere := filepath.Join(t.TempDir(), "own.json")
	if err := errors.Join(os.WriteFile(elsewhere, contractOf(t, "Qwen/Qwen3.5-4B", "851bf6e806efd8d0a36b00ddf55e13ccb7b8cd0a"), 0o644),
		os.Symlink(elsewhere, filepath.Join(dir, "contracts", "own.json"))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := LoadProfile(filepath.Join(dir, "own.hcl")); err == nil || !strings.Contains(err.Error(), "contract contracts/own.json: path escapes from parent") {
		t.Errorf("with a link to another folder's: %v", err)
	}
}

// The task has a floor, and each vocabulary its own continuations: the shipped
// profile carries none. The example's is the same with those of its target.
func TestDraftersHaveTheirOwnContinuations(t *testing.T) {
	shipped, _, err := LoadProfile("drafter")
	if err != nil {
		t.Fatal(err)
	}
	if shipped.Quality != nil || shipped.Floor != 4.6 {
		t.Errorf("quality %+v, floor %v", shipped.Quality, shipped.Floor)
	}
	examples := filepath.Join("..", "..", "examples", "abacus")
	for _, file := range []string{filepath.Join(examples, "drafter", "bundle.hcl"), filepath.Join(examples, "drafter-cuda.hcl")} {
		bundle, err := LoadBundle(file)
		if err != nil {
			t.Fatal(err)
		}
		own, _, err := LoadProfile(bundle.ProfileSource())
		if err != nil {
			t.Fatal(err)
		}
		if own.Quality == nil || len(own.Quality.Continuations) == 0 || own.Quality.Tau != shipped.Floor {
			t.Fatalf("%s: quality %+v", file, own.Quality)
		}
		own.Name, own.Description, own.Quality, own.Floor = shipped.Name, shipped.Description, nil, shipped.Floor
		if !reflect.DeepEqual(own, shipped) {
			t.Errorf("%s: %+v\nis not the shipped profile:\n%+v", file, own, shipped)
		}
	}
}

// The vision task's base stays as it is, every body may be large, and its floor
// is for questions that somebody brings.
func TestLoadProfileVisionChat(t *testing.T) {
	p, _, err := LoadProfile("vision-chat")
	if err != nil {
		t.Fatal(err)
	}
	want := profiles.Load{
		Endpoint: "/v1/chat/completions", Concurrency: 16, MaxTokens: 4096, StartSeconds: 300, RequestSeconds: 300, TotalSeconds: 3600,
		Port: 8000, Attempts: 3, GradedRequests: 900, BodyBytes: 5 << 20,
	}
	if p.Load != want || p.Quality != nil || p.Floor != 0.438 || p.Ternary != nil || p.VisionMTP != profiles.Added {
		t.Errorf("load %+v, quality %+v, floor %v, ternary %+v, vision and MTP %s", p.Load, p.Quality, p.Floor, p.Ternary, p.VisionMTP)
	}
	if len(p.Bases) != 1 || p.Bases[0].Revision != "ac1ddd79d2b5cb4406f5d2bebdf95406ce505a07" || len(p.Bases[0].Contract.Tensors) != 18651 {
		t.Errorf("bases %+v", p.Bases)
	}
	for _, gate := range []string{"ternary", "stored", "text-only"} {
		if slices.Contains(p.Gates, gate) {
			t.Errorf("gate %s is of text models", gate)
		}
	}
}

// Images of questions lie beside their file.
func TestQuestionsWithImages(t *testing.T) {
	source := strings.Replace(shippedSource(t, "practice"), `"abacus.questions.jsonl"`, `"below/q.jsonl"`, 1)
	p, err := ParseProfile([]byte(source), "p.hcl", fstest.MapFS{"grader.image.json": {Data: []byte(`{"schema":1}`)},
		"below/q.jsonl": {Data: []byte(`{"id":"1","image":"images/a.gif"}`)}, "below/images/a.gif": {Data: []byte("GIF89a")}})
	if err != nil || len(p.Quality.Images) != 1 || string(p.Quality.Images["images/a.gif"]) != "GIF89a" {
		t.Errorf("%+v, %v", p.Quality, err)
	}
}

// What a profile does not say is unknown, but for the port and the number of
// attempts, which have a value everywhere.
func TestProfileLeavesOut(t *testing.T) {
	source := shippedSource(t, "practice")
	for _, line := range []string{"  image       = \"grader.image.json\"\n", "  port            = 8000\n", "  attempts        = 3\n", "  graded_requests = 900\n"} {
		if !strings.Contains(source, line) {
			t.Fatalf("%q is not part of the profile", line)
		}
		source = strings.Replace(source, line, "", 1)
	}
	p, err := ParseProfile([]byte(source), "practice.hcl", fstest.MapFS{"abacus.questions.jsonl": {Data: []byte("{}")}})
	if err != nil {
		t.Fatal(err)
	}
	if p.Image != nil || p.Source != (manifest.Digest{}) || p.Device != nil {
		t.Errorf("image %v, %s, device %v", p.Image, p.Source, p.Device)
	}
	if p.Load.Port != 8000 || p.Load.Attempts != 1 || p.Load.GradedRequests != 0 || p.Load.GradedTokens != 0 || p.Quality.Chance != 0 {
		t.Errorf("load %+v, quality %+v", p.Load, p.Quality)
	}
}

// The shipped numbers of each task's grader.
func TestShippedLoads(t *testing.T) {
	for name, want := range map[string]struct {
		attempts, requests int
		tokens             int64
		device             string
		accelerateKnown    bool
	}{
		"ternary-chat": {attempts: 3, device: "H100"},
		"drafter":      {attempts: 1, tokens: 44314, device: "H100", accelerateKnown: true},
		"practice":     {attempts: 3, requests: 900},
		"vision-chat":  {attempts: 3, requests: 900, device: "H100"},
	} {
		p, _, err := LoadProfile(name)
		if err != nil {
			t.Fatal(err)
		}
		device := ""
		if p.Device != nil {
			device = p.Device.Name
		}
		if p.Load.Port != 8000 || p.Load.Attempts != want.attempts || p.Load.GradedRequests != want.requests || p.Load.GradedTokens != want.tokens || device != want.device {
			t.Errorf("%s: load %+v, device %q", name, p.Load, device)
		}
		_, installed, known := p.Image.Installed("accelerate")
		if installed || known != want.accelerateKnown {
			t.Errorf("%s: accelerate installed %v, known %v", name, installed, known)
		}
		for path, want := range map[string]bool{"/dev/shm/pylibs": true, "/tmp/pylibs": false} {
			if mount, ok := p.Image.MountOf(path); !ok || mount.NoExec == nil || *mount.NoExec != want {
				t.Errorf("%s: %s lies on %+v", name, path, mount)
			}
		}
	}
}

func TestLoadProfileUnknown(t *testing.T) {
	_, _, err := LoadProfile("practise")
	if err == nil || !strings.Contains(manifest.Hint(err), `did you mean "practice"?`) {
		t.Errorf("%v; hint %q", err, manifest.Hint(err))
	}
}

var profileFaults = []struct{ name, old, new string }{
	{"misspelt-argument", "group_minimum ", "group_minimun "},
	{"no-schema", "schema = 1\n", ""},
	{"other-schema", "schema = 1", "schema = 2"},
	{"no-load", "load {", "loads {"},
	{"misspelt-gate", `"declared", "size"`, `"declard", "size"`},
	{"gate-twice", `"declared", "size"`, `"declared", "declared", "size"`},
	{"undecided-not-listed", `"lookup", "text-only", "script"`, `"lookup", "script"`},
	{"ratio", `"95/100"`, `"0.95"`},
	{"ratio-zero", `"95/100"`, `"95/0"`},
	{"counting", `"observed"`, `"observe"`},
	{"unreferenced", `"observed"`, "\"observed\"\n  unreferenced = \"forbidden\""},
	{"format", `"literal"]`, `"literel"]`},
	{"required-path", "ternary {\n", "required \"../x\" {\n  why = \"y\"\n}\n\nternary {\n"},
	{"no-why", "ternary {\n", "required \"x\" {\n}\n\nternary {\n"},
	{"negative-seconds", "start_seconds   = 60", "start_seconds   = -60"},
	{"zero-seconds", "start_seconds   = 60", "start_seconds   = 0"},
	{"no-limit-of-time", "  total_seconds   = 900\n", ""},
	{"endpoint", `"/v1/chat/completions"`, `"/v1/completions"`},
	{"quality-absent", `"abacus.questions.jsonl"`, `"absent.jsonl"`},
	{"quality-both", "  accuracy  = 0.8", "  continuations = \"abacus.questions.jsonl\"\n  accuracy  = 0.85"},
	{"quality-neither", "  questions = \"abacus.questions.jsonl\"\n  accuracy  = 0.8", "  chance = 0.5"},
	{"quality-other-floor", "  questions = \"abacus.questions.jsonl\"\n  accuracy  = 0.8", "  tau = 4.6"},
	{"accuracy", "accuracy  = 0.8", "accuracy  = 85"},
	{"chance", "accuracy  = 0.8", "accuracy  = 0.85\n  chance    = 1.5"},
	{"question-image-absent", `"abacus.questions.jsonl"`, `"shows/absent.jsonl"`},
	{"question-image-none", `"abacus.questions.jsonl"`, `"shows/none.jsonl"`},
	{"question-image-up", `"abacus.questions.jsonl"`, `"shows/up.jsonl"`},
	{"image-absent", `"grader.image.json"`, `"absent.json"`},
	{"image-broken", `"grader.image.json"`, `"broken.json"`},
	{"image-up", `"grader.image.json"`, `"../grader.image.json"`},
	{"device-label", "load {", "device {\n}\n\nload {"},
	{"device-twice", "load {", "device \"a\" {\n}\ndevice \"b\" {\n}\n\nload {"},
	{"device-memory", "load {", "device \"a\" {\n  memory_bytes = -1\n}\n\nload {"},
	{"device-bandwidth", "load {", "device \"a\" {\n  bytes_per_second = \"3.35 TB\"\n}\n\nload {"},
	{"device-misspelt", "load {", "device \"a\" {\n  memory = 1\n}\n\nload {"},
	{"accuracy-negative", "accuracy  = 0.8", "accuracy  = -0.5"},
	{"load-port", "port            = 8000", "port            = 65536"},
	{"attempts", "attempts        = 3", "attempts        = 0"},
	{"graded-requests", "graded_requests = 900", "graded_requests = 0"},
	{"body-bytes", "graded_requests = 900", "body_bytes = 10"},
	{"body-of-drafts", "\"/v1/chat/completions\"", "\"/draft\"\n  body_bytes = 65536"},
	{"graded-tokens", "graded_requests = 900", "graded_tokens   = 1.5"},
	{"contract-absent", "ternary {", "base \"language\" {\n  repository = \"a/b\"\n  revision = \"851bf6e806efd8d0a36b00ddf55e13ccb7b8cd0a\"\n  contract = \"absent.json\"\n}\nternary {"},
	{"contract-of-another", "ternary {", "base \"language\" {\n  repository = \"a/b\"\n  revision = \"851bf6e806efd8d0a36b00ddf55e13ccb7b8cd0a\"\n  contract = \"c.json\"\n}\nternary {"},
	{"contract-broken", "ternary {", "base \"language\" {\n  repository = \"a/b\"\n  revision = \"851bf6e806efd8d0a36b00ddf55e13ccb7b8cd0a\"\n  contract = \"broken.json\"\n}\nternary {"},
}

// Every fault is one change of the practice profile, which TestLoadProfilePractice loads.
func TestProfileFaults(t *testing.T) {
	source := shippedSource(t, "practice")
	folder := fstest.MapFS{"c.json": {Data: contractOf(t, "Qwen/Qwen3.5-4B", "851bf6e806efd8d0a36b00ddf55e13ccb7b8cd0a")}, "broken.json": {Data: []byte("{}")},
		"abacus.questions.jsonl": {Data: []byte("{}")}, "grader.image.json": {Data: []byte(`{"schema":1}`)},
		"shows/absent.jsonl": {Data: []byte("{}\n{\"image\":\"absent.png\"}")}, "shows/none.jsonl": {Data: []byte(`{"images":["none.png"]}`)}, "shows/none.png": {Data: []byte("none")},
		"shows/up.jsonl": {Data: []byte(`{"image":"../grader.image.json"}`)}}
	for _, fault := range profileFaults {
		t.Run(fault.name, func(t *testing.T) {
			if !strings.Contains(source, fault.old) {
				t.Fatalf("%q is not part of the profile", fault.old)
			}
			_, err := ParseProfile([]byte(strings.Replace(source, fault.old, fault.new, 1)), "practice.hcl", folder)
			if err == nil {
				t.Fatal("no error")
			}
			golden(t, "profile-faults/"+fault.name+".txt", err.Error()+"\n")
		})
	}
}

func FuzzParseProfile(f *testing.F) {
	for _, name := range profiles.Names() {
		data, _ := profiles.Shipped(name)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParseProfile(data, "p.hcl", profiles.Files())
		if err == nil && (p.Name == "" || p.Load.Concurrency < 1) {
			t.Fatalf("profile %+v", p)
		}
	})
}
