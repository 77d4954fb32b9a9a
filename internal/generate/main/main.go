// Command main writes a synthetic checkpoint of Qwen3.5-4B's or Maple's shapes
// into a new folder, for benchmarks and rehearsals at real size.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"slipway/internal/generate"
	"slipway/manifest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		if hint := manifest.Hint(err); hint != "" {
			fmt.Fprintln(os.Stderr, "  "+hint)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("generate", flag.ContinueOnError)
	var options generate.Options
	family := flags.String("family", "", fmt.Sprintf("another model, of %v (default Qwen3.5-4B)", generate.Families()))
	out := flags.String("out", "", "folder to write; absent or empty before")
	flags.Uint64Var(&options.Seed, "seed", 0, "other values for another number")
	flags.IntVar(&options.Layers, "layers", 0, "only the first so many text layers (default all)")
	flags.Int64Var(&options.Vocabulary, "vocabulary", 0, "rows of embedding and head (default as published)")
	flags.BoolVar(&options.TextOnly, "text-only", false, "leave out vision and multi-token prediction tensors")
	flags.IntVar(&options.Shards, "shards", 0, "number of shards (default 4)")
	flags.BoolVar(&options.HeadersOnly, "headers-only", false, "write no values: sparse files of full length")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" || flags.NArg() > 0 {
		return manifest.WithHint(errors.New("nothing says where to write"), "add --out DIR")
	}
	options.Family = generate.Family(*family)
	summary, err := generate.Write(ctx, *out, options)
	if err != nil {
		return err
	}
	for i, n := range summary.ShardBytes {
		fmt.Printf("shard %d: %d bytes\n", i+1, n)
	}
	fmt.Printf("%s: %d bytes (%.3f GiB), %d entries\n", *out, summary.Bytes, float64(summary.Bytes)/(1<<30), summary.Entries)
	return nil
}
