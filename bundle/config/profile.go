package config

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slipway/manifest"
	"slipway/verify/image"
	"slipway/verify/picture"
	"slipway/verify/profiles"
)

const (
	profileSchema    = 1
	profileSuffix    = ".hcl"
	maxContractBytes = 64 << 20
)

// gateNames are the names that a profile may list. A misspelt one would
// otherwise switch a gate off in silence.
var gateNames = []string{
	"paths", "digests", "files", "declared", "size", "safetensors", "index", "coverage", "components", "ternary",
	"stored", "origin", "data", "lookup", "text-only", "wheels", "script", "secrets", "config", "rebuild",
	"install", "startup", "first-request", "batch", "deadline", "still-healthy", "opened-files", "quality",
}

// LoadProfile reads a shipped profile by its name, or a profile file: anything
// that ends in .hcl. It returns the profile and the digest of the file's
// bytes. A base's contract lies beside the profile. Faults of the profile's
// content are a *Diagnostics.
func LoadProfile(nameOrPath string) (profiles.Profile, manifest.Digest, error) {
	if strings.HasSuffix(nameOrPath, profileSuffix) {
		data, err := readSource(nameOrPath)
		if err != nil {
			return profiles.Profile{}, manifest.Digest{}, err
		}
		root, err := os.OpenRoot(filepath.Dir(nameOrPath)) // what stands beside a profile lies there: no link leads out
		if err != nil {
			return profiles.Profile{}, manifest.Digest{}, fmt.Errorf("open the folder of %s: %w", nameOrPath, manifest.Cause(err))
		}
		defer root.Close()
		profile, err := ParseProfile(data, nameOrPath, root.FS())
		return profile, manifest.DigestBytes(data), err
	}
	data, ok := profiles.Shipped(nameOrPath)
	if !ok {
		err := fmt.Errorf("profile %q is not a shipped one", manifest.Clip(nameOrPath))
		return profiles.Profile{}, manifest.Digest{}, manifest.WithHint(err, Suggest(nameOrPath, profiles.Names())+" (or a file that ends in .hcl)")
	}
	profile, err := ParseProfile(data, nameOrPath+profileSuffix, profiles.Files())
	return profile, manifest.DigestBytes(data), err
}

// ParseProfile reads a profile that was read before. filename stands in the
// problems; contracts are read from the given folder.
func ParseProfile(data []byte, filename string, folder fs.FS) (profiles.Profile, error) {
	file, problems := openFile(data, filename)
	if file == nil {
		return profiles.Profile{}, problems.result()
	}
	if !file.version("schema", profileSchema) {
		return profiles.Profile{}, problems.result()
	}
	var p profiles.Profile
	readProfileHead(file, &p, folder)
	readProfileBases(file, &p, folder)
	readRequired(file, &p)
	readTernary(file, &p)
	readDevice(file, &p)
	readLoad(file, &p)
	readQuality(file, &p, folder)
	file.finish()
	if err := problems.result(); err != nil {
		return profiles.Profile{}, err
	}
	return p, nil
}

func readProfileHead(file *section, p *profiles.Profile, folder fs.FS) {
	s := file.only("profile", "name")
	if s == nil {
		file.problems.add(file.header, `write profile "name" { ... }`, "the file has no profile block")
		return
	}
	p.Name = s.label
	if s.label != "" && !namePattern.MatchString(s.label) {
		s.problems.add(s.labelRange, "use letters, digits, '.', '_' and '-'", "profile name is %q", manifest.Clip(s.label))
	}
	p.Description = s.need("description", `"..."`).Value
	p.MaxBytes = s.whole("max_bytes", 0, 0, math.MaxInt64).Value
	presences := []string{string(profiles.MayOmit), string(profiles.Needed), string(profiles.Forbidden), string(profiles.Added)}
	p.VisionMTP = profiles.Presence(s.choice("vision_mtp", string(profiles.MayOmit), presences...).Value)
	if _, given := s.body.Attributes["gates"]; !given {
		s.missing("gates", `["paths", "digests"]`)
	}
	p.Gates = s.gates("gates", gateNames)
	p.MayUndecided = s.gates("may_undecided", p.Gates)
	if data := s.examples("image", folder); data != nil {
		described, err := image.Decode(data)
		if err != nil {
			s.fault("image", "slipway image probe --full prints one", "image %s: %v", manifest.Clip(s.path("image").Value), err)
		}
		p.Image, p.Source = described, manifest.DigestBytes(data)
	}
	s.finish()
}

