package python

import (
	"path"
	"slices"
	"strings"
)

// Source is a module of a program and where it lies.
type Source struct {
	Path   string
	Module *Module
}

// program is a module that is started and those that it imports: one process.
type program struct {
	sources []Source
	loaders map[string][]int   // functions that load a model by transformers, and the sources that define them
	loads   []bool             // of each source: it loads one
	keys    map[string][]keyOf // by keyword
	spread  map[string]bool    // functions of which a call has a ** argument
	spreads int                // calls with one that were looked at
}

type keyOf struct {
	*key
	in *Module
}

// maxSpreads bounds the calls with a ** argument that are looked at.
const maxSpreads = 5000

// RequirementsOf lists the distributions that the calls of a program's modules
// need beyond what they import, of each module each once. What one module sets
// for the whole process, or gives to a function of another, counts for all.
func RequirementsOf(sources []Source) (all []Requirement) {
	p := program{sources: sources, loaders: map[string][]int{}, keys: map[string][]keyOf{}, spread: map[string]bool{}}
	p.findKeys()
	p.findLoading()
	for i, s := range sources {
		all = append(all, p.requirements(i, s)...)
	}
	return all
}

func (p *program) findKeys() {
	for _, s := range p.sources {
		for i := range s.Module.keys {
			if k := &s.Module.keys[i]; len(p.keys[k.Keyword]) < maxKeys {
				p.keys[k.Keyword] = append(p.keys[k.Keyword], keyOf{k, s.Module})
			}
		}
		for i := range s.Module.Calls {
			c := &s.Module.Calls[i]
			if _, ok := c.Keyword("**"); ok {
				p.spread[lastPart(c.Name)] = true
			}
		}
	}
}

// findLoading finds the functions that load a model, themselves or by others.
func (p *program) findLoading() {
	p.loads = make([]bool, len(p.sources))
	for i, s := range p.sources {
		if !s.Module.usesTransformers() {
			continue
		}
		for j := range s.Module.Calls {
			if c := &s.Module.Calls[j]; loadsModel(*c) {
				p.loads[i] = true
				p.addLoader(c.in.name, i)
			}
		}
	}
	for more, round := true, 0; more && round < maxLoaders; round++ {
		more = false
		for i, s := range p.sources {
			for j := range s.Module.Calls {
				c := &s.Module.Calls[j]
				if loads, certain := p.loadsBy(i, c); loads && certain {
					more = p.addLoader(c.in.name, i) || more
				}
			}
		}
	}
}

// maxLoaders bounds the functions through which a load is followed.
const maxLoaders = 8

// addLoader reports whether a function is one more that loads a model.
func (p *program) addLoader(name string, at int) bool {
	if name == "" || slices.Contains(p.loaders[name], at) {
		return false
	}
	p.loaders[name] = append(p.loaders[name], at)
	return true
}

// loadsBy says whether a call of a source is one of a function that loads a model.
func (p *program) loadsBy(at int, c *Call) (loads, certain bool) {
	name, own := lastPart(c.Name), p.sources[at].Module
	receiver := strings.TrimSuffix(strings.TrimSuffix(c.Name, name), ".")
	for _, i := range p.loaders[name] {
		if i == at && (receiver == "" && c.Name == name || receiver == "self" || receiver == "cls") || i != at && p.imports(own, p.sources[i].Module, name, c.Name) {
			return true, true
		}
		_, imported := own.aliases[rootOf(c.Name)]
		loads = loads || c.Name != name && !imported
	}
	return loads, false
}

// imports reports whether a module's call of a dotted name is one of a function
// of another module.
func (p *program) imports(in, of *Module, name, called string) bool {
	at := slices.IndexFunc(p.sources, func(s Source) bool { return s.Module == of })
	stem := path.Base(strings.TrimSuffix(strings.TrimSuffix(p.sources[at].Path, ".py"), "/__init__"))
	receiver := in.resolved(strings.TrimSuffix(called, "."+name))
	return slices.ContainsFunc(in.Imports, func(i Import) bool {
		if called == name {
			return lastPart(i.Module) == stem && (slices.Contains(i.Names, name) || slices.Contains(i.Names, "*"))
		}
		return lastPart(receiver) == stem && (lastPart(i.Module) == stem || slices.Contains(i.Names, stem))
	})
}

// usesTransformers reports whether a module imports transformers.
func (m *Module) usesTransformers() bool {
	return slices.ContainsFunc(m.Imports, func(i Import) bool { return rootOf(i.Module) == "transformers" })
}

// resolved is a dotted name with the names of imports in place of those that
// they are bound to: "torch.device" of "d" behind "from torch import device as d".
func (m *Module) resolved(name string) string {
	root := rootOf(name)
	if whole, ok := m.aliases[root]; ok {
		return whole + name[len(root):]
	}
	return name
}

// withinDevice reports whether a call stands below with torch.device(...).
func (m *Module) withinDevice(c *Call) bool {
	return slices.ContainsFunc(c.Within, func(name string) bool { return m.resolved(name) == "torch.device" })
}

// deviceRequirements adds what a model needs that is loaded under a device that
// is set for all of PyTorch.
func (p *program) deviceRequirements(at int, l *requirementList) {
	const within = "from_pretrained below \"with torch.device(...)\" requires accelerate"
	m := p.sources[at].Module
	accelerate := []need{{"accelerate"}}
	for i := range m.Calls {
		c := &m.Calls[i]
		if m.withinDevice(c) {
			if loads, certain := p.loadsBy(at, c); loads {
				l.addPerhaps(accelerate, within, c.Line, !certain)
			}
		}
		if lastPart(m.resolved(c.Name)) != "set_default_device" || len(c.Arguments) > 0 && namesNoDevice(c.Arguments[0]) {
			continue
		}
		for j, loads := range p.loads {
			if loads {
				l.addPerhaps(accelerate, "from_pretrained after torch.set_default_device(...) requires accelerate", c.Line, j != at && c.Optional && !c.Deferred)
			}
		}
	}
}

// namesNoDevice reports whether an argument is the device that PyTorch takes anyway.
func namesNoDevice(a Argument) bool {
	return a.Text == "None" || a.Literal != nil && *a.Literal == "cpu"
}
