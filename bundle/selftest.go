package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"slipway/manifest"
)

// selftestLimit is up to which size of its weights, in bytes, a model is run on
// the machine that builds where bundle.hcl does not say.
const selftestLimit = 1 << 30

// noAnswers is what the runtime writes for a model that prefers no token clearly.
const noAnswers = "[]"

// addSelftest ships the answers that the server has to reproduce before it
// serves, where there are to be some, and says so. Before they are made, the file
// is planned without content.
func (p *planner) addSelftest() bool {
	wanted, made := p.wanted.Runtime.Selftest.Value, p.found.Runtime.Selftest
	if wanted != nil && !*wanted {
		return false
	}
	if why := p.noSelftest(wanted != nil); why != "" {
		p.plan.Notes = append(p.plan.Notes, selftestPath+" is left out: "+why)
		return false
	}
	p.plan.Files = append(p.plan.Files, PlannedFile{
		Path: selftestPath, Mode: manifest.ModeFile, Size: int64(len(made)), Kind: manifest.KindCode,
		Why: "generated: answers of the model on a CPU, which the server reproduces before it serves", content: made,
	})
	return true
}

// noSelftest says why there are no answers to ship; "" if there are.
func (p *planner) noSelftest(asked bool) string {
	var bytesOfWeights int64
	for _, f := range p.plan.Files {
		if f.Kind == manifest.KindWeight {
			bytesOfWeights += f.Size
		}
	}
	switch {
	case len(p.wanted.Weights) > 1:
		return "the runtime has no model of several weights blocks"
	case bytesOfWeights > selftestLimit && !asked:
		return fmt.Sprintf("the weights have %.1f GB, more than %.1f; selftest = true in the runtime block runs the model on this machine's CPU all the same", float64(bytesOfWeights)/1e9, float64(selftestLimit)/1e9)
	case bytes.Equal(bytes.TrimSpace(p.found.Runtime.Selftest), []byte(noAnswers)):
		return "the model prefers no token clearly"
	}
	return ""
}

// NeedsSelftest reports whether selftest.json has to be made before the plan can
// be executed.
func (p *Plan) NeedsSelftest() bool {
	return slices.ContainsFunc(p.Files, func(f PlannedFile) bool { return f.Path == selftestPath && f.Source == "" && f.content == nil })
}

var errNoSelftest = errors.New("the plan is to be looked at only: " + selftestPath + " was not made")

// Checkpoint is the part of a plan that the runtime loads: the weights folder
// with what describes it. It is enough to make selftest.json, and what that
// depends on.
func (p *Plan) Checkpoint() *Plan {
	part := &Plan{Name: p.Name, Profile: p.Profile, folder: p.folder}
	for _, f := range p.Files {
		if strings.HasPrefix(f.Path, CheckpointPath+"/") || f.Path == manifest.QuantizationPath {
			part.Files = append(part.Files, f)
		}
	}
	part.Layers = cutLayers(part.Files)
	return part
}

// CheckpointPath is the weights folder of a bundle with one weights block.
const CheckpointPath = "weights"