// gates reads distinct names out of the allowed ones.
func (s *section) gates(name string, allowed []string) []string {
	var seen []string
	return s.texts(name, nil, false, func(gate string) error {
		switch {
		case slices.Contains(seen, gate):
			return fmt.Errorf("%q is listed twice", gate)
		case !slices.Contains(gateNames, gate):
			return fmt.Errorf("unknown gate %q; %s", manifest.Clip(gate), Suggest(gate, gateNames))
		case !slices.Contains(allowed, gate):
			return fmt.Errorf("gate %q is not one of the profile's gates", gate)
		}
		seen = append(seen, gate)
		return nil
	}).Value
}

func readProfileBases(file *section, p *profiles.Profile, folder fs.FS) {
	all := file.each("base", "label")
	distinct(all)
	for _, s := range all {
		base := profiles.Base{
			Label:      s.label,
			Repository: s.need("repository", `"owner/name"`).Value,
			Revision:   s.need("revision", `"<40 hex digits>"`).Value,
		}
		checkRepository(s, base.Repository, base.Revision)
		if contract := s.needPath("contract", `"contract.json"`).Value; contract != "" {
			base.Contract, base.Source = readContract(s, folder, contract, base)
		}
		s.finish()
		p.Bases = append(p.Bases, base)
	}
}

// readContract reads a base's contract, holds it to the base's identity, and
// returns it with its file's digest.
func readContract(s *section, folder fs.FS, name string, base profiles.Base) (*manifest.Contract, manifest.Digest) {
	info, err := fs.Stat(folder, name)
	if err == nil && info.Size() > maxContractBytes {
		err = fmt.Errorf("%d bytes are more than %d", info.Size(), maxContractBytes)
	}
	var data []byte
	if err == nil {
		data, err = fs.ReadFile(folder, name)
	}
	var contract manifest.Contract
	if err == nil {
		contract, err = manifest.DecodeContract(data)
	}
	if err == nil && (contract.Repository != base.Repository || contract.Revision != base.Revision) {
		err = fmt.Errorf("it is of %s @ %s", manifest.Clip(contract.Repository), manifest.Clip(contract.Revision))
	}
	if err != nil {
		if open := (*fs.PathError)(nil); errors.As(err, &open) {
			err = open.Err // the name stands before it already
		}
		s.fault("contract", "", "contract %s: %v", manifest.Clip(name), err)
		return nil, manifest.Digest{}
	}
	return &contract, manifest.DigestBytes(data)
}

func readRequired(file *section, p *profiles.Profile) {
	all := file.each("required", "path")
	distinct(all)
	for _, s := range all {
		if err := checkGlob(s.label); err != nil && s.label != "" {
			s.problems.add(s.labelRange, pathRemedy(s.label), "required: %v", err)
		}
		p.Required = append(p.Required, profiles.Required{
			Path: s.label, Generated: s.flag("generated", false).Value, Why: s.need("why", `"..."`).Value,
		})
		s.finish()
	}
}

