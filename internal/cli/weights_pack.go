package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"slipway/bundle/config"
	"slipway/bundle/pack"
	"slipway/manifest"
)

func (a *app) packCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pack DIR --out DIR",
		Short: "Pack ternary weights losslessly, reshard, or drop a tied head",
		Long: `Reads the safetensors shards of DIR and writes a folder in which exactly ternary
tensors are two-bit codes and scales, and everything else is as it was. No value
changes; the sign of a negative zero is lost, and counted. A nearly ternary tensor
is an error that names the first row and input at fault. --undo turns a packed
folder back: the same shards, headers and bytes.`,
		Args: exactly(1),
	}
	flags := cmd.Flags()
	out := flags.String("out", "", "folder to write; must not exist, or be empty")
	size := flags.String("max-shard", "", "largest shard, such as 4GiB; a larger tensor gets one of its own")
	var options pack.Options
	flags.StringArrayVar(&options.Tensors, "tensors", nil, "pattern of names of tensors that must be packed; may be given again")
	keep := flags.Bool("keep", false, "pack nothing: only reshard, and drop a repeated head")
	keepHead := flags.Bool("keep-head", false, "keep a stored head, also where it repeats the tied embedding")
	undo := flags.Bool("undo", false, "turn a packed folder back into what it was made of")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *out == "" {
			return usageError{manifest.WithHint(errors.New("nothing says where to write"), "add --out DIR")}
		}
		if *undo {
			for _, other := range []string{"max-shard", "tensors", "keep", "keep-head"} {
				if flags.Changed(other) {
					return usageError{fmt.Errorf("--undo does not go with --%s", other)}
				}
			}
			return a.undoPack(cmd.Context(), args[0], *out, *asJSON)
		}
		if *keep && len(options.Tensors) > 0 {
			return usageError{errors.New("--keep does not go with --tensors")}
		}
		if flags.Changed("max-shard") {
			limit, err := config.ParseSize(*size)
			if err != nil {
				return usageError{manifest.WithHint(fmt.Errorf("--max-shard: %w", err), "write --max-shard 4GiB")}
			}
			options.MaxShard = limit
		}
		options.Ternary, options.DropTiedHead = !*keep, !*keepHead
		return a.pack(cmd.Context(), args[0], *out, options, *asJSON)
	}
	return cmd
}

func (a *app) pack(ctx context.Context, from, to string, options pack.Options, asJSON bool) error {
	phases := a.phases()
	options.Phase, options.Progress = phases.begin, phases.add
	report, err := pack.Folder(ctx, from, to, options)
	phases.end()
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(report)
	}
	a.printPacked(report, to)
	return nil
}

func (a *app) printPacked(r *pack.Report, to string) {
	if len(r.Packed) > 0 {
		table(a.Stdout, packedRows(r.Packed))
		fmt.Fprintln(a.Stdout)
	}
	for _, line := range keptLines(r.Kept) {
		fmt.Fprintln(a.Stdout, line)
	}
	for _, d := range r.Dropped {
		fmt.Fprintf(a.Stdout, "left out: %s repeats %s (%s saved)\n", manifest.Printable(d.Name), manifest.Printable(d.SameAs), size(d.Bytes))
	}
	for _, name := range r.LeftOut {
		fmt.Fprintf(a.Stdout, "left out: %s\n", manifest.Printable(name))
	}
	for _, note := range r.Notes {
		fmt.Fprintf(a.Stdout, "note: %s\n", manifest.Printable(note))
	}
	if r.NegativeZeros > 0 {
		fmt.Fprintf(a.Stdout, "note: %d negative zeros are zeros now; every other value is the same\n", r.NegativeZeros)
	}
	fmt.Fprintf(a.Stdout, "wrote %s: %s in %s, was %s\n", to, size(r.BytesAfter), count(len(r.Files), "shard"), size(r.BytesBefore))
}

// packedRows sums packed tensors by unit and scale type, in the order of their
// first names.
func packedRows(packed []pack.PackedTensor) [][]string {
	type form struct {
		unit  pack.Unit
		dtype string
	}
	var order []form
	tensors, weights := map[form]int{}, map[form]int64{}
	for _, p := range packed {
		f := form{p.Unit, p.ScaleDType}
		if tensors[f] == 0 {
			order = append(order, f)
		}
		tensors[f]++
		weights[f] += p.Elements
	}
	rows := [][]string{{"PACKED BY", "SCALES", "TENSORS", "WEIGHTS"}}
	for _, f := range order {
		rows = append(rows, []string{f.unit.String(), f.dtype, strconv.Itoa(tensors[f]), strconv.FormatInt(weights[f], 10)})
	}
	return rows
}

// keptNames is how many tensors that stayed are named for a reason.
const keptNames = 3

// keptLines says for each reason which tensors stay as they are.
func keptLines(kept []pack.KeptTensor) []string {
	names := map[string][]string{}
	var reasons []string
	for _, k := range kept {
		if names[k.Why] == nil {
			reasons = append(reasons, k.Why)
		}
		names[k.Why] = append(names[k.Why], manifest.Printable(k.Name))
	}
	slices.Sort(reasons)
	var lines []string
	for _, why := range reasons {
		all := names[why]
		shown := strings.Join(all[:min(len(all), keptNames)], ", ")
		if more := len(all) - keptNames; more > 0 {
			shown += fmt.Sprintf(" and %d more", more)
		}
		lines = append(lines, fmt.Sprintf("as it was, %s: %s", why, shown))
	}
	return lines
}

func (a *app) undoPack(ctx context.Context, from, to string, asJSON bool) error {
	phases := a.phases()
	restored, err := pack.Undo(ctx, from, to, pack.Options{Phase: phases.begin, Progress: phases.add})
	phases.end()
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(restored)
	}
	for _, f := range restored.Files {
		fmt.Fprintf(a.Stdout, "%s  %s\n", f.Digest.Hex(), manifest.Printable(f.Name))
	}
	if restored.NegativeZeros > 0 {
		fmt.Fprintf(a.Stdout, "note: %d zeros were negative before they were packed; every other value is the same\n", restored.NegativeZeros)
	}
	fmt.Fprintf(a.Stdout, "wrote %s: %s\n", to, count(len(restored.Files), "shard"))
	return nil
}
