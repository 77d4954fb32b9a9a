package broken

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/manifest/safetensors"
	"slipway/verify/report"
)

var examples = filepath.Join("..", "..", "..", "examples", "broken")

func load(t *testing.T) *Set {
	t.Helper()
	set, err := Load(os.DirFS(examples))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// Every case and twin can be written, and a case differs from its twin.
func TestEveryCaseCanBeWritten(t *testing.T) {
	set := load(t)
	seeds := 0
	for i := range set.Cases {
		c := &set.Cases[i]
		if c.Failed() {
			seeds++
		}
		fault, faultRules, err := set.apply(c, false)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		twin, twinRules, err := set.apply(c, true)
		if err != nil {
			t.Errorf("%s.fixed: %v", c.Name, err)
			continue
		}
		if sameFiles(fault, twin) && bytes.Equal(joined(faultRules), joined(twinRules)) {
			t.Errorf("%s: its twin has the fault too", c.Name)
		}
		for _, saying := range c.Observed {
			if !slices.Contains(report.Explainers(saying.Gate), c.Gate) {
				t.Errorf("%s: observes %q of gate %s, which gate %s does not explain", c.Name, saying.Text, saying.Gate, c.Gate)
			}
		}
	}
	if seeds < 9 || len(set.Cases) < seeds+20 {
		t.Errorf("%d cases, %d of the seeds", len(set.Cases), seeds)
	}
}

func sameFiles(a, b map[string]file) bool {
	if len(a) != len(b) {
		return false
	}
	for name, f := range a {
		if g, ok := b[name]; !ok || f.executable != g.executable || !bytes.Equal(f.data, g.data) {
			return false
		}
	}
	return true
}

func joined(rules map[string][]byte) (out []byte) {
	for _, name := range []string{chatProfile, draftProfile, imageProfile, imageFile} {
		out = append(out, rules[name]...)
	}
	return out
}

func TestWrite(t *testing.T) {
	set, folder := load(t), t.TempDir()
	c, err := readCase("sample", []byte("A sample.\n\nfrom: here\nfails: script\ncrlf: serve.sh\nmode: serve.sh 0644\n-- edit image.json --\n"+
		"-   \"schema\": 1,\n+   \"schema\": 2,\n-- both/code/tool --\n#!/bin/sh\n"))
	if err != nil {
		t.Fatal(err)
	}
	written, err := set.Write(folder, &c, false)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"sample/serve.sh":   "#!/bin/bash\r\n",
		"sample.image.json": "{\n  \"schema\": 2,\n",
		"sample/code/tool":  "#!/bin/sh\n",
	} {
		data, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || !strings.HasPrefix(string(data), want) {
			t.Errorf("%s is %.40q (%v), not %q", name, data, err, want)
		}
	}
	profile, err := os.ReadFile(written.Profile)
	if err != nil || !strings.Contains(string(profile), `"sample.image.json"`) {
		t.Errorf("the profile is\n%s%v", profile, err)
	}
	for name, want := range map[string]bool{"serve.sh": false, "code/tool": true} {
		info, err := os.Stat(filepath.Join(written.Folder, name))
		if err != nil || (info.Mode()&0o111 != 0) != want {
			t.Errorf("%s: %v, %v; executable wanted: %v", name, info.Mode(), err, want)
		}
	}
	shard, err := os.ReadFile(filepath.Join(written.Folder, weightsFile))
	if err != nil {
		t.Fatal(err)
	}
	if header, err := safetensors.ReadHeader(bytes.NewReader(shard), int64(len(shard))); err != nil || len(header.Tensors) != 13 {
		t.Errorf("the weights are no sound safetensors file: %v", err)
	}
}

func TestEdited(t *testing.T) {
	for _, test := range []struct{ name, text, edit, want, problem string }{
		{"one line", "a\nb\nc\n", "- b\n+ x\n+ y\n", "a\nx\ny\nc\n", ""},
		{"a line goes", "a\nb\n", "- a\n", "b\n", ""},
		{"two blocks", "a\nb\nc\n", "- a\n+ 1\n\n- c\n+ 3\n", "1\nb\n3\n", ""},
		{"an empty line", "a\n\nb\n", "- a\n-\n+ a\n", "a\nb\n", ""},
		{"not there", "a\n", "- b\n", "", "there 0 times"},
		{"twice", "a\nb\na\n", "- a\n", "", "there 2 times"},
		{"part of a line", "ab\n", "- a\n", "", "there 0 times"},
		{"nothing goes", "a\n", "+ b\n", "", "not once"},
		{"no sign", "a\n", "b\n", "", "begins with neither"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := edited([]byte(test.text), []byte(test.edit))
			if test.problem == "" && (err != nil || string(got) != test.want) {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
			if test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)) {
				t.Errorf("got %q, %v; want an error with %q", got, err, test.problem)
			}
		})
	}
}

