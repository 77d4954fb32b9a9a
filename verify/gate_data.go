package verify

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/verify/script/python"
)

const (
	withoutData   = "train, fit and calibrate without it, and say in DATA.md what was used"
	sayWhichSplit = "say which split was used, and what for"
)

// decideData looks for benchmarks in the code, in what is said of the data, and
// in the logs. What was really used nobody can read off a submission: a pass
// means that nothing in it says so.
func decideData(e *evidence) outcome {
	var o outcome
	read := e.prose()
	for _, f := range read {
		switch strings.ToLower(path.Ext(f.path)) {
		case ".py":
			o.dataOfPython(f)
		case ".sh", ".bash":
			o.dataOfShell(f)
		case ".md", ".rst":
			o.dataOfDocument(f)
		case ".log", ".out", ".err":
			o.dataOfLog(f)
		case ".txt":
			if isDataDocument(f.path) {
				o.dataOfDocument(f)
			}
		}
	}
	o.note("%s looked through for the names of %d benchmarks; what the data was is for a reviewer to trace", plural(len(read), "text file"), len(benchmarks))
	if unread := e.unread(); len(unread) > 0 {
		o.note("too large to be looked through: %s", manifest.Clip(strings.Join(unread, ", ")))
	}
	return o
}

// isDataDocument reports whether a file is the declaration of the data.
func isDataDocument(p string) bool {
	name := strings.ToUpper(path.Base(p))
	return strings.HasPrefix(name, "DATA.") || strings.HasPrefix(name, "DATASET")
}