func readTernary(file *section, p *profiles.Profile) {
	s := file.only("ternary", "")
	if s == nil {
		return
	}
	p.Ternary = &profiles.Ternary{
		FractionAbove:   s.ratio("fraction_above"),
		StoredAtMost:    s.ratio("stored_at_most"),
		Counting:        s.choice("counting", "observed", "observed", "strict").Value,
		GroupMinimum:    s.whole("group_minimum", 1, 1, 1<<30).Value,
		Unreferenced:    profiles.Unreferenced(s.choice("unreferenced", "", string(profiles.CountUnreferenced), string(profiles.ForbidUnreferenced)).Value),
		WhenDeclared:    s.flag("when_declared", false).Value,
		AllowAsymmetric: s.flag("allow_asymmetric", false).Value,
		Formats: s.texts("formats", nil, false, func(kind string) error {
			if kinds := append(manifest.PackedFormatIDs(), manifest.KindLiteral); !slices.Contains(kinds, kind) {
				return fmt.Errorf("unknown kind %q; %s", manifest.Clip(kind), Suggest(kind, kinds))
			}
			return nil
		}).Value,
	}
	if len(p.Ternary.Formats) == 0 {
		s.fault("formats", `write formats = ["packed_2bit"]`, "%s allows no format", s.kind)
	}
	p.Ternary.Names = readFieldNames(s)
	s.finish()
}

// readFieldNames reads how the task spells the keys and words of a quantization
// manifest: names { base_model = "base" }. No two may be spelt alike.
func readFieldNames(parent *section) manifest.FieldNames {
	s := parent.only("names", "")
	if s == nil {
		return nil
	}
	names := manifest.FieldNames{}
	for _, name := range manifest.QuantizationNames() {
		if theirs := s.text(name, "").Value; theirs != "" {
			names[name] = theirs
		}
	}
	if err := names.Check(); err != nil {
		s.problems.add(s.header, "", "names: %v", err)
	}
	s.finish()
	return names
}

var ratioPattern = regexp.MustCompile(`^([0-9]{1,9})/([0-9]{1,9})$`)

// ratio reads "95/100", both parts positive.
func (s *section) ratio(name string) profiles.Ratio {
	text := s.need(name, `"95/100"`).Value
	if text == "" {
		return profiles.Ratio{}
	}
	parts := ratioPattern.FindStringSubmatch(text)
	if parts == nil {
		s.fault(name, fmt.Sprintf(`write %s = "95/100"`, name), "%q is %q, not a ratio of whole numbers", name, manifest.Clip(text))
		return profiles.Ratio{}
	}
	// Nine digits always fit.
	numerator, _ := strconv.ParseInt(parts[1], 10, 64)
	denominator, _ := strconv.ParseInt(parts[2], 10, 64)
	if numerator == 0 || denominator == 0 {
		s.fault(name, "", "%q is %q; both parts must be positive", name, text)
	}
	return profiles.Ratio{Numerator: numerator, Denominator: denominator}
}

func readDevice(file *section, p *profiles.Profile) {
	s := file.only("device", "name")
	if s == nil {
		return
	}
	p.Device = &profiles.Device{
		Name:           s.label,
		MemoryBytes:    s.whole("memory_bytes", 0, 1, math.MaxInt64).Value,
		BytesPerSecond: s.whole("bytes_per_second", 0, 1, math.MaxInt64).Value,
	}
	s.finish()
}

func readLoad(file *section, p *profiles.Profile) {
	s := file.only("load", "")
	if s == nil {
		file.problems.add(file.header, "write load { ... }: what a grader sends", "the file has no load block")
		return
	}
	for _, name := range []string{"endpoint", "concurrency", "max_tokens", "start_seconds", "request_seconds", "total_seconds"} {
		if _, given := s.body.Attributes[name]; !given {
			s.missing(name, "...")
		}
	}
	p.Load = profiles.Load{
		Endpoint:       s.choice("endpoint", "", "/v1/chat/completions", "/draft").Value,
		Concurrency:    int(s.whole("concurrency", 0, 1, 1<<16).Value),
		MaxTokens:      int(s.whole("max_tokens", 0, 1, 1<<20).Value),
		Temperature:    s.decimal("temperature", 0, 2),
		StartSeconds:   s.decimal("start_seconds", 0.001, maxSeconds),
		RequestSeconds: s.decimal("request_seconds", 0.001, maxSeconds),
		TotalSeconds:   s.decimal("total_seconds", 0.001, maxSeconds),
		Port:           int(s.whole("port", 8000, 1, 65535).Value),
		Attempts:       int(s.whole("attempts", 1, 1, 100).Value),
		GradedRequests: int(s.whole("graded_requests", 0, 1, 1<<30).Value),
		GradedTokens:   s.whole("graded_tokens", 0, 1, 1<<50).Value,
		BodyBytes:      int(s.whole("body_bytes", 0, 1<<16, 1<<26).Value),
	}
	if p.Load.BodyBytes > 0 && p.Load.Endpoint == "/draft" {
		s.fault("body_bytes", "leave it out", "body_bytes is for images, and a draft has none")
	}
	s.finish()
}

