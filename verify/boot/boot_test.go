//go:build unix

package boot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/verify/boot/ask"
	"slipway/verify/boot/local"
)

// self is the test program.
func self(t *testing.T) string {
	t.Helper()
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func submission(t *testing.T, script string) local.Options {
	t.Helper()
	folder := t.TempDir()
	const variable = "BOOT_TEST_SERVER"
	script = strings.NewReplacer(variable, variable, "SERVER", variable+"=plain exec '"+self(t)+"' \"$@\"").Replace(script)
	if err := os.WriteFile(filepath.Join(folder, "serve.sh"), []byte("#!/bin/sh\n"+script+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return local.Options{Folder: folder, TempDir: t.TempDir(), Path: os.Getenv("PATH")}
}

func start(t *testing.T, script string) *local.Server {
	t.Helper()
	s, err := local.Start(submission(t, script))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

const patience = time.Minute // far more than any of this takes

func TestServe(t *testing.T) {
	s := start(t, "SERVER")
	if _, err := s.WaitHealthy(t.Context(), patience); err != nil {
		t.Fatal(err)
	}
	questions, err := ask.ReadQuestions([]byte(`{"id":"1","question":"say yes","answer":"yes"}
{"id":"2","question":"say no","answer":"yes"}

{"id":"3","question":"fail","answer":"yes"}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	answers, err := ask.All(t.Context(), ask.Endpoint{URL: s.URL}, questions, ask.Load{Concurrency: 2, MaxTokens: 4, Request: patience})
	if err != nil {
		t.Fatal(err)
	}
	if !answers[0].Right() || answers[0].Tokens != 2 || answers[0].Finish != "stop" || answers[1].Right() || answers[1].Failed != nil {
		t.Errorf("answers %+v", answers)
	}
	if a := answers[2]; a.Right() || a.Failed == nil || !strings.Contains(a.Failed.Error(), `500 Internal Server Error: out of\x1b[31m luck`) {
		t.Errorf("a failed request gives %+v", a)
	}
}

// The target goes 1 2 3 7 8 20: the first draft after 0 is right for three ids
// and step one adds the 7; the second is right for 8 and adds 20.
func TestMeasureDrafts(t *testing.T) {
	s := start(t, "SERVER")
	if _, err := s.WaitHealthy(t.Context(), patience); err != nil {
		t.Fatal(err)
	}
	continuations, err := ask.ReadContinuations([]byte(`{"id":"a","prompt":[9,0],"continuation":[1,2,3,7,8,20]}`+"\n"+`{"id":"b","prompt":[5],"continuation":[6]}`), 0)
	if err != nil {
		t.Fatal(err)
	}
	a, err := ask.MeasureDrafts(t.Context(), ask.Endpoint{URL: s.URL}, continuations, ask.Load{Concurrency: 2, MaxTokens: 16, Request: patience})
	if err != nil {
		t.Fatal(err)
	}
	if a.Tokens != 7 || a.Steps != 3 || a.Failed != 0 || a.Tau() != 7.0/3 || a.PerPrompt != 2 {
		t.Errorf("%+v, tau %v", a, a.Tau())
	}
	s.Stop()
	a, err = ask.MeasureDrafts(t.Context(), ask.Endpoint{URL: s.URL}, continuations, ask.Load{Concurrency: 1, MaxTokens: 16, Request: patience})
	if err != nil || a.Failed != 7 || a.Tau() != 1 { // every step adds the target's own token
		t.Errorf("of a dead server: %+v %v", a, err)
	}
}

func TestReadQuestionsRefuses(t *testing.T) {
	for in, fault := range map[string]string{
		`{"id":"1","Question":"x"}`:             `line 1: top level: key "Question" must be written "question"`,
		"{}\n{\"id\":\"1\",\"id\":\"2\"}":       "line 2",
		`{"id":"1","question":"x","extra":"y"}`: "unknown key",
	} {
		if _, err := ask.ReadQuestions([]byte(in), nil); err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%s: error %v, want %q", in, err, fault)
		}
	}
}
