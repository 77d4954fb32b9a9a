package texts

import (
	"regexp"
	"slices"
	"strings"
)

// benchmark is a public evaluation whose test and validation items must not be
// among the data that a submission was made with.
type benchmark struct {
	name string
	word *regexp.Regexp // how people write it
	// repositories on the model hub, lower case; a trailing "*" stands for any end.
	repositories []string
	// trains: it has a training split that may be used. Without, whatever is
	// taken of it is evaluation data.
	trains bool
}

func written(pattern string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b(?:` + pattern + `)\b`) }

// benchmarks is the deny list. Sources: the data sets' own pages on the model hub.
var benchmarks = []benchmark{
	{"GPQA", written(`GPQA(?:[-_ ]?(?:diamond|main|extended))?`), []string{"idavidrein/gpqa", "*/gpqa*"}, false},
	{"MMLU-Pro", written(`MMLU[-_ ]?Pro`), []string{"tiger-lab/mmlu-pro", "*/mmlu-pro*", "*/mmlu_pro*"}, false},
	{"MMLU", written(`C?MMLU(?:[-_ ]?Redux)?`), []string{"cais/mmlu", "hails/mmlu*", "lukaemon/mmlu", "edinburgh-dawg/mmlu*", "openai/mmmlu", "haonan-li/cmmlu"}, true},
	{"MATH-500", written(`MATH[-_ ]?500`), []string{"huggingfaceh4/math-500", "*/math-500*", "*/math500*"}, false},
	{"MATH", regexp.MustCompile(`\bMATH (?:dataset|data set|test|benchmark)|\bhendrycks[_ -]?(?:MATH|math)\b|\bcompetition_math\b`),
		[]string{"hendrycks/competition_math", "lighteval/math*", "eleutherai/hendrycks_math", "qwedsacf/competition_math"}, true},
	{"LiveCodeBench", written(`Live[-_ ]?Code[-_ ]?Bench`), []string{"livecodebench/*"}, false},
	{"MMMU", written(`MMMU(?:[-_ ]?Pro)?`), []string{"mmmu/*"}, false},
	{"HumanEval", written(`Human[-_ ]?Eval\+?`), []string{"openai/openai_humaneval", "openai_humaneval", "evalplus/humanevalplus", "*/humaneval*"}, false},
	{"MBPP", written(`MBPP\+?`), []string{"google-research-datasets/mbpp", "mbpp", "evalplus/mbppplus"}, true},
	{"AIME", regexp.MustCompile(`\bAIME(?:[-_ ]?\d{2,4})?\b|\baime[-_]?\d{2,4}\b`), []string{"*/aime*", "huggingfaceh4/aime_2024", "math-ai/aime24", "opencompass/aime2025"}, false},
	{"AMC 23", regexp.MustCompile(`\bAMC[-_ ]?(?:23|2023)\b`), []string{"math-ai/amc23", "ai-mo/aimo-validation-amc"}, false},
	{"OlympiadBench", written(`Olympiad[-_ ]?Bench`), []string{"*/olympiadbench*"}, false},
	{"GSM8K", written(`GSM[-_ ]?8K`), []string{"openai/gsm8k", "gsm8k"}, true},
	{"MGSM", written(`MGSM`), []string{"juletxara/mgsm"}, true},
	{"AI2 ARC", written(`AI2[-_ ]?ARC|ARC[-_ ](?:Challenge|Easy|C|E)`), []string{"allenai/ai2_arc", "ai2_arc"}, true},
	{"HellaSwag", written(`HellaSwag`), []string{"rowan/hellaswag", "hellaswag"}, true},
	{"WinoGrande", written(`WinoGrande`), []string{"allenai/winogrande", "winogrande"}, true},
	{"TruthfulQA", written(`TruthfulQA`), []string{"truthfulqa/truthful_qa", "truthful_qa"}, false},
	{"BIG-Bench Hard", written(`BIG[-_ ]?Bench(?:[-_ ]?Hard)?|BBH`), []string{"lukaemon/bbh", "*/bbh", "google/bigbench", "*/bbeh"}, false},
	{"IFEval", written(`IF[-_ ]?Eval`), []string{"google/ifeval"}, false},
	{"AlpacaEval", written(`Alpaca[-_ ]?Eval`), []string{"tatsu-lab/alpaca_eval"}, false},
	{"MT-Bench", written(`MT[-_ ]Bench`), []string{"huggingfaceh4/mt_bench_prompts", "lmsys/mt_bench*", "*/mt-bench*"}, false},
	{"Spec-Bench", written(`Spec[-_ ]?Bench`), []string{"*/spec-bench*", "*/specbench*"}, false},
	{"Arena-Hard", written(`Arena[-_ ]Hard`), []string{"*/arena-hard*"}, false},
	{"SWE-bench", written(`SWE[-_ ]?bench`), []string{"princeton-nlp/swe-bench*", "swe-bench/*"}, true},
	{"Humanity's Last Exam", written(`Humanity['’]?s Last Exam`), []string{"cais/hle"}, false},
	{"SimpleQA", written(`SimpleQA`), []string{"*/simpleqa*", "basicv8vc/simpleqa"}, false},
	{"C-Eval", written(`C[-_]Eval`), []string{"ceval/ceval-exam"}, false},
	{"AGIEval", written(`AGIEval`), []string{"*/agieval*"}, false},
	{"MathVista", written(`MathVista`), []string{"ai4math/mathvista"}, false},
	{"MMStar", written(`MMStar`), []string{"lin-chen/mmstar"}, false},
	{"MMBench", written(`MMBench`), []string{"*/mmbench*"}, false},
	{"MM-Vet", written(`MM[-_]?Vet`), []string{"whyu/mm-vet"}, false},
	{"ScienceQA", written(`ScienceQA`), []string{"derek-thomas/scienceqa", "lmms-lab/scienceqa*"}, true},
	{"AI2D", written(`AI2D`), []string{"lmms-lab/ai2d*"}, true},
	{"ChartQA", written(`ChartQA`), []string{"huggingfacem4/chartqa", "lmms-lab/chartqa"}, true},
	{"DocVQA", written(`DocVQA`), []string{"lmms-lab/docvqa"}, true},
	{"TextVQA", written(`TextVQA`), []string{"lmms-lab/textvqa", "facebook/textvqa"}, true},
	{"OCRBench", written(`OCR[-_ ]?Bench`), []string{"echo840/ocrbench"}, false},
}

// Benchmarks returns how many benchmarks are known here.
func Benchmarks() int { return len(benchmarks) }

// benchmarkOfRepository returns the benchmark that a data set's repository on the
// hub, "owner/name" or a bare name, holds; nil for every other.
func benchmarkOfRepository(repository string) *benchmark {
	lower := strings.ToLower(strings.Trim(repository, "/"))
	for i := range benchmarks {
		for _, pattern := range benchmarks[i].repositories {
			if matchesRepository(pattern, lower) {
				return &benchmarks[i]
			}
		}
	}
	return nil
}

func matchesRepository(pattern, repository string) bool {
	owner, name, twoParts := strings.Cut(repository, "/")
	wantOwner, wantName, patternTwo := strings.Cut(pattern, "/")
	if !patternTwo || !twoParts {
		return pattern == repository
	}
	start, open := strings.CutSuffix(wantName, "*")
	return (wantOwner == "*" || wantOwner == owner) && (name == wantName || open && strings.HasPrefix(name, start))
}

// benchmarkHints are parts of the benchmarks' names, lower case: a text without
// any of them names none.
var benchmarkHints = []string{
	"gpqa", "mmlu", "math", "bench", "mmmu", "eval", "mbpp", "aime", "amc", "gsm", "arc", "hellaswag", "winogrande", "truthful", "bbh", "exam",
	"simpleqa", "mmstar", "vet", "vqa", "ai2d", "chartqa", "scienceqa", "arena",
}

// mention is a benchmark that a text names. The text is without the names of
// those that were found before.
type mention struct {
	*benchmark
	text string
}

// benchmarksIn returns the benchmarks that a text names, the more special of
// "MMLU-Pro" and "MMLU" alone.
func benchmarksIn(text string) (found []mention) {
	lower := strings.ToLower(text)
	if !slices.ContainsFunc(benchmarkHints, func(h string) bool { return strings.Contains(lower, h) }) {
		return nil
	}
	for i := range benchmarks {
		b := &benchmarks[i]
		if b.word.MatchString(text) {
			found = append(found, mention{b, text})
			text = b.word.ReplaceAllString(text, " ")
		}
	}
	return found
}
