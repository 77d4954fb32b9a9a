package verify

import (
	"path"
	"slices"

	"slipway/verify/modelconfig"
	"slipway/verify/scan"
)

// The files beside the shards that say how to use them.
const (
	configName     = "config.json"
	generationName = "generation_config.json"
	tokenizerName  = "tokenizer.json"
)

// model is what one config.json describes: the shards of a folder, and those
// of folders that have no config.json of their own and no other owner.
type model struct {
	folders    []string // sorted
	quantized  bool     // the quantization manifest describes it
	configPath string   // "" where there is none
	config     *modelconfig.Config
	configErr  error
}

// divide says which folders belong to which model. The quantization manifest's
// model has every folder that a reference resolves into. A folder without a
// config.json joins it, or the first model: so nothing unnamed is nobody's.
func (s *submission) divide(facts map[string]*scan.File) {
	if len(s.folders) == 0 {
		return
	}
	has := func(folder string) bool { return facts[path.Join(folder, configName)] != nil }
	described := map[string]bool{}
	for key := range s.uses {
		described[path.Dir(key.File)] = true
	}
	first := model{quantized: s.quantizationPath != ""}
	var others []string
	for _, folder := range s.folders {
		if !has(folder) || first.quantized && (described[folder] || len(described) == 0) {
			first.folders = append(first.folders, folder)
		} else {
			others = append(others, folder)
		}
	}
	// A config.json at a root without shards is that of the folders without.
	ofRoot := has(".") && !slices.Contains(s.folders, ".") && len(first.folders) > 0
	if !first.quantized && !ofRoot && len(others) > 0 {
		first.folders, others = append(first.folders, others[0]), others[1:]
		slices.Sort(first.folders)
	}
	s.models = append(s.models, first)
	for _, folder := range others {
		s.models = append(s.models, model{folders: []string{folder}})
	}
	for i := range s.models {
		s.models[i].readConfig(facts)
	}
}

// readConfig reads the config.json of the first folder that has one, or else
// the root's.
func (m *model) readConfig(facts map[string]*scan.File) {
	for _, folder := range append(slices.Clone(m.folders), ".") {
		p := path.Join(folder, configName)
		f := facts[p]
		if f == nil {
			continue
		}
		m.configPath = p
		if m.configErr = f.Unreadable(); m.configErr == nil {
			m.config, m.configErr = modelconfig.Parse(f.Small)
		}
		return
	}
}

// name is what findings call the model.
func (m *model) name() string {
	if m.configPath != "" {
		return m.configPath
	}
	return m.folders[0]
}

// merged returns all models as one, for a contract of all that is there.
func merged(models []model) model {
	all := models[0]
	all.folders = slices.Clone(all.folders)
	for _, m := range models[1:] {
		all.folders = append(all.folders, m.folders...)
	}
	slices.Sort(all.folders)
	return all
}
