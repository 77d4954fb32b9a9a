package cli

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/verify/page"
	"slipway/verify/report"
)

// auditGates are the gates that judge how weights are stored. Where nothing
// could be counted, gate declared has the quantization manifest's own error.
var auditGates = []string{"paths", "digests", "safetensors", "index", "coverage", "ternary", "stored"}

func (a *app) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit --profile NAME BUNDLE",
		Short: "Show how ternary weights are stored, layer by layer, and what counts",
		Long: `Reads every byte of BUNDLE once and prints how often each code stands in each
layer, the range of the scales, and the counts that the profile's rules compare,
with the elements that are left until they fail. --report draws them; --json has every entry of
the quantization manifest, and the lists of missing, unreferenced, doubly used,
excluded and unchanged tensors. Exit code 3 if one of the
gates paths, digests, safetensors, index, coverage, ternary or stored fails, or if
nothing could be counted; verify decides the others.`,
		Args: exactly(1),
	}
	var t trust
	t.flags(cmd)
	a.httpFlag(cmd)
	asJSON := jsonFlag(cmd)
	into := reportFlag(cmd)
	digests := cmd.Flags().Bool("digests", false, "add the sha256 of each stored tensor to --json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := t.ofBundle(args[0]); err != nil {
			return err
		}
		defer t.close()
		options, err := t.options(cmd.Context())
		if err != nil {
			return err
		}
		options.Digests = *digests
		tree, err := a.openTree(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		defer tree.Close()
		if !slices.ContainsFunc(tree.Files, func(f content.TreeFile) bool { return path.Base(f.Path) == manifest.QuantizationPath }) {
			return manifest.WithHint(fmt.Errorf("audit %s: %s is not there", args[0], manifest.QuantizationPath),
				"`slipway weights pack` writes one")
		}
		r, err := a.verifyInto(cmd, *into, args[0], tree, options)
		if err != nil {
			return err
		}
		return a.printAudit(newAudit(r), *asJSON)
	}
	return cmd
}

// audit is what audit prints.
type audit struct {
	Profile  string              `json:"profile"`
	Set      string              `json:"set_digest,omitempty"`
	Trust    []report.Trust      `json:"trust"`
	Limits   report.Limits       `json:"limits"`
	Counts   *report.Counts      `json:"counts"` // null where nothing could be counted, and so is Accounts
	Accounts *report.Accounts    `json:"accounts"`
	Layers   []layerAudit        `json:"layers"`
	Tensors  []report.Tensor     `json:"tensors"`
	Gates    []report.GateResult `json:"gates"`
}

// layerAudit sums the ternary tensors of a layer.
type layerAudit struct {
	Layer     int      `json:"layer"` // -1: outside layers
	Tensors   int      `json:"tensors"`
	Histogram [4]int64 `json:"histogram"` // how often -1, 0, +1 and codes that are none of them stand
	ScaleMin  string   `json:"scale_min,omitempty"`
	ScaleMax  string   `json:"scale_max,omitempty"`
}

func newAudit(r *report.Report) audit {
	a := audit{Profile: r.Profile, Set: r.Set, Trust: r.Trust, Limits: r.Limits, Counts: r.Counts, Accounts: r.Accounts, Layers: []layerAudit{}, Tensors: r.Tensors, Gates: []report.GateResult{}}
	if a.Tensors == nil {
		a.Tensors = []report.Tensor{}
	}
	for _, gate := range r.Gates {
		if slices.Contains(auditGates, gate.ID) || r.Counts == nil && gate.ID == "declared" {
			a.Gates = append(a.Gates, gate)
		}
	}
	layers := map[int]*layerAudit{}
	for _, t := range r.Tensors {
		if t.Kind == manifest.KindFloat {
			continue
		}
		n := page.LayerOf(t.Name)
		if layers[n] == nil {
			layers[n] = &layerAudit{Layer: n}
		}
		layers[n].add(t)
	}
	for _, l := range layers {
		a.Layers = append(a.Layers, *l)
	}
	slices.SortFunc(a.Layers, func(x, y layerAudit) int { return int(uint32(x.Layer)) - int(uint32(y.Layer)) }) // those outside last
	return a
}

