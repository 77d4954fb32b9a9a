package verify

import (
	"bytes"
	"slices"
	"testing"

	"slipway/manifest/content"
	"slipway/verify/profiles"
	"slipway/verify/report"
)

// practice has the practice task's rules, as far as static gates go.
func practice() profiles.Profile {
	return profiles.Profile{
		Name: "practice", VisionMTP: profiles.MayOmit, Gates: decided(), MayUndecided: []string{"text-only"},
		Ternary: &profiles.Ternary{
			FractionAbove: profiles.Ratio{Numerator: 95, Denominator: 100}, StoredAtMost: profiles.Ratio{Numerator: 11, Denominator: 10},
			Counting: report.CountObserved, GroupMinimum: 32,
		},
	}
}

// decided lists the gates that this version decides.
func decided() []string {
	var ids []string
	for _, g := range All() {
		if g.decide != nil {
			ids = append(ids, g.ID)
		}
	}
	return ids
}

func openFolder(t *testing.T, root string) *content.Tree {
	t.Helper()
	tree, err := content.OpenFolder(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	return tree
}

func run(t *testing.T, root string, options Options) *report.Report {
	t.Helper()
	r, err := Run(t.Context(), openFolder(t, root), options)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func text(t *testing.T, r *report.Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := r.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// The trained practice model: its counts are known from another program.
func TestAbacusTernaryPasses(t *testing.T) {
	r := run(t, "../examples/abacus/ternary", Options{Profile: practice()})
	if err := r.Err(); err != nil {
		t.Fatalf("%v\n%s", err, text(t, r))
	}
	c := r.Counts
	got := [...]int64{c.Ternary, c.Scales, c.Floats, c.Unreferenced, c.Base, int64(c.Packed), int64(c.Entries)}
	want := [...]int64{5242880, 40960, 29616, 0, 5272496, 50, 108}
	if got != want {
		t.Errorf("T, s, f, u, P0, packed, entries = %v, want %v", got, want)
	}
	for _, g := range r.Gates {
		for _, f := range g.Findings {
			if g.ID == "lookup" && f.Path == "answers-public.jsonl" && f.Level == report.Warning {
				continue // this folder of the repository holds the model's public answers too
			}
			t.Errorf("%s: finding %+v", g.ID, f)
		}
	}
}

func TestAbacusDrafterPassesWithoutTernaryRule(t *testing.T) {
	none, whenDeclared := practice(), practice()
	none.Ternary, none.MaxBytes = nil, 1_000_000_000
	whenDeclared.Ternary.WhenDeclared = true
	for _, profile := range []profiles.Profile{none, whenDeclared} {
		r := run(t, "../examples/abacus/drafter", Options{Profile: profile})
		if err := r.Err(); err != nil {
			t.Fatalf("%v\n%s", err, text(t, r))
		}
		for _, id := range []string{"ternary", "stored"} {
			if g, _ := r.Gate(id); g.Status != report.NotApplicable {
				t.Errorf("gate %s is %q", id, g.Status)
			}
		}
	}
	r := run(t, "../examples/abacus/drafter", Options{Profile: practice()})
	if got := r.Failed(); !slices.Equal(got, []string{"ternary", "stored"}) {
		t.Errorf("with a ternary rule the gates that fail are %v", got)
	}
}
