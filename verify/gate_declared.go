package verify

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/verify/profiles"
	"slipway/verify/report"
	"slipway/verify/scan"
)

// The declarations that name a base, at the submission's root.
const (
	architecturePath = "architecture.json"
	startingPath     = "STARTING_ARTIFACT.json"
	backbonePath     = "backbone_contract.json"
)

func decideDeclared(e *evidence) outcome {
	var o outcome
	for _, p := range []string{architecturePath, startingPath, backbonePath} {
		o.declaration(e, p)
	}
	o.quantizationManifest(e)
	o.inventory(e)
	return o
}

// declaration checks that a file names every pinned base. Key names are the
// task's and not known, so the base is looked for among the values.
func (o *outcome) declaration(e *evidence, p string) {
	f := e.facts[p]
	if f == nil {
		return // gate files says so where it is required
	}
	if err := f.Unreadable(); err != nil {
		o.Fail(report.Finding{Path: p, Problem: err.Error(), Hint: manifest.Hint(err)})
		return
	}
	if p == backbonePath {
		if contract, err := manifest.DecodeContract(f.Small); err == nil {
			o.declaredContract(e, contract)
			return
		}
	}
	var content any
	if err := manifest.DecodeStrict(f.Small, &content); err != nil {
		o.Fail(unsound(p, f, fmt.Errorf("is not sound JSON: %w", err)))
		return
	}
	values := leaves(content)
	for _, base := range e.options.Profile.Bases {
		o.names(p, base, values)
	}
}

// leaf is a string in a JSON document, with the dotted path of its keys.
type leaf struct{ key, value string }

func leaves(content any) []leaf {
	var all []leaf
	var walk func(key string, v any)
	walk = func(key string, v any) {
		switch v := v.(type) {
		case string:
			all = append(all, leaf{key, v})
		case []any:
			for i, element := range v {
				walk(fmt.Sprintf("%s[%d]", key, i), element)
			}
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				walk(strings.TrimPrefix(key+"."+k, "."), v[k])
			}
		}
	}
	walk("", content)
	return all
}

var revisionPattern = regexp.MustCompile(`\b[0-9a-f]{40}\b`)

// names checks that values name a base's repository and revision.
func (o *outcome) names(p string, base profiles.Base, values []leaf) {
	holds := func(text string) bool {
		return text == "" || slices.ContainsFunc(values, func(l leaf) bool { return strings.Contains(l.value, text) })
	}
	if !holds(base.Repository) {
		o.Fail(report.Finding{Path: p, Problem: "does not name the pinned " + base.Label + " base", Want: base.Repository, Hint: "slipway build writes the file where it is absent"})
	}
	if holds(base.Revision) {
		return
	}
	var others []string
	for _, l := range values {
		others = append(others, revisionPattern.FindAllString(l.value, 4)...)
	}
	o.Fail(report.Finding{Path: p, Problem: "does not name the pinned revision of the " + base.Label + " base",
		Want: base.Revision, Got: manifest.Clip(strings.Join(others, ", ")), Hint: "start from the pinned revision, and name all 40 digits of it"})
}

// declaredContract compares a shipped contract with the pinned base and, where
// there is one, the trusted contract.
func (o *outcome) declaredContract(e *evidence, declared manifest.Contract) {
	if bases := e.options.Profile.Bases; len(bases) > 0 {
		o.pins(backbonePath, languageBase(bases), declared.Repository, declared.Revision)
	}
	trusted := e.contract
	if trusted == nil {
		o.Note("%s: %d tensors, self-declared; no trusted contract to compare with", backbonePath, len(declared.Tensors))
		return
	}
	if declared.TiedHead != trusted.TiedHead {
		o.Fail(report.Finding{Path: backbonePath, Problem: "tied_head differs from the base", Want: fmt.Sprint(trusted.TiedHead), Got: fmt.Sprint(declared.TiedHead), Hint: theirs})
	}
	for _, name := range declared.Names() {
		want, known := trusted.Tensors[name]
		got := declared.Tensors[name]
		switch {
		case !known:
			o.Fail(report.Finding{Path: backbonePath, Tensor: name, Problem: "is not a tensor of the base", Hint: theirs})
		case want.DType != got.DType || !slices.Equal(want.Shape, got.Shape) || want.Role != got.Role:
			o.Fail(report.Finding{Path: backbonePath, Tensor: name, Problem: "differs from the base",
				Want: fmt.Sprintf("%s %v %s", want.DType, want.Shape, want.Role), Got: fmt.Sprintf("%s %v %s", got.DType, got.Shape, got.Role), Hint: theirs})
		}
	}
	for _, name := range trusted.Names() {
		if _, there := declared.Tensors[name]; !there && trusted.Tensors[name].Role == manifest.RoleBackbone {
			o.Fail(report.Finding{Path: backbonePath, Tensor: name, Problem: "the base's tensor is not listed", Hint: theirs})
		}
	}
}

// theirs is the remedy for a contract that is not the pinned base's.
const theirs = "use the pinned base's own: slipway build writes it where it is absent"

