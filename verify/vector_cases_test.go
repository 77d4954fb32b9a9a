package verify

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// shownElsewhere is a row of elsewhere.txt: a case, or a part of one, that no file
// of edits can show.
type shownElsewhere struct {
	id, gates, by string
}

func readElsewhere(t *testing.T) (rows []shownElsewhere) {
	t.Helper()
	table, err := os.ReadFile(filepath.Join(vectorFolder, "elsewhere.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(`(?m)^(A\d\d) +(\S+) +(\S+) +\S`).FindAllStringSubmatch(string(table), -1) {
		rows = append(rows, shownElsewhere{match[1], match[2], match[3]})
	}
	return rows
}

// Every case has a vector, or something else that shows what decides it.
func TestEveryCaseIsThere(t *testing.T) {
	have := map[string]bool{}
	names, _ := filepath.Glob(filepath.Join(vectorFolder, "*.vector"))
	for _, name := range names {
		have[readVector(t, name).header["case"]] = true
	}
	rows := readElsewhere(t)
	for _, row := range rows {
		have[row.id] = true
		row.check(t)
	}
	for n := 1; n <= 68; n++ {
		if id := fmt.Sprintf("A%02d", n); !have[id] {
			t.Errorf("case %s is nowhere", id)
		}
	}
	// What only shows while the submission runs is a dynamic gate's, whatever a
	// static one sees of it before.
	for _, id := range []string{"A63", "A64", "A65", "A66"} {
		i := slices.IndexFunc(rows, func(r shownElsewhere) bool { return r.id == id })
		if i < 0 {
			t.Fatalf("elsewhere.txt does not have %s", id)
		}
		if first, _, _ := strings.Cut(rows[i].gates, ","); !Dynamic(first) {
			t.Errorf("%s is decided by %q, which is no dynamic gate", id, first)
		}
	}
}

// The gate that decides such a case says so where people ask what it promises.
func TestExplainNamesWhatOnlyShowsWhileItRuns(t *testing.T) {
	for _, tc := range []struct{ id, gate, says string }{
		{"A63", "opened-files", "opens nothing outside the submission but the system, connects to nothing"},
		{"A64", "quality", "what a server computes from codes and scales shows nowhere else"},
		{"A65", "opened-files", "neither from other weights"},
		{"A66", "opened-files", "nor from a table"},
		{"A66", "lookup", "whether what runs answers from one, gate opened-files finds"},
	} {
		if text, err := Explain(tc.gate); err != nil || !strings.Contains(text, tc.says) {
			t.Errorf("%s: %v: %s", tc.id, err, text)
		}
		if !slices.ContainsFunc(readElsewhere(t), func(r shownElsewhere) bool {
			return r.id == tc.id && slices.Contains(strings.Split(r.gates, ","), tc.gate)
		}) {
			t.Errorf("elsewhere.txt does not say that %s decides %s", tc.gate, tc.id)
		}
	}
}

// check looks for what a row says that shows it: a test of this package, or a
// broken submission that each of the gates fails.
func (r shownElsewhere) check(t *testing.T) {
	t.Helper()
	var fail []string // gates that the broken submissions fail
	for by := range strings.SplitSeq(r.by, ",") {
		if strings.HasPrefix(by, "Test") {
			if !testExists(t, by) {
				t.Errorf("%s: there is no %s", r.id, by)
			}
			continue
		}
		data, err := os.ReadFile(filepath.Join("../examples/broken/cases", by))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`(?m)^fails(?: in the sandbox)?: (\S+)$`).FindAllStringSubmatch(string(data), -1) {
			fail = append(fail, match[1])
		}
	}
	for gate := range strings.SplitSeq(r.gates, ",") {
		if _, known := Lookup(gate); !known {
			t.Errorf("%s: there is no gate %q", r.id, gate)
		}
		if !strings.HasPrefix(r.by, "Test") && !slices.Contains(fail, gate) {
			t.Errorf("%s: of %s, none fails gate %s", r.id, r.by, gate)
		}
	}
}

func testExists(t *testing.T, name string) bool {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		source, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(source), "\nfunc "+name+"(t *testing.T)")
	})
}
