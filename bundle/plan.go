package bundle

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"slipway/bundle/config"
	"slipway/bundle/pack"
	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/profiles"
)

// Plan says what would be built. It is a pure function of bundle.hcl, the
// profile and the inventory; whoever executes it decides nothing.
type Plan struct {
	Name    string        `json:"name"`
	Profile string        `json:"profile"`
	Files   []PlannedFile `json:"files"`  // sorted by path; inventory.json is added when digests are known
	Layers  []Layer       `json:"layers"` // in artifact order
	LeftOut []LeftOut     `json:"left_out"`
	Notes   []string      `json:"notes"` // what its owner should know before building
	Model   Model         `json:"model"`

	folder string         // of bundle.hcl; sources are relative to it
	listed []config.Files // files blocks: what lies in their folders is taken
}

// PlannedFile is one file of the artifact: where it comes from and why it is
// there. Source is empty for a generated file.
type PlannedFile struct {
	Path   string        `json:"path"`
	Mode   manifest.Mode `json:"mode"`
	Size   int64         `json:"size"`
	Kind   manifest.Kind `json:"kind"`
	Source string        `json:"source,omitempty"`
	Why    string        `json:"why"`

	content []byte
	shard   *pack.Shard // makes the bytes of a generated file, in place of content
	folder  string      // where Source is relative to, if not to the folder of bundle.hcl
}

// Layer is one layer of the artifact. Raw layers have one path.
type Layer struct {
	Kind     manifest.Kind     `json:"kind"`
	Encoding manifest.Encoding `json:"encoding"`
	Size     int64             `json:"size"` // bytes of its files
	Paths    []string          `json:"paths"`
	Why      string            `json:"why"`
}

// LeftOut is a file of a weights folder that does not go into the artifact.
type LeftOut struct {
	Source string `json:"source"`
	Why    string `json:"why"`
}

// Model is what the artifact's config says of the model.
type Model struct {
	Architecture string `json:"architecture,omitempty"`
	Parameters   int64  `json:"parameters,omitempty"` // logical elements, embedding included
	Precision    string `json:"precision,omitempty"`
	Quantization string `json:"quantization,omitempty"`
	Revision     string `json:"revision,omitempty"` // of the first base
}

// MakePlan decides what goes where.
func MakePlan(wanted *config.Bundle, profile profiles.Profile, found *Inventory) (*Plan, error) {
	p := &planner{wanted: wanted, profile: profile, found: found, taken: map[string]bool{},
		plan: &Plan{LeftOut: []LeftOut{}, Notes: []string{}, Name: wanted.Name.Value, Profile: profile.Name, folder: found.Folder, listed: wanted.Files}}
	for _, list := range append(found.Files, found.Data, found.Logs) {
		for _, file := range list {
			p.taken[file.Path] = true
		}
	}
	for _, step := range []func() error{p.checkBases, p.addWeights, p.addFiles, p.addProvenance, p.addRuntime, p.addDeclarations, p.finish} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("plan %q: %w", wanted.Name.Value, err)
		}
	}
	return p.plan, nil
}

type planner struct {
	wanted  *config.Bundle
	profile profiles.Profile
	found   *Inventory
	plan    *Plan
	taken   map[string]bool // sources that a files block or provenance takes
	dropped int64           // elements of heads that are left out
}

// checkBases holds the bases against the ones that the profile pins.
func (p *planner) checkBases() error {
	for _, pinned := range p.profile.Bases {
		i := slices.IndexFunc(p.wanted.Bases, func(b config.Base) bool { return b.Label == pinned.Label })
		if i < 0 {
			return manifest.WithHint(fmt.Errorf("profile %s needs base %q", p.profile.Name, pinned.Label),
				fmt.Sprintf("add:\nbase %q {\n  repository = %q\n  revision   = %q\n}", pinned.Label, pinned.Repository, pinned.Revision))
		}
		given := p.wanted.Bases[i]
		if given.Repository.Value != pinned.Repository || given.Revision.Value != pinned.Revision {
			return manifest.WithHint(fmt.Errorf("%s: base %q is %s@%s, the profile pins %s@%s", given.At, given.Label,
				given.Repository.Value, given.Revision.Value, pinned.Repository, pinned.Revision), "start from the pinned revision, or choose another profile")
		}
	}
	return nil
}

