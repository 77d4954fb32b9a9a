package image

import (
	"encoding/json"
	"fmt"
	"html/template"
	"reflect"
	"strings"
	"testing"
)

// crowded has more distributions than a line holds.
func crowded() *Image {
	i := &Image{
		Schema: Schema, Description: "left out", Submission: "/submission", Python: &Python{Version: "3.12.3", Path: "/opt/venv/bin/python3"},
		Distributions: map[string]string{"torch": "2.7.0+cu128", "transformers": "4.57.1"}, Absent: []string{"accelerate", "flask"}, Complete: true,
		Programs: map[string]bool{"gcc": false}, Mounts: []Mount{{Path: "/dev/shm", NoExec: &yes, Bytes: 64 << 20}}, CPUs: 4,
	}
	for n := range 200 {
		i.Distributions[fmt.Sprintf("aa-%03d", n)] = "1.0"
	}
	return i
}

func TestLineFits(t *testing.T) {
	for _, limit := range []int{400, 700, LineLimit, 4000, 1 << 20} {
		line, err := crowded().Line(limit)
		if err != nil {
			t.Fatal(err)
		}
		if len(line) > limit || strings.ContainsAny(line, " \n") {
			t.Errorf("limit %d: %d bytes, %q", limit, len(line), line)
		}
		found := findLines("before " + line + " after")
		if len(found) != 1 || found[0].err != nil {
			t.Fatalf("limit %d: %+v", limit, found)
		}
		got := found[0].image
		if got.Distributions["torch"] != "2.7.0+cu128" || got.Absent[0] != "accelerate" || got.Description != "" {
			t.Errorf("limit %d: the most telling are left out: %s", limit, line)
		}
		if whole := limit >= 4000; got.Complete != whole || (len(got.Distributions) == 202) != whole {
			t.Errorf("limit %d: %d distributions, complete %v", limit, len(got.Distributions), got.Complete)
		}
	}
	if _, err := crowded().Line(100); err == nil || !strings.Contains(err.Error(), "in 100 bytes") {
		t.Errorf("100 bytes: error %v", err)
	}
}

func TestLearnFromLines(t *testing.T) {
	line, err := crowded().Line(LineLimit)
	if err != nil {
		t.Fatal(err)
	}
	want := findLines(line)[0].image
	for name, log := range map[string]string{
		"alone": line, "in a log": "[serve.sh] start\n" + line + "\nTraceback ...", "quoted": `{"log":"` + strings.ReplaceAll(line, `"`, `\"`) + `\n"}`,
		"twice": line + " " + line,
	} {
		got := Learn(log)
		if !reflect.DeepEqual(&got.Image, want) {
			t.Errorf("%s: %+v", name, got.Image)
		}
	}
	if got := Learn(lineBegin + `{"schema":1,"cpus":2}` + lineEnd + lineBegin + `{"schema":1,"glibc":"2.39"}` + lineEnd).Image; got.CPUs != 2 || got.Glibc != "2.39" {
		t.Errorf("two lines: %+v", got)
	}
	broken := Learn(strings.Replace(line, `"schema":1`, `"schema":9`, 1))
	if len(broken.Evidence) != 1 || !broken.Evidence[0].Noted || !strings.Contains(broken.Evidence[0].Fact, "schema 9 is not 1") {
		t.Errorf("another schema: %+v", broken.Evidence)
	}
}

// A line may lose its end anywhere: what is read of it is a part of the whole.
func TestClippedLines(t *testing.T) {
	line, err := crowded().Line(600)
	if err != nil {
		t.Fatal(err)
	}
	whole := findLines(line)[0].image
	most := 0
	for end := len(lineBegin); end <= len(line)-len(lineEnd); end++ {
		got := findLines(line[:end])[0]
		if got.err != nil {
			if strings.Contains(line[:end], `"schema":1,`) {
				t.Fatalf("clipped to %q: %v", line[:end], got.err)
			}
			continue
		}
		merged, disagreements := Merge(whole, got.image)
		if len(disagreements) > 0 || !reflect.DeepEqual(&merged, whole) {
			t.Fatalf("clipped to %q: %+v, %v", line[:end], got.image, disagreements)
		}
		if got.image.CPUs == 4 {
			most++
		}
	}
	if most == 0 {
		t.Error("no clipped line kept its last members")
	}
}

// A line is found again in what a report is written in.
func TestLineInReports(t *testing.T) {
	want := &Image{Schema: 1, Python: &Python{Version: "3.12", Path: "/opt/my_venv/bin/python3"}, Absent: []string{"accelerate", "flash-attn"}, Home: `/home/a"b\c`}
	line, err := want.Line(LineLimit)
	if err != nil {
		t.Fatal(err)
	}
	var markdown strings.Builder
	for _, r := range line {
		if strings.ContainsRune("\\`*_[]<>|#&~!", r) {
			markdown.WriteByte('\\')
		}
		markdown.WriteRune(r)
	}
	quoted, err := json.Marshal(line)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"text": line, "JSON": string(quoted), "HTML": template.HTMLEscapeString(line), "Markdown": markdown.String()} {
		learned := Learn("the end of its log: " + text + " | and more")
		if got := learned.Image; !reflect.DeepEqual(got, *want) {
			t.Errorf("%s: learned %+v from %s", name, got, text)
		}
	}
}