// dataOfPython judges the data sets that code loads.
func (o *outcome) dataOfPython(f textFile) {
	m := python.Scan(f.data)
	loaded := map[string]bool{}
	for i := range m.Calls {
		repository, split, ok := loadedBy(&m.Calls[i])
		if !ok {
			continue
		}
		loaded[repository] = true
		o.loads(f.path, m.Calls[i].Line, repository, split)
	}
	for _, s := range m.Strings {
		repository := repositoryIn(s.Text)
		if b := benchmarkOfRepository(repository); b != nil && strings.Contains(repository, "/") && !loaded[repository] {
			loaded[repository] = true
			o.warn(Finding{Path: f.path, Problem: fmt.Sprintf("line %d names %s", s.Line, b.name), Got: manifest.Clip(s.Text),
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
func (o *outcome) loads(p string, line int, repository, split string) {
	b := benchmarkOfRepository(repository)
	evaluation := evaluationSplit.MatchString(strings.ReplaceAll(split, "_", " "))
	problem := fmt.Sprintf("line %d loads %s", line, repository)
	if split != "" && split != "?" {
		problem += ", split " + split
	}
	switch {
	case b != nil && (!b.trains || evaluation):
		o.fail(Finding{Path: p, Problem: problem + ": evaluation data of " + b.name, Hint: withoutData})
	case b != nil && (split == "" || split == "?"):
		o.warn(Finding{Path: p, Problem: problem + ": all splits of " + b.name + ", as far as can be seen", Hint: "load split=\"train\" alone"})
	case b == nil && evaluation && repository != "":
		o.warn(Finding{Path: p, Problem: problem, Hint: "a reviewer will ask what for: no test or validation split may be among the data that weights are fitted on"})
	}
}

// dataOfShell judges downloads in shell scripts.
func (o *outcome) dataOfShell(f textFile) {
	linesOf(f.data, func(number int, line string) {
		code, _, _ := strings.Cut(line, "#")
		if !strings.Contains(code, "download") && !strings.Contains(code, "wget") && !strings.Contains(code, "curl") && !strings.Contains(code, "git clone") {
			return
		}
		for _, word := range strings.Fields(code) {
			repository := repositoryIn(strings.Trim(word, `"'`))
			if b := benchmarkOfRepository(repository); b != nil && strings.Contains(repository, "/") {
				o.loads(f.path, number, repository, splitOfPath(code))
			}
		}
	})
}

// statement is a sentence, or an item of a list with what introduces the list.
type statement struct {
	line    int
	text    string
	context string // headings and the line that introduces the list
}

// statementsOf divides a Markdown text. Fenced code counts as lines of text.
func statementsOf(data []byte) (list []statement) {
	var heading, introduction string
	var pending []string
	start := 0
	flush := func() {
		for _, sentence := range sentences(strings.Join(pending, " ")) {
			list = append(list, statement{start, sentence, heading + " " + introduction})
		}
		pending = nil
	}
	linesOf(data, func(number int, line string) {
		trimmed := strings.TrimSpace(line)
		item := listItem.MatchString(line)
		if trimmed == "" || item || strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, "|") {
			flush()
		}
		switch {
		case trimmed == "":
		case strings.HasPrefix(trimmed, "#"):
			heading, introduction = trimmed, ""
		default:
			if len(pending) == 0 {
				start = number
				if !item && !strings.HasPrefix(trimmed, "|") {
					introduction = ""
				}
			}
			pending = append(pending, trimmed)
			if strings.HasSuffix(trimmed, ":") && !item {
				joined := strings.Join(pending, " ")
				flush()
				introduction = joined
			}
		}
	})
	flush()
	return list
}

var (
	listItem    = regexp.MustCompile(`^\s*(?:[-*+]|\d+[.)])\s`)
	sentenceEnd = regexp.MustCompile(`[.!?;](?:\s+|$)`)
)

// sentences divides a paragraph.
func sentences(text string) (list []string) {
	for {
		at := sentenceEnd.FindStringIndex(text)
		if at == nil {
			break
		}
		list = append(list, text[:at[1]])
		text = text[at[1]:]
	}
	if strings.TrimSpace(text) != "" {
		list = append(list, text)
	}
	return list
}

// What a statement that names a benchmark says of it.
var (
	denies    = regexp.MustCompile(`(?i)\b(?:no|not|never|none|nor|neither|without|exclud\w*|remov\w*|filter\w*|decontaminat\w*|avoid\w*|free of|except|other than|apart from|held[- ]out|forbidden|disallowed|unused|cannot|absent|kept out|overlap\w*)\b|n['’]t\b`)
	evaluates = regexp.MustCompile(`(?i)\b(?:evaluat\w*|scor\w*|accurac\w*|measur\w*|report\w*|results?|graded|grader|leaderboard|monitor\w*|pass@\d+)\b`)
	resembles = regexp.MustCompile(`(?i)\b(?:style|styled|format\w*|similar|like|inspired|templates?)\b|[-]style|[-]like`)
	uses      = regexp.MustCompile(`(?i)\b(?:train\w*|fine[- ]?tun\w*|fit|fits|fitted|fitting|calibrat\w*|distill\w*|us(?:e|es|ed|ing)|tun(?:e|ed|ing)|data|data ?sets?|corpus|corpora|mix\w*|sampl\w*|sources?|prompts?|questions?|collect\w*|quantiz\w*|download\w*|load\w*|generat\w*|splits?)\b`)
	trainOnly = regexp.MustCompile(`(?i)\btrain(?:ing)?\b[^.;]{0,24}\b(?:splits?|sets?|only|part|portion|questions|problems|subset)\b|\bsplits?\b[^.;]{0,16}\btrain\b|\(train\)|[:=|,] *["']?train(?:ing)?["']?(?: *[|,]|$)`)
	evalSplit = regexp.MustCompile(`(?i)\b(?:test|validation|val|dev|eval(?:uation)?)[- ]*(?:splits?|sets?|questions|items|problems|data|part|portion|subset|examples)\b|\bsplits?\b[^.;]{0,16}\b(?:test|validation|val|dev)\b|\((?:test|validation|val|dev)\)|\b(?:test|validation) (?:and|or|/|\+)|(?:and|or|/|\+|,) ?(?:test|validation)\b|[:=|] *["']?(?:test|validation)\b|\b(?:test|validation)["'.)\s|]*$`)
)

// dataOfDocument judges what a document says of the data.
func (o *outcome) dataOfDocument(f textFile) {
	declaration := isDataDocument(f.path)
	var mentions []string
	for _, s := range statementsOf(f.data) {
		for _, b := range benchmarksIn(s.text) {
			place := fmt.Sprintf("line %d", s.line)
			switch judgeStatement(b, s, declaration) {
			case offends:
				o.fail(Finding{Path: f.path, Problem: place + " lists evaluation data of " + b.name + " among the data", Got: manifest.Clip(strings.TrimSpace(s.text)), Hint: withoutData})
			case doubtful:
				o.warn(Finding{Path: f.path, Problem: place + " names " + b.name + ", and does not say that none of its evaluation data was used", Got: manifest.Clip(strings.TrimSpace(s.text)), Hint: sayWhichSplit})
			default:
				mentions = append(mentions, b.name)
			}
		}
	}
	slices.Sort(mentions)
	if mentions = slices.Compact(mentions); len(mentions) > 0 {
		o.note("%s names %s without saying that it was used for fitting", f.path, strings.Join(mentions, ", "))
	}
}

type judgement int

const (
	harmless judgement = iota
	doubtful
	offends
)

// judgeStatement says whether a statement admits that a benchmark's evaluation
// data was used. Declaration: the document says what the data was, so that a
// name alone in it is a use.
func judgeStatement(b mention, s statement, declaration bool) judgement {
	all := s.context + " " + s.text
	evaluation := evalSplit.MatchString(s.text)
	switch {
	case denies.MatchString(s.context), denies.MatchString(b.clause()):
		return harmless
	case evaluates.MatchString(all) && !evaluation:
		return harmless
	case resembles.MatchString(s.text) && !evaluation:
		if declaration {
			return doubtful
		}
		return harmless
	case b.trains && !evaluation && trainOnly.MatchString(all):
		return harmless
	case evaluates.MatchString(s.text):
		return doubtful // "evaluated on the test split"
	case evaluation && (declaration || uses.MatchString(all)):
		return offends
	case !b.trains && uses.MatchString(all):
		if declaration {
			return offends
		}
		return doubtful
	case declaration:
		return doubtful
	}
	return harmless
}

var turns = regexp.MustCompile(`(?i)\b(?:but|however|although|though)\b|, *not\b`)

// clause returns the part of the sentence that names the benchmark, so that
// "GPQA was used, but not MMLU" denies the one alone.
func (m mention) clause() string {
	start := 0
	for _, at := range turns.FindAllStringIndex(m.text, -1) {
		if m.word.MatchString(m.text[start:at[0]]) {
			return m.text[start:at[0]]
		}
		start = at[0]
	}
	return m.text[start:]
}

var loadsInLog = regexp.MustCompile(`(?i)load_dataset|download\w*|generating (?:test|validation) split|loading|reading|train\w* on|calibrat\w* (?:on|with)`)

// dataOfLog judges a log's lines, which report what was done. One finding a
// benchmark: the first line that says it.
func (o *outcome) dataOfLog(f textFile) {
	told := map[string]bool{}
	linesOf(f.data, func(number int, line string) {
		if len(line) > 4096 || !loadsInLog.MatchString(line) || denies.MatchString(line) {
			return
		}
		for _, b := range benchmarksIn(line) {
			evaluation := evaluationSplit.MatchString(strings.ReplaceAll(line, "_", " "))
			if told[b.name] || b.trains && !evaluation || evaluates.MatchString(line) {
				continue
			}
			told[b.name] = true
			o.warn(Finding{Path: f.path, Problem: fmt.Sprintf("line %d says that %s was loaded", number, b.name), Got: manifest.Clip(strings.TrimSpace(line)),
				Hint: "say in DATA.md what for: no test or validation split may be among the data that weights are fitted on"})
		}
	})
}