// weightsFolder is where a weights block's files go: weights/ for the only
// one, else a folder a block.
func (p *planner) weightsFolder(w config.Weights) string {
	if len(p.wanted.Weights) == 1 {
		return CheckpointPath
	}
	return path.Join(CheckpointPath, w.Label)
}

func (p *planner) addWeights() error {
	for i, w := range p.wanted.Weights {
		folder := p.weightsFolder(w)
		arranged, err := p.arrange(i, w)
		if err != nil {
			return fmt.Errorf("weights %q: %w", w.Label, err)
		}
		for _, name := range p.found.Folders[i] {
			p.plan.LeftOut = append(p.plan.LeftOut, LeftOut{name + "/", "a folder: only files directly in `from` are taken"})
		}
		for _, file := range p.found.Weights[i] {
			base := path.Base(file.Path)
			switch {
			case file.Path == w.Manifest.Value:
			case arranged != nil && (isShard(base) || base == safetensors.IndexName): // replaced
			case isShard(base):
				p.take(file, path.Join(folder, base), "weight shard of weights \""+w.Label+"\"")
			case isShard(base) || config.IsModelFile(base):
				p.take(file, path.Join(folder, base), "the model's configuration or tokenizer")
			case !p.taken[file.Path]:
				p.leaveOut(file, base)
			}
		}
		if err := p.checkShards(i, w); err != nil {
			return fmt.Errorf("weights %q: %w", w.Label, err)
		}
		if arranged != nil {
			if err := p.addArranged(w, arranged); err != nil {
				return fmt.Errorf("weights %q: %w", w.Label, err)
			}
		}
		if w.Manifest.Value != "" && (arranged == nil || arranged.Quantization == nil) {
			if err := p.addQuantization(i, w); err != nil {
				return fmt.Errorf("weights %q: %w", w.Label, err)
			}
		}
	}
	return nil
}

func (p *planner) leaveOut(file manifest.File, base string) {
	why := "not a model file; a files block can ship it"
	switch {
	case base == "bundle.hcl":
		why = "the description of the bundle"
	case base == pack.RecordPath:
		why = "tells `slipway weights pack --undo` what the weights were"
	case slices.Contains(weightLike, path.Ext(base)):
		why = "weights in another format than safetensors"
	}
	p.plan.LeftOut = append(p.plan.LeftOut, LeftOut{file.Path, why})
}

// checkShards holds the shards against their index.
func (p *planner) checkShards(i int, w config.Weights) error {
	headers := map[string]*safetensors.Header{}
	for _, file := range p.found.Weights[i] {
		if !isShard(file.Path) {
			continue
		}
		headers[path.Base(file.Path)] = p.found.Headers[file.Path]
	}
	problems := safetensors.CheckShards(headers)
	from := path.Clean(w.From.Value)
	if data, indexed := p.found.Documents[path.Join(from, safetensors.IndexName)]; indexed {
		index, err := safetensors.ReadIndex(data)
		if err != nil {
			return fmt.Errorf("read %s: %w", path.Join(from, safetensors.IndexName), err)
		}
		problems = index.Check(headers)
	}
	var faults []error
	for _, problem := range problems {
		if problem.Warning {
			p.plan.Notes = append(p.plan.Notes, problem.String())
		} else {
			faults = append(faults, errors.New(problem.String()))
		}
	}
	return errors.Join(faults...)
}

// addQuantization ships the quantization manifest at the root, its bytes
// unchanged, once every tensor it refers to was found.
func (p *planner) addQuantization(i int, w config.Weights) error {
	data := p.found.Documents[w.Manifest.Value]
	quantization, err := manifest.DecodeQuantization(data)
	if err != nil {
		return fmt.Errorf("read %s: %w", w.Manifest.Value, err)
	}
	for _, name := range quantization.Names() {
		for _, stored := range quantization.Tensors[name].Stored() {
			shard := path.Join(path.Clean(w.From.Value), strings.TrimPrefix(stored.File, p.weightsFolder(w)+"/"))
			header, present := p.found.Headers[shard]
			if !present {
				return fmt.Errorf("%s: tensor %q needs shard %s, which is not there", w.Manifest.Value, name, shard)
			}
			if _, present := header.Lookup(stored.Tensor); !present {
				return fmt.Errorf("%s: tensor %q needs %q of %s, which is not there", w.Manifest.Value, name, stored.Tensor, shard)
			}
		}
	}
	p.countQuantized(quantization)
	p.plan.Files = append(p.plan.Files, PlannedFile{
		Path: manifest.QuantizationPath, Mode: manifest.ModeFile, Size: int64(len(data)), Kind: manifest.KindConfig,
		Source: w.Manifest.Value, Why: "says how each tensor is stored",
	})
	return nil
}

