// Command broken writes the submissions of examples/broken into a folder, each
// with the one fault that its case describes and, beside it, its fixed twin, so
// that they can be tried:
//
//	go run ./examples/broken --out /tmp/broken unknown-option
//	slipway rehearse --profile /tmp/broken/majority.hcl /tmp/broken/unknown-option
package main

import (
	"embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"

	"slipway/internal/generate/broken"
	"slipway/manifest"
)

//go:embed base cases *.hcl image.json
var folder embed.FS

func main() {
	err := run(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "broken:", err)
		if hint := manifest.Hint(err); hint != "" {
			fmt.Fprintln(os.Stderr, "  "+hint)
		}
		os.Exit(1)
	}
}

// run writes the named cases, or all, and prints how to try each.
func run(args []string) error {
	flags := flag.NewFlagSet("broken", flag.ContinueOnError)
	out := flags.String("out", "", "folder to write into")
	table := flags.Bool("table", false, "print the table of README.md instead")
	if err := flags.Parse(args); err != nil {
		return err
	}
	set, err := broken.Load(folder)
	switch {
	case err != nil:
		return err
	case *table:
		fmt.Print(broken.Table(set.Cases))
		return nil
	case *out == "":
		return manifest.WithHint(errors.New("nothing says where to write"), "add --out DIR")
	}
	names := flags.Args()
	for _, name := range names {
		if !slices.ContainsFunc(set.Cases, func(c broken.Case) bool { return c.Name == name }) {
			return fmt.Errorf("there is no case %q in examples/broken/cases", manifest.Clip(name))
		}
	}
	for i := range set.Cases {
		c := &set.Cases[i]
		if len(names) > 0 && !slices.Contains(names, c.Name) {
			continue
		}
		for _, fixed := range []bool{false, true} {
			written, err := set.Write(*out, c, fixed)
			if err != nil {
				return err
			}
			fmt.Printf("slipway rehearse --profile %s %s\n", written.Profile, written.Folder)
		}
	}
	return nil
}
