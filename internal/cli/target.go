package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"slipway/bundle"
	"slipway/bundle/config"
	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/layout"
	"slipway/manifest/registry"
	"slipway/verify/profiles"
)

func (a *app) cache() *content.DigestCache {
	if a.noCache || a.CacheDir == "" {
		return nil
	}
	return content.OpenDigestCache(filepath.Join(a.CacheDir, "digests.json"))
}

func (a *app) cacheFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.noCache, "no-cache", false, "hash every file again, whatever the digest cache knows")
}

func (a *app) relockFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.relock, "relock", false, "in a clone: write runtime/runtime.lock anew from the runtime that is built")
}

func (a *app) httpFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.plainHTTP, "plain-http", false, "allow http to registries on other machines")
}

// planned is a bundle.hcl with everything that was decided about it.
type planned struct {
	wanted  *config.Bundle
	profile profiles.Profile
	plan    *bundle.Plan
}

// plan loads and plans a bundle.hcl; a folder stands for the bundle.hcl in it.
// With toRead the plan is only looked at, and may name a runtime that is not built.
func (a *app) plan(ctx context.Context, path string, toRead bool) (*planned, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "bundle.hcl")
	}
	wanted, err := config.LoadBundle(path)
	if err != nil {
		return nil, err
	}
	profile, _, err := config.LoadProfile(wanted.ProfileSource())
	if err != nil {
		return nil, err
	}
	phases := a.phases()
	found, err := bundle.Inspect(ctx, wanted, bundle.Options{Phase: phases.begin, Progress: phases.add})
	phases.end()
	if err != nil {
		return nil, err
	}
	if wanted.Runtime != nil && a.Source != nil {
		if found.Runtime, err = a.builtRuntime(ctx, wanted.Runtime.Device.Value, toRead); err != nil {
			return nil, fmt.Errorf("%s: %w", wanted.Runtime.At, err)
		}
	}
	plan, err := bundle.MakePlan(wanted, profile, found)
	if err != nil {
		return nil, err
	}
	if plan.NeedsSelftest() && a.rehearsing && a.foreign() && wanted.Runtime.Selftest.Value == nil {
		fmt.Fprintf(a.Stderr, "note: built without selftest.json, which %s computes: there, the bundle has another digest\n", submissionPlatform)
		wanted.Runtime.Selftest.Value = new(bool) // false
		if plan, err = bundle.MakePlan(wanted, profile, found); err != nil {
			return nil, err
		}
	}
	if plan.NeedsSelftest() && !toRead {
		if found.Runtime.Selftest, err = a.selftest(ctx, plan); err != nil {
			return nil, fmt.Errorf("%s: %w", wanted.Runtime.At, err)
		}
		if plan, err = bundle.MakePlan(wanted, profile, found); err != nil {
			return nil, err
		}
	}
	return &planned{wanted, profile, plan}, nil
}

// bundleFile is the first argument, or the bundle.hcl of this folder.
func bundleFile(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	return "bundle.hcl"
}

// seal reads what a plan names. cache may be nil; only what builds or sends a
// bundle passes one.
func (a *app) seal(ctx context.Context, plan *bundle.Plan, cache *content.DigestCache) (*bundle.Sealed, error) {
	m := a.meter("read", planBytes(plan))
	defer m.end()
	sealed, err := bundle.Seal(ctx, plan, bundle.Options{Cache: cache, Progress: m.add})
	if err != nil {
		return nil, err
	}
	// That what was learnt cannot be kept costs time next time, and no more.
	_ = cache.Save()
	return sealed, nil
}

func planBytes(plan *bundle.Plan) int64 {
	var total int64
	for _, f := range plan.Files {
		total += f.Size
	}
	return total
}

// source is where an artifact is read from, under a name.
type source struct {
	content.Reader
	name   string // tag or digest in it
	origin content.Origin
	shown  string // how the user named it
	remedy string // when its bytes are not what its manifest says
	close  func() error
}

