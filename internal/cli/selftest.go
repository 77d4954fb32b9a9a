package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"slipway/bundle"
	"slipway/manifest"
	"slipway/manifest/content"
)

// submissionPlatform is what submissions, and the runtime in them, are for.
const submissionPlatform = "linux/amd64"

// platform is what this machine runs.
func (a *app) platform() string { return cmp.Or(a.Platform, runtime.GOOS+"/"+runtime.GOARCH) }

// foreign reports whether this machine does not run what submissions are for.
func (a *app) foreign() bool { return a.platform() != submissionPlatform }

// skipSelftest is the remedy where a model cannot be run here.
const skipSelftest = "write selftest = false in the runtime block to build without known answers"

// selftest returns the known answers of a plan's model, as the runtime computes
// them on this machine's CPU, whatever the bundle will run on. They are the same
// on every machine, and remembered for this runtime and these weights.
func (a *app) selftest(ctx context.Context, plan *bundle.Plan) ([]byte, error) {
	if a.foreign() {
		return nil, manifest.WithHint(errors.New("make selftest.json: the runtime that computes it is for "+submissionPlatform), skipSelftest)
	}
	program, err := a.builtRuntime(ctx, "cpu", false)
	if err != nil {
		return nil, fmt.Errorf("make selftest.json: %w", err)
	}
	checkpoint := plan.Checkpoint()
	cache := a.cache()
	sealed, err := a.seal(ctx, checkpoint, cache)
	if err != nil {
		return nil, err
	}
	set := sealed.SetDigest
	if err := sealed.Close(); err != nil {
		return nil, err
	}
	remembered := ""
	if cache != nil {
		remembered = filepath.Join(a.CacheDir, "selftest", program.Digest.Hex()+"-"+set.Hex()+".json")
		if data, err := os.ReadFile(remembered); err == nil {
			return data, nil
		}
	}
	data, err := a.runSelftest(ctx, program.Path, checkpoint, cache)
	if err != nil || remembered == "" {
		return data, err
	}
	// That it cannot be kept costs time next time, and no more.
	if os.MkdirAll(filepath.Dir(remembered), 0o755) == nil {
		_ = content.ReplaceFile(remembered, data, 0o644)
	}
	return data, nil
}

// runSelftest writes the checkpoint as the bundle will have it and lets the
// runtime load it.
func (a *app) runSelftest(ctx context.Context, program string, checkpoint *bundle.Plan, cache *content.DigestCache) (data []byte, err error) {
	work, done, err := a.workFolder("slipway-selftest-*")
	if err != nil {
		return nil, err
	}
	defer func() {
		if removeErr := done(); err == nil {
			err = removeErr
		}
	}()
	folder, result := filepath.Join(work, "checkpoint"), filepath.Join(work, "selftest.json")
	sealed, err := bundle.WriteFolder(ctx, checkpoint, folder, bundle.Options{Cache: cache})
	if err != nil {
		return nil, fmt.Errorf("make selftest.json: %w", err)
	}
	if err := sealed.Close(); err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, program, "--weights", filepath.Join(folder, bundle.CheckpointPath), "--write-selftest", result)
	command.Env = []string{}
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGKILL) } // it has written nothing yet that is to be kept
	command.WaitDelay = time.Second
	said, err := command.CombinedOutput()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		why := strings.TrimSpace(strings.ReplaceAll(string(bytes.TrimSpace(said)), work+"/checkpoint/", ""))
		if why == "" {
			why = err.Error()
		}
		return nil, manifest.WithHint(fmt.Errorf("make selftest.json: the runtime cannot run the model on this CPU: %s", strings.TrimPrefix(why, "runtime: ")), skipSelftest)
	}
	return os.ReadFile(result)
}
