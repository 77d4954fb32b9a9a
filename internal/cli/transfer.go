package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/layout"
	"slipway/manifest/registry"
)

func (a *app) pushCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "push BUNDLE REFERENCE",
		Short: "Send a bundle to a registry",
		Long: `Sends a bundle.hcl (read straight from its sources) or an OCI layout to
HOST/NAME:TAG. Blobs that the registry has are not sent again, an interrupted
push goes on where it stopped, and the tag is written last.`,
		Args: exactly(2),
	}
	a.httpFlag(cmd)
	a.cacheFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ref, err := pushReference(args[1])
		if err != nil {
			return err
		}
		from, err := a.openSource(cmd.Context(), args[0], a.cache())
		if err != nil {
			return err
		}
		defer from.close()
		descriptor, err := a.push(cmd.Context(), from, ref)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.Stdout, "pushed %s\n%s\n", ref, descriptor.Digest)
		return nil
	}
	return cmd
}

// pushReference parses what is to be pushed to: a reference with a tag.
func pushReference(text string) (registry.Reference, error) {
	ref, err := registry.ParseReference(text)
	if err != nil {
		return ref, usageError{err}
	}
	if ref.Tag == "" {
		err = manifest.WithHint(fmt.Errorf("%s has no tag to push to", text), "write "+ref.Host+"/"+ref.Repository+":TAG")
		return ref, usageError{err}
	}
	return ref, nil
}

func (a *app) push(ctx context.Context, from *source, ref registry.Reference) (manifest.Descriptor, error) {
	total, err := artifactBytes(ctx, from)
	if err != nil {
		return manifest.Descriptor{}, err
	}
	m := a.meter("push "+ref.String(), total)
	defer m.end()
	sum := &sentBytes{sent: map[manifest.Digest]int64{}, show: m.set}
	repository, err := registry.Open(ref, a.registryOptions(sum.set))
	if err != nil {
		return manifest.Descriptor{}, err
	}
	return content.Copy(ctx, from, from.name, repository, ref.Tag, content.CopyOptions{
		Remedy:  from.remedy,
		Skipped: func(blob manifest.Descriptor) { sum.set(blob, blob.Size) },
	})
}

// sentBytes adds up what every blob says of itself.
type sentBytes struct {
	mu   sync.Mutex
	sent map[manifest.Digest]int64
	show func(int64)
}

func (s *sentBytes) set(blob manifest.Descriptor, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent[blob.Digest] = bytes
	var total int64
	for _, n := range s.sent {
		total += n
	}
	s.show(total)
}

func artifactBytes(ctx context.Context, from *source) (int64, error) {
	descriptor, err := from.Resolve(ctx, from.name)
	if err != nil {
		return 0, err
	}
	data, err := content.ReadBlob(ctx, from, descriptor, manifest.MaxManifestBytes)
	if err != nil {
		return 0, fmt.Errorf("read manifest of %s: %w", from.shown, err)
	}
	artifact, err := manifest.DecodeArtifact(data)
	if err != nil {
		return 0, err
	}
	total := artifact.Config.Size
	for _, layer := range artifact.Layers {
		total += layer.Size
	}
	return total, nil
}

func (a *app) pullCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pull REFERENCE LAYOUT",
		Short: "Bring a bundle from a registry into an OCI layout",
		Long:  "Every byte is verified before it has its name in the layout. Blobs that are\nthere already are hashed and not fetched again.",
		Args:  exactly(2),
	}
	a.httpFlag(cmd)
	tag := cmd.Flags().String("tag", "", "name in the layout's index (default: the reference's tag)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkTag(*tag); err != nil {
			return err
		}
		from, ref, err := a.registrySource(args[0])
		var syntax referenceError
		if errors.As(err, &syntax) {
			return usageError{err}
		}
		if err != nil {
			return err
		}
		name := *tag
		if name == "" {
			name = ref.Tag
		}
		descriptor, err := a.pull(cmd.Context(), from, args[1], name)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.Stdout, "pulled %s into %s\n%s\n", ref, args[1], descriptor.Digest)
		return nil
	}
	return cmd
}

func (a *app) pull(ctx context.Context, from *source, into, tag string) (manifest.Descriptor, error) {
	total, err := artifactBytes(ctx, from)
	if err != nil {
		return manifest.Descriptor{}, err
	}
	target, err := layout.Create(into, nil)
	if err != nil {
		return manifest.Descriptor{}, err
	}
	defer target.Close()
	m := a.meter("pull "+into, total)
	defer m.end()
	descriptor, err := content.Copy(ctx, from, from.name, target, tag, content.CopyOptions{
		Remedy:   from.remedy,
		Progress: func(_ manifest.Descriptor, bytes int64) { m.add(bytes) },
		Skipped:  func(blob manifest.Descriptor) { m.add(blob.Size) },
	})
	if err != nil {
		if ctx.Err() == nil && !resumable(err) {
			target.Discard()
		}
		return descriptor, fmt.Errorf("%s: %w", from.shown, err)
	}
	if tag == "" {
		err = target.Tag(ctx, descriptor, "")
	}
	return descriptor, err
}

// resumable reports whether a transfer may go well next time as it is: then
// what it fetched stays. Wrong bytes and a full disk are not of that kind.
func resumable(err error) bool {
	var integrity *content.IntegrityError
	return !errors.As(err, &integrity) && !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) && !errors.Is(err, syscall.EFBIG)
}

func (a *app) unpackCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "unpack BUNDLE DIR",
		Short: "Write a bundle's files into a folder",
		Long:  "DIR appears when it is complete, in place of an earlier bundle if there was one.\nNothing is written outside it, and nothing at all if the bundle holds a path,\nlink or digest that is not right.",
		Args:  exactly(2),
	}
	a.httpFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		tree, err := a.openTree(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		defer tree.Close()
		set, err := a.unpack(cmd.Context(), tree, args[1])
		if err != nil {
			return err
		}
		fmt.Fprintf(a.Stdout, "unpacked %d files into %s\nset digest %s\n", len(tree.Files), args[1], set)
		return nil
	}
	return cmd
}

func (a *app) unpack(ctx context.Context, tree *content.Tree, folder string) (manifest.Digest, error) {
	m := a.meter("unpack "+folder, treeBytes(tree))
	defer m.end()
	return content.Unpack(ctx, tree, folder, m.add)
}

func treeBytes(tree *content.Tree) int64 {
	var total int64
	for _, f := range tree.Files {
		total += f.Size
	}
	return total
}