// pins compares a repository and revision that a file gives for a base.
func (o *outcome) pins(p string, base profiles.Base, repository, revision string) {
	if repository != base.Repository {
		o.Fail(report.Finding{Path: p, Problem: "names another base model", Want: base.Repository, Got: manifest.Clip(repository), Hint: "start from the base that the task pins, and name it"})
	}
	if revision != base.Revision {
		o.Fail(report.Finding{Path: p, Problem: "names another revision of the base model", Want: base.Revision, Got: manifest.Clip(revision), Hint: "start from the pinned revision, and name all 40 digits of it"})
	}
}

// languageBase returns the base that the text model starts from.
func languageBase(bases []profiles.Base) profiles.Base {
	for _, base := range bases {
		if base.Label == "language" {
			return base
		}
	}
	return bases[0]
}

// quantizationManifest reports what makes the manifest unreadable, and compares
// the base that it names.
func (o *outcome) quantizationManifest(e *evidence) {
	o.Findings = append(o.Findings, e.sub.spare...)
	if p := e.sub.quantizationPath; e.sub.quantizationErr != nil {
		f := unsound(p, e.facts[p], e.sub.quantizationErr)
		if f.Hint == "" {
			f.Hint = "correct it, or write it again; the gates that need it are undecided until then"
		}
		o.Fail(f)
	}
	q, bases := e.sub.quantization, e.options.Profile.Bases
	if q == nil || len(bases) == 0 {
		return
	}
	text := func(s *string) string {
		if s == nil {
			return "null"
		}
		return *s
	}
	o.pins(e.sub.quantizationPath, languageBase(bases), text(q.BaseModel), text(q.BaseRevision))
}

// inventory compares inventory.json with the files that are there.
func (o *outcome) inventory(e *evidence) {
	f := e.facts[manifest.InventoryPath]
	if f == nil {
		o.Note("there is no %s", manifest.InventoryPath)
		return
	}
	if err := f.Unreadable(); err != nil {
		o.Fail(report.Finding{Path: manifest.InventoryPath, Problem: err.Error(), Hint: manifest.Hint(err)})
		return
	}
	inventory, err := manifest.DecodeInventory(f.Small)
	if err != nil {
		o.Fail(report.Finding{Path: manifest.InventoryPath, Problem: err.Error(), Hint: "build the bundle again"})
		return
	}
	there := make(map[string]manifest.File, len(e.tree.Files))
	for _, file := range e.tree.Files {
		there[file.Path] = file.File
	}
	listed := map[string]bool{manifest.InventoryPath: true}
	for _, want := range inventory.Files {
		listed[want.Path] = true
		if got, ok := there[want.Path]; ok {
			o.inventoryRow(want, got, e.facts[want.Path])
		} else {
			o.Fail(report.Finding{Path: want.Path, Problem: "is in the inventory and not there", Hint: "copy it too, or build the bundle again"})
		}
	}
	for _, file := range e.tree.Files {
		if !listed[file.Path] {
			o.Fail(report.Finding{Path: file.Path, Problem: "is not in the inventory", Hint: "build the bundle again"})
		}
	}
}

func (o *outcome) inventoryRow(want, got manifest.File, f *scan.File) {
	finding := report.Finding{Path: want.Path, Hint: "build the bundle again"}
	switch {
	case f.Err != nil: // gate digests says so
		return
	case got.Size != want.Size:
		finding.Problem, finding.Want, finding.Got = "has another size than the inventory says", fmt.Sprint(want.Size), fmt.Sprint(got.Size)
	case f.Digest != want.Digest:
		finding.Problem, finding.Want, finding.Got = "has other bytes than the inventory says", want.Digest.String(), f.Digest.String()
	case got.Mode != want.Mode:
		finding.Problem, finding.Want, finding.Got = "has another mode than the inventory says", want.Mode.String(), got.Mode.String()
	default:
		return
	}
	o.Fail(finding)
}

// claimsShown bounds the values that are repeated from one declaration.
const claimsShown = 16

// claims lists what only the submission says of itself.
func (e *evidence) claims() []report.Claim {
	var claims []report.Claim
	if q := e.sub.quantization; q != nil {
		for name, value := range map[string]*string{"base_model": q.BaseModel, "base_revision": q.BaseRevision} {
			if value != nil {
				claims = append(claims, report.Claim{Source: e.sub.quantizationPath, Name: name, Value: manifest.Clip(*value)})
			}
		}
	}
	for _, m := range e.sub.models {
		if m.config != nil {
			claims = append(claims, report.Claim{Source: m.configPath, Name: "architecture", Value: manifest.Clip(m.config.Architecture)})
		}
	}
	for _, p := range []string{architecturePath, startingPath, backbonePath} {
		claims = append(claims, e.declarationClaims(p)...)
	}
	slices.SortStableFunc(claims, func(a, b report.Claim) int {
		return strings.Compare(a.Source+"\x00"+a.Name, b.Source+"\x00"+b.Name)
	})
	return claims
}

func (e *evidence) declarationClaims(p string) []report.Claim {
	var content any
	f := e.facts[p]
	if f == nil || f.Small == nil || json.Unmarshal(f.Small, &content) != nil {
		return nil
	}
	if object, ok := content.(map[string]any); ok {
		delete(object, "tensors") // a contract's table: gate declared compares it
	}
	var claims []report.Claim
	for _, l := range leaves(content) {
		if len(claims) < claimsShown {
			claims = append(claims, report.Claim{Source: p, Name: manifest.Clip(l.key), Value: manifest.Clip(l.value)})
		}
	}
	return claims
}
