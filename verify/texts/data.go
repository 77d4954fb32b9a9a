package texts

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"slipway/manifest"
	"slipway/verify/report"
	"slipway/verify/script/python"
)

const (
	withoutData   = "train, fit and calibrate without it, and say in DATA.md what was used"
	sayWhichSplit = "say which split was used, and what for"
)

// Data looks for benchmarks in what a text loads, says or reports, as its
// extension tells. Python is searched by Python.
func Data(f File) Found {
	var o Found
	switch strings.ToLower(path.Ext(f.Path)) {
	case ".sh", ".bash":
		o.dataOfShell(f)
	case ".md", ".rst":
		o.dataOfDocument(f)
	case ".log", ".out", ".err":
		o.dataOfLog(f)
	case ".txt":
		if isDataDocument(f.Path) {
			o.dataOfDocument(f)
		}
	}
	return o
}

// isDataDocument reports whether a file is the declaration of the data.
func isDataDocument(p string) bool {
	name := strings.ToUpper(path.Base(p))
	return strings.HasPrefix(name, "DATA.") || strings.HasPrefix(name, "DATASET")
}

// dataOfPython judges the data sets that code loads.
func (o *Found) dataOfPython(f File, m *python.Module) {
	loaded := map[string]bool{}
	for i := range m.Calls {
		repository, split, ok := loadedBy(&m.Calls[i])
		if !ok {
			continue
		}
		loaded[repository] = true
		o.loads(f.Path, m.Calls[i].Line, repository, split)
	}
	for _, s := range m.Strings {
		repository := repositoryIn(s.Text)
		if b := benchmarkOfRepository(repository); b != nil && strings.Contains(repository, "/") && !loaded[repository] {
			loaded[repository] = true
			o.Warn(report.Finding{Path: f.Path, Problem: fmt.Sprintf("line %d names %s", s.Line, b.name), Got: manifest.Clip(s.Text),
				Hint: "a reviewer will ask what for: remove it if nothing needs it"})
		}
	}
}

var hubURL = regexp.MustCompile(`^(?:hf://datasets/|https?://huggingface\.co/datasets/)([\w.-]+/[\w.-]+)`)

// repositoryIn returns the data set that a string names, by its URL or as such.
func repositoryIn(text string) string {
	if m := hubURL.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return text
}

// loadedBy returns what a call loads from the hub: datasets' load_dataset, the
// hub's downloads of data sets, and hf:// paths of any reader.
func loadedBy(c *python.Call) (repository, split string, ok bool) {
	literal := func(keyword string, position int) string {
		a, given := c.Keyword(keyword)
		if !given && position >= 0 && position < len(c.Arguments) && c.Arguments[position].Keyword == "" {
			a = c.Arguments[position]
		}
		if a.Literal != nil {
			return *a.Literal
		}
		if a.Text != "" && keyword == "split" {
			return "?"
		}
		return ""
	}
	name := c.Name[strings.LastIndexByte(c.Name, '.')+1:]
	switch name {
	case "load_dataset", "load_dataset_builder":
		return repositoryIn(literal("path", 0)), literal("split", 2), true
	case "snapshot_download", "hf_hub_download":
		return literal("repo_id", 0), "", literal("repo_type", -1) == "dataset"
	}
	if strings.HasPrefix(name, "read_") || name == "open" {
		if p := literal("path", 0); hubURL.MatchString(p) {
			return repositoryIn(p), splitOfPath(p), true
		}
	}
	return "", "", false
}

// splitOfPath reads a split off a data file's name: data/train-00000-of-00001.parquet.
func splitOfPath(p string) string {
	if m := evaluationSplit.FindString(p); m != "" {
		return m
	}
	if strings.Contains(strings.ToLower(p), "train") {
		return "train"
	}
	return ""
}

var evaluationSplit = regexp.MustCompile(`(?i)\b(?:test|validation|valid|val|dev|eval)\b`)

// loads judges one data set and split that code loads.
func (o *Found) loads(p string, line int, repository, split string) {
	b := benchmarkOfRepository(repository)
	evaluation := evaluationSplit.MatchString(strings.ReplaceAll(split, "_", " "))
	problem := fmt.Sprintf("line %d loads %s", line, repository)
	if split != "" && split != "?" {
		problem += ", split " + split
	}
	switch {
	case b != nil && (!b.trains || evaluation):
		o.Fail(report.Finding{Path: p, Problem: problem + ": evaluation data of " + b.name, Hint: withoutData})
	case b != nil && (split == "" || split == "?"):
		o.Warn(report.Finding{Path: p, Problem: problem + ": all splits of " + b.name + ", as far as can be seen", Hint: "load split=\"train\" alone"})
	case b == nil && evaluation && repository != "":
		o.Warn(report.Finding{Path: p, Problem: problem, Hint: "a reviewer will ask what for: no test or validation split may be among the data that weights are fitted on"})
	}
}

// dataOfShell judges downloads in shell scripts.
func (o *Found) dataOfShell(f File) {
	linesOf(f.Data, func(number int, line string) {
		code, _, _ := strings.Cut(line, "#")
		if !strings.Contains(code, "download") && !strings.Contains(code, "wget") && !strings.Contains(code, "curl") && !strings.Contains(code, "git clone") {
			return
		}
		for _, word := range strings.Fields(code) {
			repository := repositoryIn(strings.Trim(word, `"'`))
			if b := benchmarkOfRepository(repository); b != nil && strings.Contains(repository, "/") {
				o.loads(f.Path, number, repository, splitOfPath(code))
			}
		}
	})
}

var loadsInLog = regexp.MustCompile(`(?i)load_dataset|download\w*|generating (?:test|validation) split|loading|reading|train\w* on|calibrat\w* (?:on|with)`)

// dataOfLog judges a log's lines, which report what was done. One finding a
// benchmark: the first line that says it.
func (o *Found) dataOfLog(f File) {
	told := map[string]bool{}
	linesOf(f.Data, func(number int, line string) {
		if len(line) > 4096 || !loadsInLog.MatchString(line) || denies.MatchString(line) {
			return
		}
		for _, b := range benchmarksIn(line) {
			evaluation := evaluationSplit.MatchString(strings.ReplaceAll(line, "_", " "))
			if told[b.name] || b.trains && !evaluation || evaluates.MatchString(line) {
				continue
			}
			told[b.name] = true
			o.Warn(report.Finding{Path: f.Path, Problem: fmt.Sprintf("line %d says that %s was loaded", number, b.name), Got: manifest.Clip(strings.TrimSpace(line)),
				Hint: "say in DATA.md what for: no test or validation split may be among the data that weights are fitted on"})
		}
	})
}
