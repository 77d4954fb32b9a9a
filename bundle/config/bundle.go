package config

import (
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"slipway/manifest"
	"slipway/verify/profiles"
)

// version is the bundle.hcl language that is read.
const version = 1

var (
	// namePattern is the distribution specification's tag grammar.
	namePattern       = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
	repositoryPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$`)
	revisionPattern   = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// Bundle is bundle.hcl: what goes into an artifact. Paths are relative to
// Folder, except where a field says otherwise.
type Bundle struct {
	Folder string // of bundle.hcl, in the system's form

	Name    Argument[string] // letters, digits, '.', '_' and '-'
	Profile Argument[string] // a shipped profile's name or a profile file's path; see ProfileSource

	Bases      []Base
	Weights    []Weights // at least one
	Files      []Files
	Runtime    *Runtime // nil: none is bundled
	Serve      Serve    // the defaults where there is no serve block
	Provenance Provenance
}

// Base is a pinned starting model.
type Base struct {
	Label      string
	At         Position
	Repository Argument[string] // "owner/name"
	Revision   Argument[string] // 40 hex digits
	Contract   Argument[string] // path; empty: the profile's own contract
}

// Weights is a folder of safetensors shards with what belongs to them.
type Weights struct {
	Label string
	At    Position
	Base  Argument[string] // label of a base; empty: made from none
	From  Argument[string] // folder
	// Manifest is the quantization manifest's path; empty: none. It is written
	// relative to From; where no file stands there, relative to Folder. Here it
	// is relative to Folder.
	Manifest     Argument[string]
	Pack         Argument[string] // PackKeep, the default, or PackTernary
	DropTiedHead Argument[bool]   // leave out a stored head that equals the embedding; default false
	MaxShard     Argument[int64]  // bytes; 0, the default: shards stay as they are
}

// What becomes of the tensors of a weights block.
const (
	PackKeep    = "keep"    // they stay as they are
	PackTernary = "ternary" // those that are exactly ternary become codes and scales
)

// Files is a folder of other files.
type Files struct {
	Target  string // folder in the bundle; ".": its root
	At      Position
	From    Argument[string]   // folder or file
	Include Argument[[]string] // patterns relative to From; default "**"
	Exclude Argument[[]string] // likewise; default none
}

// Runtime is the server that is bundled.
type Runtime struct {
	Kind   string // "native"
	At     Position
	Device Argument[string] // "cuda", the default, or "cpu"
	// Devices are the indexes of the GPUs, each of which gets a copy of the model;
	// empty with device "cpu".
	Devices  Argument[[]int64]
	Selftest Argument[*bool] // ship answers to reproduce before serving; nil: if the model is small enough
}

// Serve is how the bundle answers.
type Serve struct {
	At            Position
	Port          Argument[int64]  // default 8000
	Model         Argument[string] // name under which it answers; default the bundle's
	Thinking      Argument[string] // "on" or "off", the default
	AnswerReserve Argument[int64]  // tokens kept for the answer when thinking; default 512
}

// Provenance names the documents that say how the weights were made.
type Provenance struct {
	At   Position
	Data Argument[string]   // path of DATA.md; empty: none
	Logs Argument[[]string] // patterns relative to Folder; default none
}

// LoadBundle reads a bundle.hcl. Faults of its content are a *Diagnostics.
func LoadBundle(filename string) (*Bundle, error) {
	data, err := readSource(filename)
	if err != nil {
		return nil, manifest.WithHint(err, "write one with `slipway init`")
	}
	return ParseBundle(data, filename)
}

// readSource reads a configuration file, or as much as shows that it is too
// large for one.
func readSource(filename string) ([]byte, error) {
	info, err := os.Stat(filename)
	if err == nil && !info.Mode().IsRegular() { // opening a named pipe would wait for its other end
		return nil, fmt.Errorf("read %s: it is no file", filename)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", filename, manifest.Cause(err))
	}
	file, err := os.Open(filename)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", filename, manifest.Cause(err))
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxSourceBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", filename, manifest.Cause(err))
	}
	return data, nil
}

// ParseBundle is LoadBundle for a file that was read before. filename stands
// in the problems, and its folder is the bundle's: whether a profile file and
// a quantization manifest exist is looked up there.
func ParseBundle(data []byte, filename string) (*Bundle, error) {
	file, problems := openFile(data, filename)
	if file == nil {
		return nil, problems.result()
	}
	if !file.version("slipway", version) {
		return nil, problems.result()
	}
	b := &Bundle{Folder: filepath.Dir(filename)}
	b.readHead(file)
	b.readBases(file)
	b.readWeights(file)
	b.readFiles(file)
	refuseWheels(file)
	b.readRuntime(file)
	b.readServe(file)
	b.readProvenance(file)
	file.finish()
	if err := problems.result(); err != nil {
		return nil, err
	}
	return b, nil
}

// ProfileSource returns the profile as LoadProfile takes it: a shipped name,
// or the path of a file.
func (b *Bundle) ProfileSource() string {
	if strings.HasSuffix(b.Profile.Value, profileSuffix) {
		return filepath.Join(b.Folder, filepath.FromSlash(b.Profile.Value))
	}
	return b.Profile.Value
}

func (b *Bundle) readHead(file *section) {
	s := file.only("bundle", "name")
	if s == nil {
		file.missingBlock("bundle", `bundle "name" { profile = "..." }`)
		return
	}
	b.Name = Argument[string]{s.label, position(s.labelRange)}
	if s.label != "" && !namePattern.MatchString(s.label) {
		s.problems.add(s.labelRange, "use letters, digits, '.', '_' and '-', at most 128", "bundle name %q is not usable as a tag", manifest.Clip(s.label))
	}
	b.Profile = s.need("profile", `"practice"`)
	if b.Profile.Value != "" {
		b.checkProfile(s)
	}
	s.finish()
}

func (b *Bundle) checkProfile(s *section) {
	name := b.Profile.Value
	if !strings.HasSuffix(name, profileSuffix) {
		if _, shipped := profiles.Shipped(name); !shipped {
			s.fault("profile", Suggest(name, profiles.Names())+" (or a file that ends in .hcl)", "profile %q is not a shipped one", manifest.Clip(name))
		}
		return
	}
	if err := pathFault(name); err != nil {
		s.fault("profile", pathRemedy(name), "\"profile\": %v", err)
	} else if !b.isFile(name) {
		s.fault("profile", "shipped profiles: "+strings.Join(profiles.Names(), ", "), "profile %q is not a file beside this one", manifest.Clip(name))
	}
}

// isFile reports whether a regular file stands at a slash path in the folder.
func (b *Bundle) isFile(name string) bool {
	info, err := os.Lstat(filepath.Join(b.Folder, filepath.FromSlash(name)))
	return err == nil && info.Mode().IsRegular()
}

func (b *Bundle) readBases(file *section) {
	all := file.each("base", "label")
	distinct(all)
	for _, s := range all {
		base := Base{
			Label: s.label, At: position(s.header),
			Repository: s.need("repository", `"owner/name"`),
			Revision:   s.need("revision", `"<40 hex digits>"`),
			Contract:   s.path("contract"),
		}
		checkRepository(s, base.Repository.Value, base.Revision.Value)
		if s.find("proof") != nil {
			s.fault("proof", "remove the argument", "proof: not built yet")
		}
		s.finish()
		b.Bases = append(b.Bases, base)
	}
}

// checkRepository reports a repository or revision of the wrong form; empty
// ones have been reported before.
func checkRepository(s *section, repository, revision string) {
	if repository != "" && !repositoryPattern.MatchString(repository) {
		s.fault("repository", `write repository = "owner/name"`, "\"repository\" is %q", manifest.Clip(repository))
	}
	if revision != "" && !revisionPattern.MatchString(revision) {
		s.fault("revision", "write the full commit id: 40 hex digits in lower case; a branch or tag can move", "\"revision\" is %q", manifest.Clip(revision))
	}
}

func (b *Bundle) readWeights(file *section) {
	all := file.each("weights", "label")
	distinct(all)
	if len(all) == 0 {
		file.missingBlock("weights", `weights "language" { from = "weights" }`)
	}
	for _, s := range all {
		w := Weights{
			Label: s.label, At: position(s.header),
			Base: s.text("base", ""), From: s.needPath("from", `"weights"`), Manifest: s.path("manifest"),
			Pack:         s.choice("pack", PackKeep, PackKeep, PackTernary),
			DropTiedHead: s.flag("drop_tied_head", false),
			MaxShard:     s.size("max_shard"),
		}
		b.checkBaseLabel(s, w.Base.Value)
		if w.Manifest.Value != "" && w.From.Value != "" {
			w.Manifest.Value = b.locateManifest(s, w.From.Value, w.Manifest.Value)
		}
		s.finish()
		b.Weights = append(b.Weights, w)
	}
}

func (b *Bundle) checkBaseLabel(s *section, label string) {
	var labels []string
	for _, base := range b.Bases {
		labels = append(labels, base.Label)
	}
	if label == "" || slices.Contains(labels, label) {
		return
	}
	remedy := fmt.Sprintf("write base %q { ... }, or leave the argument out", manifest.Clip(label))
	if len(labels) > 0 {
		remedy = Suggest(label, labels)
	}
	s.fault("base", remedy, "no base block is labelled %q", manifest.Clip(label))
}

// locateManifest returns where a quantization manifest stands, relative to the
// bundle's folder: both layouts in use, beside the shards and at the root,
// write it by its bare name. Two candidates are one too many to guess.
func (b *Bundle) locateManifest(s *section, from, name string) string {
	beside := path.Join(from, name)
	if beside == name || !b.isFile(name) {
		return beside
	}
	if b.isFile(beside) {
		s.fault("manifest", "remove one of them", "%q stands in %q and beside this file", manifest.Clip(name), manifest.Clip(from))
	}
	return name
}

// size reads a number of bytes, 0 where it is left out.
func (s *section) size(name string) Argument[int64] {
	written := s.text(name, "")
	out := Argument[int64]{At: written.At}
	if written.Value == "" {
		return out
	}
	size, err := ParseSize(written.Value)
	if err != nil {
		s.fault(name, fmt.Sprintf(`write %s = "4GiB"`, name), "%q: %v", name, err)
	}
	out.Value = size
	return out
}

func (b *Bundle) readFiles(file *section) {
	for _, s := range file.each("files", "folder") {
		f := Files{
			Target: s.label, At: position(s.header), From: s.needPath("from", `"code"`),
			Include: s.texts("include", []string{"**"}, false, checkGlob),
			Exclude: s.texts("exclude", nil, false, checkGlob),
		}
		if f.Target == "" {
			f.Target = "."
		}
		if err := pathFault(f.Target); err != nil {
			s.problems.add(s.labelRange, pathRemedy(f.Target), "target folder: %v", err)
		}
		s.finish()
		b.Files = append(b.Files, f)
	}
}

// refuseWheels checks the block's arguments, so that a misspelt one is not
// found only once the block is built.
func refuseWheels(file *section) {
	s := file.only("wheels", "")
	if s == nil {
		return
	}
	for _, name := range []string{"lock", "python", "platform", "image"} {
		s.text(name, "")
	}
	s.finish()
	s.problems.add(s.header, `remove the block; files "wheels" { from = "wheels" } ships a folder as it is`, "wheels: not built yet")
}

func (b *Bundle) readRuntime(file *section) {
	s := file.only("runtime", "kind")
	if s == nil {
		return
	}
	kinds := []string{"native", "python"}
	switch s.label {
	case "native":
		b.Runtime = &Runtime{Kind: s.label, At: position(s.header), Device: s.choice("device", "cuda", "cuda", "cpu"), Devices: s.devices("devices")}
		if b.Runtime.Selftest.At = position(s.at("selftest")); s.find("selftest") != nil {
			value := s.flag("selftest", false).Value
			b.Runtime.Selftest.Value = &value
		}
		b.Runtime.completeDevices(s)
	case "python":
		s.texts("command", nil, true, nil)
		s.problems.add(s.header, "remove the block; a serve.sh of your own ships with a files block", "runtime \"python\": not built yet")
	default:
		if s.label != "" {
			s.problems.add(s.labelRange, Suggest(s.label, kinds), "runtime %q is unknown", manifest.Clip(s.label))
		}
		return // which arguments it takes is unknown too
	}
	s.finish()
}

// maxDevice bounds a GPU's index: no machine has so many.
const maxDevice = 63

// devices reads a list of GPUs' indexes; one that stands twice has two copies.
func (s *section) devices(name string) Argument[[]int64] {
	out := Argument[[]int64]{At: position(s.at(name))}
	expression := s.find(name)
	if expression == nil {
		return out
	}
	elements, ok := literalList(expression)
	if !ok || len(elements) == 0 {
		s.fault(name, fmt.Sprintf("write %s = [0]", name), "%q is not a list of GPUs' indexes", name)
		return out
	}
	for i, element := range elements {
		value, ok := literalWhole(element)
		if !ok || value < 0 || value > maxDevice {
			s.problems.add(element.Range(), "", "%s[%d] is not a whole number %s", name, i, interval(0, maxDevice))
			continue
		}
		out.Value = append(out.Value, value)
	}
	return out
}

// completeDevices fills in the first GPU where the block names none.
func (r *Runtime) completeDevices(s *section) {
	switch {
	case r.Device.Value == "cuda" && s.find("devices") == nil:
		r.Devices.Value = []int64{0}
	case r.Device.Value == "cpu" && s.find("devices") != nil:
		s.fault("devices", `remove it, or write device = "cuda"`, "\"devices\" are GPUs, and the device is \"cpu\"")
	}
}

func (b *Bundle) readServe(file *section) {
	s := file.only("serve", "")
	if s == nil {
		s = &section{problems: file.problems, kind: "serve", header: file.header, body: &hclsyntax.Body{}}
	}
	b.Serve = Serve{
		At:            position(s.header),
		Port:          s.whole("port", 8000, 1, 65535),
		Model:         s.text("model", b.Name.Value),
		Thinking:      s.choice("thinking", "off", "on", "off"),
		AnswerReserve: s.whole("answer_reserve", 512, 0, 1<<20),
	}
	s.finish()
}

func (b *Bundle) readProvenance(file *section) {
	s := file.only("provenance", "")
	if s == nil {
		return
	}
	b.Provenance = Provenance{At: position(s.header), Data: s.path("data"), Logs: s.texts("logs", nil, false, checkGlob)}
	s.finish()
}
