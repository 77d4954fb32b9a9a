package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/safetensors"
)

// inspection is what inspect prints.
type inspection struct {
	Origin   content.Origin        `json:"origin"`
	Artifact *manifest.Descriptor  `json:"artifact,omitempty"`
	Config   *manifest.ModelConfig `json:"config,omitempty"`
	Claimed  string                `json:"claimed_set_digest,omitempty"`
	Layers   []manifest.Descriptor `json:"layers,omitempty"`
	Files    []inspectedFile       `json:"files"`
	Faults   []string              `json:"faults,omitempty"`
}

type inspectedFile struct {
	Path    string            `json:"path"`
	Mode    manifest.Mode     `json:"mode"`
	Size    int64             `json:"size"`
	Digest  string            `json:"digest,omitempty"` // as the artifact claims
	Kind    manifest.Kind     `json:"kind,omitempty"`
	Layer   int               `json:"layer,omitempty"` // from 1
	Tensors []inspectedTensor `json:"tensors,omitempty"`
}

type inspectedTensor struct {
	Name  string  `json:"name"`
	DType string  `json:"dtype"`
	Shape []int64 `json:"shape"`
}

func (a *app) inspectCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inspect BUNDLE",
		Short: "Show an artifact's digest, config, layers and files",
		Long:  "Shows what a bundle says of itself; verify checks it. --tensors also reads the\nheader of every shard.",
		Args:  exactly(1),
	}
	a.httpFlag(cmd)
	tensors := cmd.Flags().Bool("tensors", false, "list the tensors of every shard")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		tree, err := a.openTree(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		defer tree.Close()
		found, err := inspectTree(cmd.Context(), tree, *tensors)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.printJSON(found)
		}
		a.printInspection(found)
		return nil
	}
	return cmd
}

func inspectTree(ctx context.Context, tree *content.Tree, tensors bool) (*inspection, error) {
	found := &inspection{Origin: tree.Origin}
	if view := tree.Artifact; view != nil {
		found.Artifact, found.Config, found.Layers = &view.Descriptor, &view.Config, view.Manifest.Layers
		found.Claimed = view.Manifest.Annotations[manifest.AnnotationSetDigest]
	}
	for _, f := range tree.Files {
		row := inspectedFile{Path: f.Path, Mode: f.Mode, Size: f.Size, Digest: f.Digest.String(), Kind: f.Kind, Layer: f.Layer + 1}
		if tensors && strings.HasSuffix(f.Path, ".safetensors") {
			listed, err := listTensors(ctx, tree, f)
			if err != nil {
				return nil, fmt.Errorf("read header of %s: %w", f.Path, err)
			}
			row.Tensors = listed
		}
		found.Files = append(found.Files, row)
	}
	for _, fault := range tree.Faults {
		found.Faults = append(found.Faults, fault.Path+" "+fault.Detail)
	}
	return found, nil
}

func listTensors(ctx context.Context, tree *content.Tree, file content.TreeFile) ([]inspectedTensor, error) {
	source, err := tree.Open(ctx, file)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	header, err := safetensors.ReadHeader(source, file.Size)
	if err != nil {
		return nil, err
	}
	listed := make([]inspectedTensor, 0, len(header.Tensors))
	for _, t := range header.Tensors {
		listed = append(listed, inspectedTensor{t.Name, t.DType.String(), t.Shape})
	}
	sort.Slice(listed, func(i, j int) bool { return listed[i].Name < listed[j].Name })
	return listed, nil
}

func (a *app) printInspection(found *inspection) {
	if found.Artifact != nil {
		fmt.Fprintf(a.Stdout, "artifact    %s\nset digest  %s (claimed)\n", found.Artifact.Digest, manifest.Printable(found.Claimed))
		c := found.Config
		fmt.Fprintf(a.Stdout, "model       %s\n\n", manifest.Printable(strings.Join(nonEmpty(c.Descriptor.Name, c.Config.Architecture, c.Config.ParamSize, c.Config.Precision, c.Config.Quantization), ", ")))
		rows := [][]string{{"LAYER", "TYPE", "SIZE", "DIGEST"}}
		for i, layer := range found.Layers {
			rows = append(rows, []string{strconv.Itoa(i + 1), strings.TrimPrefix(layer.MediaType, "application/vnd.cncf.model."), size(layer.Size), layer.Digest.Short()})
		}
		table(a.Stdout, rows)
		fmt.Fprintln(a.Stdout)
	}
	rows := [][]string{{"FILE", "MODE", "SIZE", "LAYER", "DIGEST"}}
	for _, f := range found.Files {
		layer, digest := strconv.Itoa(f.Layer), strings.TrimPrefix(f.Digest, "sha256:")
		if f.Layer == 0 {
			layer = "-"
		}
		if len(digest) > 12 {
			digest = digest[:12]
		}
		rows = append(rows, []string{f.Path, f.Mode.String(), size(f.Size), layer, digest})
		for _, t := range f.Tensors {
			rows = append(rows, []string{"  " + t.Name, "", t.DType, fmt.Sprint(t.Shape), ""})
		}
	}
	table(a.Stdout, rows)
	for _, fault := range found.Faults {
		fmt.Fprintf(a.Stdout, "fault: %s\n", manifest.Printable(fault))
	}
}

func nonEmpty(texts ...string) []string {
	var kept []string
	for _, t := range texts {
		if t != "" {
			kept = append(kept, t)
		}
	}
	return kept
}

// readSmall reads a file given by flag, at most 64 MiB.
func readSmall(name string) ([]byte, error) {
	const limit = 64 << 20
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() { // opening a named pipe would wait for its other end
		err = errors.New("it is no file")
	}
	if err != nil {
		return nil, readError(name, err)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, readError(name, err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && len(data) > limit {
		err = fmt.Errorf("read %s: it is larger than %d bytes", name, limit)
	}
	return data, err
}

// readError says which file could not be read, once.
func readError(name string, err error) error {
	return fmt.Errorf("read %s: %w", name, manifest.Cause(err))
}