func readQuality(file *section, p *profiles.Profile, folder fs.FS) {
	s := file.only("quality", "")
	if s == nil {
		return
	}
	q := &profiles.Quality{
		Questions: s.examples("questions", folder), Accuracy: s.decimal("accuracy", 0, 1), Chance: s.decimal("chance", 0, 1),
		Continuations: s.examples("continuations", folder), Tau: s.decimal("tau", 0, 1<<20),
	}
	_, questions := s.body.Attributes["questions"]
	_, continuations := s.body.Attributes["continuations"]
	switch {
	case !questions && !continuations && q.Chance == 0 && (q.Accuracy > 0) != (q.Tau > 0):
		p.Floor = q.Accuracy + q.Tau // one of them is 0
		if drafts := p.Load.Endpoint == "/draft"; drafts != (q.Tau > 0) && p.Load.Endpoint != "" {
			s.problems.add(s.header, "drafts have a tau, answers an accuracy", "quality has a floor that %s does not measure", p.Load.Endpoint)
		}
		s.finish()
		return
	case questions == continuations:
		s.problems.add(s.header, "name one file, questions = \"...\" or continuations = \"...\", or leave a floor alone: accuracy or tau", "quality has either questions or continuations, or a floor alone")
	}
	q.Images = s.images("questions", q.Questions, folder)
	p.Quality = q
	s.finish()
}

// maxExampleBytes bounds a file of public examples.
const maxExampleBytes = 64 << 20

// examples reads the file that an argument names beside the profile; nil where
// the argument is left out.
func (s *section) examples(name string, folder fs.FS) []byte {
	file := s.path(name).Value
	if file == "" {
		return nil
	}
	info, err := fs.Stat(folder, file)
	if err == nil && info.Size() > maxExampleBytes {
		err = fmt.Errorf("%d bytes are more than %d", info.Size(), maxExampleBytes)
	}
	var data []byte
	if err == nil {
		data, err = fs.ReadFile(folder, file)
	}
	if err != nil {
		s.fault(name, "", "%s %s: %v", name, manifest.Clip(file), manifest.Cause(err))
	}
	return data
}

// images reads what the questions of an argument show: it lies beside or below
// their file.
func (s *section) images(name string, questions []byte, folder fs.FS) map[string][]byte {
	if questions == nil {
		return nil
	}
	file := s.path(name).Value
	below, err := fs.Sub(folder, path.Dir(file))
	if err != nil {
		s.fault(name, "", "%s %s: %v", name, manifest.Clip(file), manifest.Cause(err))
		return nil
	}
	images, err := picture.Load(questions, below)
	if err != nil {
		s.fault(name, manifest.Hint(err), "%s %s: %v", name, manifest.Clip(file), err)
	}
	return images
}

// maxSeconds keeps every duration, in nanoseconds too, far inside an int64.
const maxSeconds = 1e7

// decimal reads a number from low to high; 0 where it is left out.
func (s *section) decimal(name string, low, high float64) float64 {
	expression := s.find(name)
	if expression == nil {
		return 0
	}
	number, ok := literalDecimal(expression)
	if !ok {
		s.fault(name, "", "%q is not a number", name)
		return 0
	}
	value, _ := number.Float64()
	switch {
	case value <= 0 && low > 0:
		s.fault(name, "", "%q is not positive", name)
	case value < low || value > high:
		s.fault(name, "", "%q is not between %v and %v", name, low, high)
	}
	return value
}