// openSource opens whatever holds an artifact: a bundle.hcl, a layout or a
// registry. A folder holds files but no artifact.
func (a *app) openSource(ctx context.Context, text string, cache *content.DigestCache) (*source, error) {
	path, name, kind := classify(text)
	if kind == content.OriginFolder && holdsBundle(path) {
		kind = originPlan
	}
	switch kind {
	case originOther:
		return nil, manifest.WithHint(fmt.Errorf("%s is a file and no bundle.hcl", text), "give the folder that holds it")
	case content.OriginLayout:
		l, err := layout.Open(path)
		if err != nil {
			return nil, err
		}
		return &source{l, name, kind, text, "a file of the layout was damaged or changed since it was built; build again", l.Close}, nil
	case content.OriginReference:
		s, _, err := a.registrySource(text)
		return s, notThere(text, err)
	case originPlan:
		p, err := a.plan(ctx, path, false)
		if err != nil {
			return nil, err
		}
		sealed, err := a.seal(ctx, p.plan, cache)
		if err != nil {
			return nil, err
		}
		return &source{sealed, "", content.OriginFolder, text, "build again", sealed.Close}, nil
	}
	return nil, manifest.WithHint(fmt.Errorf("%s is a folder of files and holds no artifact", text), "give the bundle.hcl that it was built from (the digest is the same), an OCI layout or a registry reference")
}

// holdsBundle reports whether a folder has a bundle.hcl to build from.
func holdsBundle(folder string) bool {
	info, err := os.Stat(filepath.Join(folder, "bundle.hcl"))
	return err == nil && info.Mode().IsRegular()
}

// openTree opens whatever holds a submission.
func (a *app) openTree(ctx context.Context, text string) (*content.Tree, error) {
	path, _, kind := classify(text)
	if kind == content.OriginFolder {
		if holdsBundle(path) {
			fmt.Fprintf(a.Stderr, "note: taking the files of %s as they lie there; %s says what a build takes of them\n", path, filepath.Join(path, "bundle.hcl"))
		}
		return content.OpenFolder(ctx, path)
	}
	s, err := a.openSource(ctx, text, nil)
	if err != nil {
		return nil, err
	}
	tree, err := content.OpenArtifact(ctx, s, s.name, s.origin, text)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	tree.OnClose(s.close)
	return tree, nil
}

// What an argument may be besides an origin of a tree.
const (
	originPlan  = content.Origin("plan")  // a bundle.hcl
	originOther = content.Origin("other") // a file that is none
)

// classify says what an argument names, by looking at the disk first.
func classify(text string) (path, name string, kind content.Origin) {
	if info, err := os.Stat(text); err == nil {
		switch {
		case !info.IsDir() && !strings.HasSuffix(text, ".hcl"):
			return text, "", originOther
		case !info.IsDir():
			return text, "", originPlan
		case layout.Is(text):
			return text, "", content.OriginLayout
		}
		return text, "", content.OriginFolder
	}
	for _, separator := range []string{"@", ":"} {
		if i := strings.LastIndex(text, separator); i > 0 && layout.Is(text[:i]) {
			return text[:i], text[i+1:], content.OriginLayout
		}
		if i := strings.Index(text, "@"); separator == "@" && i > 0 && layout.Is(text[:i]) {
			return text[:i], text[i+1:], content.OriginLayout
		}
	}
	if strings.HasSuffix(text, ".hcl") {
		return text, "", originPlan
	}
	return text, "", content.OriginReference
}

// notThere explains an argument that is neither on the disk nor a reference.
func notThere(text string, err error) error {
	if _, statErr := os.Lstat(text); errors.Is(statErr, fs.ErrNotExist) {
		var syntax referenceError
		if errors.As(err, &syntax) {
			return fmt.Errorf("%s: no such file or folder, and no registry reference either: %w", text, err)
		}
	}
	return err
}

// registrySource is the bundle that a reference names.
func (a *app) registrySource(text string) (*source, registry.Reference, error) {
	ref, err := registry.ParseReference(text)
	if err != nil {
		return nil, ref, referenceError{err}
	}
	repository, err := registry.Open(ref, a.registryOptions(nil))
	if err != nil {
		return nil, ref, err
	}
	return &source{
		Reader: repository, name: refName(ref), origin: content.OriginReference, shown: text, close: func() error { return nil },
		remedy: "the registry sent other bytes than its manifest names; try again, or ask its operator",
	}, ref, nil
}

// referenceError marks an argument that is no reference at all.
type referenceError struct{ error }

func (e referenceError) Unwrap() error { return e.error }

func (a *app) registryOptions(progress func(manifest.Descriptor, int64)) registry.Options {
	options := registry.Options{
		PlainHTTP: a.plainHTTP, DockerConfig: a.DockerConfig, UserAgent: "slipway/" + a.Version, Progress: progress,
		Warn:  func(text string) { fmt.Fprintf(a.Stderr, "note: %s\n", text) },
		Proxy: a.Proxy,
	}
	if a.CacheDir != "" {
		options.CacheDir = filepath.Join(a.CacheDir, "uploads")
	}
	return options
}

func refName(ref registry.Reference) string {
	if !ref.Digest.IsZero() {
		return ref.Digest.String()
	}
	return ref.Tag
}