func TestReadCaseRefuses(t *testing.T) {
	for _, test := range []struct{ name, text, problem string }{
		{"no title", "\n\nfrom: x\nfails: script\n-- a --\n", "no title"},
		{"no origin", "A.\n\nfails: script\n-- a --\n", "where it is from"},
		{"no gate", "A.\n\nfrom: x\n-- a --\n", "which gate fails"},
		{"no change", "A.\n\nfrom: x\nfails: script\n", "changes nothing"},
		{"unknown key", "A.\n\nfrom: x\nfail: script\n-- a --\n", "unknown key"},
		{"two gates", "A.\n\nfrom: x\nfails: script startup\n-- a --\n", "one fault, and fails one gate"},
		{"another gate in the sandbox", "A.\n\nfrom: x\nfails: script\nfails in the sandbox: startup\n-- a --\n", "one fault, and fails one gate"},
		{"observed without a gate", "A.\n\nfrom: x\nfails: script\nobserved: text\n-- a --\n", "names no gate"},
		{"a path outside", "A.\n\nfrom: x\nfails: script\n-- both/../../a --\n", "leaves the submission"},
		{"another profile", "A.\n\nfrom: x\nfails: script\nprofile: drafter\n-- a --\n", "is neither majority-draft.hcl nor majority-image.hcl"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := readCase("sample", []byte(test.text)); err == nil || !strings.Contains(err.Error(), test.problem) {
				t.Errorf("got %v; want an error with %q", err, test.problem)
			}
		})
	}
}

// The answers are what counting the words gives, and no two questions are one.
func TestQuestions(t *testing.T) {
	seen := map[string]bool{}
	for _, q := range makeQuestions() {
		counts := map[string]int{}
		for word := range strings.FieldsSeq(strings.TrimPrefix(q.Question, questionText)) {
			counts[word]++
		}
		for word, n := range counts {
			if word != q.Answer && n >= counts[q.Answer] {
				t.Errorf("%s: %s is there %d times, the answer %s %d times", q.ID, word, n, q.Answer, counts[q.Answer])
			}
		}
		if seen[q.Question] {
			t.Errorf("%s is asked twice", q.ID)
		}
		seen[q.Question] = true
	}
}

// The image's colour is what makes a word the most frequent: the text alone says
// no word more often than the others.
func TestImageQuestions(t *testing.T) {
	set, seen := load(t), map[string]bool{}
	for _, q := range makeImageQuestions() {
		listed := strings.Fields(strings.TrimPrefix(q.Question, questionText))
		if slices.Sort(listed); len(slices.Compact(listed)) != imageWords || !slices.Contains(listed, q.Answer) || listed[0] == q.Answer {
			t.Errorf("%s: %q, answer %s", q.ID, q.Question, q.Answer)
		}
		if q.Image != pictureName(q.Answer) || set.rules[q.Image] == nil {
			t.Errorf("%s: image %s of answer %s", q.ID, q.Image, q.Answer)
		}
		if seen[q.Question+q.Image] {
			t.Errorf("%s is asked twice", q.ID)
		}
		seen[q.Question+q.Image] = true
	}
	for i, word := range words {
		for _, other := range words[:i] {
			if colours[word] == colours[other] {
				t.Errorf("%s and %s are one colour", word, other)
			}
		}
	}
	for word, c := range colours {
		if line := fmt.Sprintf("    (%d, %d, %d): %q,\n", c.R, c.G, c.B, word); !strings.Contains(string(set.base["code/pictures.py"].data), line) {
			t.Errorf("code/pictures.py does not hold %q", line)
		}
	}
}

func TestReadmeListsTheCases(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(examples, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if table := Table(load(t).Cases); !strings.Contains(string(readme), table) {
		t.Errorf("examples/broken/README.md does not hold this table (go run ./examples/broken --table):\n%s", table)
	}
}

// Whatever a case says, it is refused or its files stay in the submission.
func FuzzReadCase(f *testing.F) {
	names, err := filepath.Glob(filepath.Join(examples, "cases", "*.txtar"))
	if err != nil || len(names) == 0 {
		f.Fatal("no cases: ", err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	set, err := Load(os.DirFS(examples))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := readCase("fuzz", data)
		if err != nil {
			return
		}
		for _, fixed := range []bool{false, true} {
			files, _, err := set.apply(&c, fixed)
			for name := range files {
				if err == nil && !filepath.IsLocal(name) {
					t.Errorf("file %q leaves the submission", name)
				}
			}
		}
	})
}
