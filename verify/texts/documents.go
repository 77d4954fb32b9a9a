package texts

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/verify/report"
)

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
func (o *Found) dataOfDocument(f File) {
	declaration := isDataDocument(f.Path)
	var mentions []string
	for _, s := range statementsOf(f.Data) {
		for _, b := range benchmarksIn(s.text) {
			place := fmt.Sprintf("line %d", s.line)
			switch judgeStatement(b, s, declaration) {
			case offends:
				o.Fail(report.Finding{Path: f.Path, Problem: place + " lists evaluation data of " + b.name + " among the data", Got: manifest.Clip(strings.TrimSpace(s.text)), Hint: withoutData})
			case doubtful:
				o.Warn(report.Finding{Path: f.Path, Problem: place + " names " + b.name + ", and does not say that none of its evaluation data was used", Got: manifest.Clip(strings.TrimSpace(s.text)), Hint: sayWhichSplit})
			default:
				mentions = append(mentions, b.name)
			}
		}
	}
	slices.Sort(mentions)
	if mentions = slices.Compact(mentions); len(mentions) > 0 {
		o.Note("%s names %s without saying that it was used for fitting", f.Path, strings.Join(mentions, ", "))
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
