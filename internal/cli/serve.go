package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slipway/bundle"
	"slipway/bundle/config"
	"slipway/manifest/content"
	"slipway/verify/boot/local"
)

// serving are the flags of what starts a bundle's server to use it.
type serving struct {
	port    int
	profile string
	wait    time.Duration
}

func (s *serving) flags(cmd *cobra.Command, port int, portText string) {
	flags := cmd.Flags()
	flags.IntVar(&s.port, "port", port, portText)
	flags.StringVar(&s.profile, "profile", "", "task whose start limit applies; default: what bundle.hcl names")
	flags.DurationVar(&s.wait, "wait", 0, "how long the server may take to be healthy; default: the profile's start limit, else "+defaultWait.String())
}

// defaultWait is how long a start may take of which no profile says it: what the
// shipped tasks give.
const defaultWait = 5 * time.Minute

// check holds the flags against what they can be; low is the least port.
func (s *serving) check(low int) error {
	switch {
	case s.port < low || s.port > 65535:
		return usageError{fmt.Errorf("--port %d is not between %d and 65535", s.port, low)}
	case s.wait < 0:
		return usageError{fmt.Errorf("--wait %s is negative", s.wait)}
	}
	return nil
}

// limit is how long the start of what an argument names may take.
func (s *serving) limit(text string) (time.Duration, error) {
	if s.wait > 0 {
		return s.wait, nil
	}
	source := s.profile
	path, _, kind := classify(text)
	if planned := kind == originPlan || kind == content.OriginFolder && holdsBundle(path); source == "" && planned {
		if kind == content.OriginFolder {
			path = filepath.Join(path, "bundle.hcl")
		}
		wanted, err := config.LoadBundle(path)
		if err != nil {
			return 0, err
		}
		source = wanted.ProfileSource()
	}
	if source == "" {
		return defaultWait, nil
	}
	profile, _, err := config.LoadProfile(source)
	return time.Duration(profile.Load.StartSeconds * float64(time.Second)), err
}

func (a *app) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve [BUNDLE]",
		Short: "Start a bundle's server, as its grader would",
		Long: `Unpacks or builds BUNDLE where it is no folder, and runs its serve.sh with --port,
unsandboxed, until Ctrl-C. What the server prints goes to standard error. A serve.sh
that listens elsewhere is found there (on Linux).`,
		Args: between(0, 1),
	}
	var s serving
	s.flags(cmd, 8000, "where it listens")
	a.httpFlag(cmd)
	a.cacheFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := s.check(1); err != nil {
			return err
		}
		work, done, err := a.workFolder("slipway-serve-*")
		if err != nil {
			return err
		}
		defer func() { _ = done() }()
		return a.serve(cmd.Context(), bundleFile(args), work, s)
	}
	return cmd
}

// materialise returns a folder with the submission's files: itself, or target.
func (a *app) materialise(ctx context.Context, text, target string) (string, error) {
	path, _, kind := classify(text)
	switch {
	case kind == content.OriginFolder && !holdsBundle(path):
		return filepath.Abs(path)
	case kind == content.OriginFolder || kind == originPlan:
		p, err := a.plan(ctx, path, false)
		if err != nil {
			return "", err
		}
		sealed, err := bundle.WriteFolder(ctx, p.plan, target, bundle.Options{Cache: a.cache()})
		if err != nil {
			return "", err
		}
		return target, sealed.Close()
	}
	tree, err := a.openTree(ctx, text)
	if err != nil {
		return "", err
	}
	defer tree.Close()
	_, err = a.unpack(ctx, tree, target)
	return target, err
}

// serveGrace is more than the runtime gives requests that are running.
const serveGrace = 35 * time.Second

// start starts what an argument names and waits until it is healthy; work is an
// empty folder for its files. Stop must be called of the server it returns.
func (a *app) start(ctx context.Context, text, work string, s serving, options local.Options) (*local.Server, error) {
	limit, err := s.limit(text)
	if err != nil {
		return nil, err
	}
	if options.Folder, err = a.materialise(ctx, text, filepath.Join(work, "submission")); err != nil {
		return nil, err
	}
	options.TempDir, options.Path, options.Port = filepath.Join(work, "home"), a.Path, s.port
	if err := os.Mkdir(options.TempDir, 0o700); err != nil {
		return nil, err
	}
	server, err := local.Start(options)
	if err != nil {
		return nil, err
	}
	asked := server.URL
	fmt.Fprintf(a.Stderr, "started serve.sh; waiting for GET %s/health, up to %s\n", asked, limit)
	if _, err := server.WaitHealthy(ctx, limit); err != nil {
		server.Stop()
		return nil, err
	}
	if server.URL != asked {
		fmt.Fprintf(a.Stderr, "note: serve.sh takes no notice of --port: asked at %s, it answers at %s\n", asked, server.URL)
	}
	return server, nil
}

func (a *app) serve(ctx context.Context, text, work string, s serving) error {
	server, err := a.start(ctx, text, work, s, local.Options{Log: a.Stderr, Grace: serveGrace})
	if err != nil {
		return err
	}
	defer server.Stop()
	fmt.Fprintf(a.Stdout, "serving on %s (unsandboxed)\n", strings.Replace(server.URL, "127.0.0.1", "0.0.0.0", 1))
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-server.Exited():
		return fmt.Errorf("the server ended: %w", server.Err())
	}
}