func (p *planner) countQuantized(quantization manifest.Quantization) {
	p.plan.Model.Quantization = manifest.KindPacked2Bit
	for _, tensor := range quantization.Tensors {
		p.plan.Model.Parameters += manifest.ContractTensor{Shape: tensor.Shape}.Elements()
	}
}

func (p *planner) addFiles() error {
	for i, f := range p.wanted.Files {
		for _, file := range p.found.Files[i] {
			name := relative(f.From.Value, file.Path)
			if file.Path == f.From.Value {
				name = path.Base(name)
			}
			p.take(file, path.Join(f.Target, name), fmt.Sprintf("files %q", f.Target))
		}
	}
	return nil
}

func (p *planner) addProvenance() error {
	for _, file := range p.found.Data {
		p.take(file, "DATA.md", "provenance: data")
	}
	for _, file := range p.found.Logs {
		p.take(file, path.Join("provenance", path.Base(file.Path)), "provenance: logs")
	}
	return nil
}

// Where the runtime and its source stand in a bundle.
const (
	runtimePath   = "runtime/serve"
	sourceTarPath = "runtime/source.tar"
	selftestPath  = "runtime/selftest.json"
)

// addRuntime ships the server, what it was built from, and the script that
// starts it; a serve.sh of the owner's takes the place of ours.
func (p *planner) addRuntime() error {
	if p.wanted.Runtime == nil {
		return nil
	}
	if err := p.checkNative(); err != nil {
		return err
	}
	built := p.found.Runtime
	if built == nil {
		p.plan.Notes = append(p.plan.Notes, "no runtime and no serve.sh are bundled: this build of slipway carries none")
		return nil
	}
	p.plan.Files = append(p.plan.Files,
		PlannedFile{
			Path: runtimePath, Mode: manifest.ModeExecutable, Size: built.Size, Kind: manifest.KindCode,
			Source: filepath.Base(built.Path), folder: filepath.Dir(built.Path), Why: "the server",
		},
		PlannedFile{
			Path: sourceTarPath, Mode: manifest.ModeFile, Size: int64(len(built.SourceTar)), Kind: manifest.KindCode,
			Why: "what the server was built from", content: built.SourceTar,
		})
	if p.has(servePath) {
		return nil
	}
	script := serveScript(*p.wanted.Runtime, p.wanted.Serve, p.wanted.Name.Value, p.addSelftest())
	p.plan.Files = append(p.plan.Files, PlannedFile{
		Path: servePath, Mode: manifest.ModeExecutable, Size: int64(len(script)), Kind: manifest.KindCode,
		Why: "generated: starts the server", content: script,
	})
	return nil
}

// checkNative refuses a model that the runtime does not know, before anything is
// made of it. A serve.sh of the owner's may start something else.
func (p *planner) checkNative() error {
	if p.has(servePath) || len(p.wanted.Weights) > 1 {
		return nil
	}
	facts, err := p.modelFacts()
	if err != nil {
		return err
	}
	if why := config.NotNative(facts.architecture); why != "" {
		return manifest.WithHint(errors.New(why), "bring a serve.sh of your own (files block), and remove the runtime block")
	}
	return nil
}

func (p *planner) take(file manifest.File, target, why string) {
	p.plan.Files = append(p.plan.Files, PlannedFile{
		Path: target, Mode: file.Mode, Size: file.Size, Kind: kindOf(target), Source: file.Path, Why: why,
	})
}

func (p *planner) has(target string) bool {
	return slices.ContainsFunc(p.plan.Files, func(f PlannedFile) bool { return f.Path == target })
}

