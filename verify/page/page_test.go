package page

import (
	"bytes"
	"errors"
	markup "html"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"slipway/manifest"
	"slipway/verify"
	"slipway/verify/report"
)

func html(t *testing.T, r *report.Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := HTML(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func review(t *testing.T, r *report.Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := Review(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

var (
	tags   = regexp.MustCompile(`<[^>]*>`)
	spaces = regexp.MustCompile(`\s+`)
)

// visible is a page's text, its markup and style left out.
func visible(page string) string {
	_, body, _ := strings.Cut(page, "<body>")
	return spaces.ReplaceAllString(markup.UnescapeString(tags.ReplaceAllString(body, " ")), " ")
}

func TestPageOfAPassingReport(t *testing.T) {
	page := html(t, passing(t))
	if !strings.Contains(page, "<title>PASS: ") {
		t.Error("the title does not give the verdict")
	}
	all := visible(page)
	for _, want := range []string{
		"Submission report · profile practice", "1 gate is undecided, which the profile allows", "1,833,094 bytes",
		"Ternary fraction T/(T+s+f) 0.986717", "more than 0.95 · 0.036717 to spare; 195,096.8 ternary elements to spare above 95/100 of T+s+f", "Stored elements (T+s+f+u)/P0 1.007769", "at most 1.1 · 0.092231 to spare; 486,289.6 stored elements to spare below 11/10 of P0",
		"Size of all files 1.83 MB", "T 5,242,880 ternary weights: 50 packed and 0 literal of 108 entries",
		"weights 1.73 MB", "layer 0: −1 ", "Scales by layer", "layer 7: 0.0154877 to 0.0945435", "Measured on this machine", "Linux, 2 cores", "healthy after 0.412 s of 60.0 s", "stopped 0.021 s after SIGTERM",
		"program runtime/serve 0.019 s", "Whole load, projected 58.9 s", "at most 900 s · 841 s to spare", "Accuracy 0.8933", "95% confidence 0.8338 to 0.9334",
		"chance 0.0067", "tokens a second 236.2", "Median 0.460 s", "32 of 32 answers the same in the batch as alone (1.0000)",
		"No address beyond loopback was tried", "not held memory limit no control group", "serve: healthy", "Self-declared", "config.json architecture = Qwen3_5ForCausalLM",
		"warning the interval of the accuracy reaches below the floor want at least 0.85 got 0.8338 to 0.9334",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(all, "a code that stands for nothing") {
		t.Error("the page speaks of codes that stand for nothing, and there are none")
	}
	if t.Failed() {
		t.Log(all)
	}
}

// What does not depend on the machine does not change with it.
func TestStaticPartIsAFunctionOfTheReport(t *testing.T) {
	section := regexp.MustCompile(`(?s)<section id="measured">.*?</section>|<a href="#measured">Measured</a>`)
	first, second := passing(t), passing(t)
	second.Measured.Machine, second.Measured.Starts[0].Healthy, second.Measured.Quality.Accuracy = "another", 3, 0.91
	a, b := html(t, first), html(t, second)
	if a == b {
		t.Fatal("the two machines' pages are equal")
	}
	if section.ReplaceAllString(a, "") != section.ReplaceAllString(b, "") {
		t.Error("a measurement shows outside its section")
	}
	first.Measured = nil
	if strings.Contains(html(t, first), "measured") {
		t.Error("a report without measurements has a section of them")
	}
}

func TestPageOfAFailingReport(t *testing.T) {
	r := hostile(t)
	page := html(t, r)
	if size := len(page); size > 5<<20 {
		t.Errorf("the page has %d bytes", size)
	}
	all := visible(page)
	for _, want := range []string{"FAIL Failed: ", "10,000 errors", "280 more", "9,700 more are in report.json", "a code that stands for nothing, which no ternary tensor may have", "4,000 more are in report.json", "never healthy", "misses by 0.75"} {
		if !strings.Contains(all, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if !strings.Contains(page, `<a href="#gate-files">files</a>`) || !strings.Contains(page, `id="gate-files" open>`) {
		t.Error("the verdict does not lead to the failed gate, or that is folded")
	}
}

// Every text of a report, wherever it stands, reaches the outputs harmless.
func TestEveryTextIsMadeHarmless(t *testing.T) {
	r := &report.Report{}
	fill(reflect.ValueOf(r).Elem())
	r.Gates[0].Status, r.Gates[0].Findings[0].Level = report.Fail, report.Error
	for name, output := range map[string]string{"page": html(t, r), "REVIEW.md": review(t, r)} {
		if name == "REVIEW.md" { // in Markdown, code spans and escapes make it harmless
			output = strings.ReplaceAll(strings.ReplaceAll(output, "``"+text(nasty)+"``", ""), `\<`, "")
		}
		for _, bad := range []string{"<script", "<img", "</style><", "\u202e", "\x1b", "\xff"} {
			if strings.Contains(output, bad) {
				t.Errorf("%s holds %q", name, bad)
			}
		}
		if strings.Count(output, "alert(1)")+strings.Count(output, `alert(1\)`) == 0 {
			t.Errorf("%s lost the text", name)
		}
		for _, c := range output {
			if c != '\n' && !unicode.IsPrint(c) {
				t.Errorf("%s holds %q", name, c)
			}
		}
	}
}

// fill puts the nasty text into every string, and one element into every list.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(nasty)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() && v.Type() != reflect.TypeFor[manifest.Digest]() {
				fill(v.Field(i))
			}
		}
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Float64:
		v.SetFloat(3)
	}
}

func TestEmptyReport(t *testing.T) {
	page := html(t, &report.Report{Measured: &report.Measured{Batch: &report.Batch{}, Quality: &report.Quality{}, Trace: &report.Trace{}, Projection: &report.Projection{}}})
	if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
		t.Error("the page shows what is no number")
	}
}

type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestWriteErrors(t *testing.T) {
	for name, write := range map[string]func() error{
		"HTML":   func() error { return HTML(brokenWriter{}, &report.Report{}) },
		"Review": func() error { return Review(brokenWriter{}, &report.Report{}) },
	} {
		if err := write(); !errors.Is(err, errBroken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBars(t *testing.T) {
	write := func(f float64) string { return trimmed(f, 2) }
	for _, tc := range []struct {
		value      float64
		is         bound
		limit, top float64
		good       bool
		spare      string
		fill, mark float64
	}{
		{0.5, atMost, 1, 2, true, "0.5 to spare", 25, 50},
		{1, atMost, 1, 2, true, "0 to spare", 50, 50},
		{1.5, atMost, 1, 2, false, "misses by 0.5", 75, 50},
		{1, atLeast, 1, 2, true, "0 to spare", 50, 50},
		{1, moreThan, 1, 2, false, "just not", 50, 50},
		{5, atMost, 1, 2, false, "misses by 4", 100, 50},
		{23, atMost, 46, 0, true, "23 to spare", 43.478, 86.957},
	} {
		b := newBar("x", tc.value, tc.is, tc.limit, tc.top, write)
		if b.Good != tc.good || b.Spare != tc.spare || b.Fill != tc.fill || b.Mark != tc.mark {
			t.Errorf("%v %v %v: %+v", tc.value, tc.is, tc.limit, b)
		}
	}
	if got := percent(math.NaN(), 1); got != 0 {
		t.Errorf("no number is at %v", got)
	}
}

func TestLayers(t *testing.T) {
	for name, want := range map[string]int{
		"model.layers.12.mlp.up_proj.weight": 12, "layers.0.x": 0, "transformer.h.3.attn": 3, "model.embed_tokens.weight": -1,
		"model.layers.x.weight": -1, "model.layers.99999999.weight": -1,
	} {
		if got := LayerOf(name); got != want {
			t.Errorf("%s is of layer %d, want %d", name, got, want)
		}
	}
	c := newCodes([]report.Tensor{
		{Name: "model.layers.10.a", Histogram: &[4]int64{1, 2, 1, 0}}, {Name: "model.layers.9.a", Histogram: &[4]int64{1, 0, 0, 0}},
		{Name: "other", Histogram: &[4]int64{1, 1, 1, 0}}, {Name: "model.layers.9.b", Histogram: &[4]int64{0, 0, 0, 1}}, {Name: "literal"},
	})
	var names []string
	for _, l := range c.Layers {
		names = append(names, l.Label())
	}
	want := "layer 9: −1 50.0%, 0 0%, +1 0%, codes that stand for nothing: 1|layer 10: −1 25.0%, 0 50.0%, +1 25.0%|outside layers: −1 33.3%, 0 33.3%, +1 33.3%"
	if got := strings.Join(names, "|"); got != want || !c.Bad {
		t.Errorf("got %s, bad %v", got, c.Bad)
	}
	if l := c.Layers[1]; l.Y != [4]float64{75, 25, 0, 0} || l.Heights != [4]float64{25, 50, 25, 0} {
		t.Errorf("layer 10 is drawn at %v, %v high", l.Y, l.Heights)
	}
}

func TestHistogram(t *testing.T) {
	h := newHistogram(&report.Batch{Latencies: []float64{1, 1, 1, 2}})
	if len(h.Bins) != 4 || h.Bins[0].Height != 100 || h.Bins[3].Height != 33.333 || h.Bins[1].Height != 0 || h.Most != 3 || h.Bins[0].Label != "1.00 s to 1.25 s: 3 requests" {
		t.Errorf("%+v", h)
	}
	if h := newHistogram(&report.Batch{Latencies: []float64{2, 2}}); len(h.Bins) != 1 || h.Most != 2 {
		t.Errorf("equal latencies: %+v", h)
	}
	if newHistogram(&report.Batch{}) != nil {
		t.Error("a histogram of nothing")
	}
}

func TestReviewGolden(t *testing.T) {
	const file = "testdata/abacus.REVIEW.md"
	got := review(t, passing(t))
	if os.Getenv("UPDATE_GOLDEN") == "1" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What only a running submission shows is a line of the rule that it is about.
func TestReviewNamesDynamicGates(t *testing.T) {
	for name, gate := range map[string]string{
		"Inference uses the reviewed weights": "opened-files", "Numeric class": "quality", "No lookup of answers or continuations": "opened-files",
	} {
		if !slices.ContainsFunc(rules, func(r rule) bool { return r.Name == name && slices.Contains(r.Gates, gate) }) || !verify.Dynamic(gate) {
			t.Errorf("rule %q does not name gate %s", name, gate)
		}
	}
}

func TestReviewOfAFailingReport(t *testing.T) {
	got := review(t, hostile(t))
	for _, want := range []string{"- **Only allowed components**: fail (coverage: ", "files: fail)", "## What failed", "and 9,995 errors more", "203.0.113.7", "- and 4,950 more\n", "Accuracy: 0.1, at least 0.85; misses by 0.75"} {
		if want == "203.0.113.7" {
			want = "1 address beyond loopback tried"
		}
		if !strings.Contains(got, want) {
			t.Errorf("REVIEW.md does not say %q", want)
		}
	}
	lines := 0
	for line := range strings.SplitSeq(got, "\n") {
		if strings.HasPrefix(line, "- **") && strings.Contains(line, "Left to a reviewer: ") {
			lines++
		}
	}
	if lines != len(rules) {
		t.Errorf("%d rules have a line, of %d", lines, len(rules))
	}
}

// Each gate of the verifier that a rule names exists, and a rule's state is the
// worst of its gates.
func TestRules(t *testing.T) {
	for _, ru := range rules {
		for _, id := range ru.Gates {
			if _, ok := verify.Lookup(id); !ok {
				t.Errorf("%s: there is no gate %s", ru.Name, id)
			}
		}
	}
	ru := rule{Gates: []string{"a", "b", "c"}}
	r := &report.Report{Gates: []report.GateResult{{ID: "a", Status: report.Pass}, {ID: "b", Status: report.NotApplicable}, {ID: "c", Status: report.Undecided}}}
	if state, gates := ru.state(r); state != "undecided" || gates != "a: pass, b: not applicable, c: undecided" {
		t.Errorf("%s (%s)", state, gates)
	}
	r.Gates[2].Status = report.Pass
	if state, _ := ru.state(r); state != "pass as far as it was asked" {
		t.Errorf("%s", state)
	}
	r.Gates[1].Status = report.Fail
	if state, _ := ru.state(r); state != "fail" {
		t.Errorf("%s", state)
	}
}

func TestMarkdownText(t *testing.T) {
	for in, want := range map[string]string{"a": "`a`", "a`b": "``a`b``", "`": "`` ` ``", "": "`  `"} {
		if got := literal(in); got != want {
			t.Errorf("literal(%q) = %q, want %q", in, got, want)
		}
	}
	if got, want := plain("<b>*x*|`y`\n"), "\\<b\\>\\*x\\*\\|\\`y\\`\\\\n"; got != want {
		t.Errorf("plain gives %q, want %q", got, want)
	}
	if got := text(strings.Repeat("ä", textShown+5)); got != strings.Repeat("ä", textShown)+"…" {
		t.Errorf("clipped to %d bytes", len(got))
	}
}