func (l *layerAudit) add(t report.Tensor) {
	l.Tensors++
	if t.Histogram != nil {
		for code, times := range t.Histogram {
			l.Histogram[code] += times
		}
	}
	l.ScaleMin = extreme(l.ScaleMin, t.ScaleMin, func(a, b float64) bool { return a < b })
	l.ScaleMax = extreme(l.ScaleMax, t.ScaleMax, func(a, b float64) bool { return a > b })
}

// extreme returns the number that comes before the other; "" is none.
func extreme(a, b string, before func(a, b float64) bool) string {
	x, errA := strconv.ParseFloat(a, 64)
	y, errB := strconv.ParseFloat(b, 64)
	switch {
	case errB != nil:
		return a
	case errA != nil || before(y, x):
		return b
	}
	return a
}

func (a *app) printAudit(audit audit, asJSON bool) error {
	failed := audit.Counts == nil || slices.ContainsFunc(audit.Gates, func(g report.GateResult) bool { return g.Status == report.Fail })
	if asJSON {
		if err := a.printJSON(audit); err != nil {
			return err
		}
	} else {
		if audit.Counts != nil {
			a.printLayers(audit.Layers)
			a.printCounts(audit.Counts, audit.Limits)
		}
		gates := func(w io.Writer) error { return report.WriteGates(w, audit.Gates) }
		if err := a.writeVerdicts(gates); err != nil {
			return err
		}
	}
	if failed {
		return errFindings
	}
	return nil
}

func (a *app) printLayers(layers []layerAudit) {
	if len(layers) == 0 {
		fmt.Fprintf(a.Stdout, "no entry is ternary\n\n")
		return
	}
	rows := [][]string{{"LAYER", "TENSORS", "-1", "0", "+1", "BAD", "SCALES FROM", "TO"}}
	for _, l := range layers {
		name := strconv.Itoa(l.Layer)
		if l.Layer < 0 {
			name = "outside"
		}
		total := l.Histogram[0] + l.Histogram[1] + l.Histogram[2] + l.Histogram[3]
		row := []string{name, strconv.Itoa(l.Tensors)}
		for _, times := range l.Histogram[:3] {
			row = append(row, share(times, total))
		}
		rows = append(rows, append(row, strconv.FormatInt(l.Histogram[3], 10), orDash(l.ScaleMin), orDash(l.ScaleMax)))
	}
	table(a.Stdout, rows)
	fmt.Fprintln(a.Stdout)
}

func share(part, whole int64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f%%", 100*float64(part)/float64(whole))
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func (a *app) printCounts(c *report.Counts, limits report.Limits) {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	base := "the base's text weights"
	if c.BaseSelfDeclared {
		base = "the manifest's own sum: no contract was given"
	}
	table(a.Stdout, [][]string{
		{"COUNT", "ELEMENTS", ""},
		{"T ternary", number(c.Ternary), fmt.Sprintf("%d packed and %d literal tensors of %d", c.Packed, c.Literal, c.Entries)},
		{"s scales", number(c.Scales), "by the rules called " + c.Counting},
		{"f floats", number(c.Floats), fmt.Sprintf("%d tensors", c.Float)},
		{"u unreferenced", number(c.Unreferenced), "in no entry of the manifest"},
		{"P0 base", number(c.Base), base},
	})
	fmt.Fprintln(a.Stdout)
	table(a.Stdout, [][]string{
		{"RULE", "RATIO", "EXACT", "MARGIN"},
		{"T/(T+s+f)", c.Fraction, c.FractionExact, c.FractionText(limits.FractionAbove)},
		{"(T+s+f+u)/P0", c.StoredRatio, c.StoredRatioExact, c.StoredText(limits.StoredAtMost)},
	})
	fmt.Fprintln(a.Stdout)
}