// finish describes the model, checks the paths and cuts the layers.
func (p *planner) finish() error {
	if p.has(manifest.InventoryPath) {
		return manifest.WithHint(fmt.Errorf("%s is written by slipway and cannot be one of the files", manifest.InventoryPath), "exclude it")
	}
	slices.SortFunc(p.plan.Files, func(a, b PlannedFile) int { return strings.Compare(a.Path, b.Path) })
	paths := []string{manifest.InventoryPath}
	for _, f := range p.plan.Files {
		paths = append(paths, f.Path)
	}
	if faults := manifest.CheckPaths(paths); len(faults) > 0 {
		return errors.Join(faults...)
	}
	if err := p.describeModel(); err != nil {
		return err
	}
	p.noteMissing()
	p.plan.Layers = cutLayers(p.plan.Files)
	if n := len(p.plan.Layers); n > manifest.MaxLayers {
		return manifest.WithHint(fmt.Errorf("%d layers are more than %d", n, manifest.MaxLayers), "save the checkpoint in fewer, larger shards")
	}
	p.plan.Notes = append(p.plan.Notes, registryNotes(p.plan.Layers)...)
	return nil
}

// modelFacts reads the config.json of the first weights block.
func (p *planner) modelFacts() (modelFacts, error) {
	facts, err := readModelFacts(p.found.Documents[path.Join(path.Clean(p.wanted.Weights[0].From.Value), "config.json")])
	if err != nil {
		return facts, fmt.Errorf("read config.json: %w", err)
	}
	return facts, nil
}

// describeModel fills Model from the first weights block.
func (p *planner) describeModel() error {
	m := &p.plan.Model
	if len(p.wanted.Bases) > 0 {
		m.Revision = p.wanted.Bases[0].Revision.Value
	}
	facts, err := p.modelFacts()
	if err != nil {
		return err
	}
	m.Architecture = facts.architecture
	if m.Quantization == "" {
		m.Quantization = facts.quantization
		if m.Quantization == "" {
			m.Precision = facts.precision
		}
		for _, header := range p.found.Headers {
			for _, tensor := range header.Tensors {
				m.Parameters += tensor.Elements()
			}
		}
		m.Parameters -= p.dropped
	}
	return nil
}

// noteMissing says which files of the profile the bundle will lack.
func (p *planner) noteMissing() {
	for _, required := range p.profile.Required {
		present := slices.ContainsFunc(p.plan.Files, func(f PlannedFile) bool {
			ok, err := path.Match(required.Path, f.Path)
			return err == nil && ok
		})
		if !present && required.Path != manifest.InventoryPath {
			p.plan.Notes = append(p.plan.Notes, fmt.Sprintf("profile %s requires %s (%s), and nothing here provides it", p.profile.Name, required.Path, required.Why))
		}
	}
}

// cutLayers groups files as the format says (manifest's package comment).
// inventory.json joins the configuration's tar layer.
func cutLayers(files []PlannedFile) []Layer {
	var layers []Layer
	for _, kind := range manifest.Kinds() {
		small := Layer{Kind: kind, Encoding: manifest.EncodingTar, Why: "files under 16 MiB of one kind"}
		for _, f := range files {
			switch {
			case f.Kind != kind:
			case isRaw(f):
				layers = append(layers, Layer{kind, manifest.EncodingRaw, f.Size, []string{f.Path}, whyRaw(f)})
			default:
				small.Paths = append(small.Paths, f.Path)
				small.Size += f.Size
			}
		}
		if kind == manifest.KindConfig {
			small.Paths = append(small.Paths, manifest.InventoryPath)
			slices.Sort(small.Paths)
		}
		if len(small.Paths) > 0 {
			layers = append(layers, small)
		}
	}
	return layers
}

func isRaw(f PlannedFile) bool { return whyRaw(f) != "" }

// whyRaw says why a file is a layer of its own; "" if it is none.
func whyRaw(f PlannedFile) string {
	switch {
	case f.Kind == manifest.KindWeight:
		return "weight shards are layers of their own, so that an unchanged one is never sent again"
	case f.Path == runtimePath:
		return "the server is a layer of its own, shared by all bundles that have it"
	case f.Size >= manifest.RawThreshold:
		return "16 MiB or more"
	}
	return ""
}
