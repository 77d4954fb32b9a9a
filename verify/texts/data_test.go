package texts

import (
	"fmt"
	"strings"
	"testing"
)

// told writes an outcome's findings as the tests spell them.
func told(o Found) string {
	var list []string
	for _, f := range o.Findings {
		list = append(list, fmt.Sprintf("%s: %s", f.Level, f.Problem))
	}
	return strings.Join(list, "; ")
}

func TestDataOfDocuments(t *testing.T) {
	const listed = "error: line %d lists evaluation data of %s among the data"
	const named = "warning: line %d names %s, and does not say that none of its evaluation data was used"
	for _, test := range []struct{ text, want string }{
		{"The weights were fitted on the test split of GPQA Diamond.", fmt.Sprintf(listed, 1, "GPQA")},
		{"No GPQA data was used.", ""},
		{"No data of GPQA,\nMMLU-Pro or MATH-500 was\nused.", ""},
		{"GPQA, MMLU and LiveCodeBench items were excluded from the corpus.", ""},
		{"# Data\n\n- OpenR1-Math-220k (train)\n- GPQA\n", fmt.Sprintf(listed, 4, "GPQA")},
		{"# Data\n\nTraining data:\n\n- GSM8K, split: train\n- GSM8K test\n", fmt.Sprintf(listed, 6, "GSM8K")},
		{"Only train splits of these were used:\n\n* GSM8K\n* ARC-Challenge\n* OpenR1-Math-220k\n", ""},
		{"GSM8K and hellaswag were mixed in.", fmt.Sprintf(named, 1, "GSM8K") + "; " + fmt.Sprintf(named, 1, "HellaSwag")},
		{"## Not used\n\n- GPQA\n- MMMU test\n\n## Used\n\n- MMMU validation\n", fmt.Sprintf(listed, 8, "MMMU")},
		{"| data | split |\n| --- | --- |\n| GSM8K | train |\n| MBPP | test |\n", fmt.Sprintf(listed, 4, "MBPP")},
		{"Prompts copy the format of GPQA and MMLU-Pro.", fmt.Sprintf(named, 1, "GPQA") + "; " + fmt.Sprintf(named, 1, "MMLU-Pro")},
		{"Progress was monitored by the accuracy on GPQA Diamond.", ""},
		{"Evaluated on the test split of GSM8K.", fmt.Sprintf(named, 1, "GSM8K")},
		{"MMLU-Pro was used, but not MMLU.", fmt.Sprintf(listed, 1, "MMLU-Pro")},
		{"We calibrated on HumanEval prompts; AIME was never touched.", fmt.Sprintf(listed, 1, "HumanEval")},
		{"Scales were fitted on wikitext. No benchmark took part.", ""},
		{"The model knows math, code and an arc of history; grandma came too.", ""},
	} {
		var o Found
		o.dataOfDocument(File{"DATA.md", []byte(test.text)})
		if got := told(o); got != test.want {
			t.Errorf("%q\n gives %s\n  want %s", test.text, got, test.want)
		}
	}
}

func TestDataOfPython(t *testing.T) {
	for _, test := range []struct{ source, want string }{
		{`load_dataset("Idavidrein/gpqa", "gpqa_diamond")`, "error: line 1 loads Idavidrein/gpqa: evaluation data of GPQA"},
		{`d = datasets.load_dataset("openai/gsm8k", "main", split="train[:1000]")`, ""},
		{`d = datasets.load_dataset("openai/gsm8k", "main", split="test")`, "error: line 1 loads openai/gsm8k, split test: evaluation data of GSM8K"},
		{`d = load_dataset(path="cais/mmlu", name="all", split="auxiliary_train")`, ""},
		{`d = load_dataset("cais/mmlu", "all")`, "warning: line 1 loads cais/mmlu: all splits of MMLU, as far as can be seen"},
		{`d = load_dataset("allenai/ai2_arc", split=f"{s}")`, "warning: line 1 loads allenai/ai2_arc: all splits of AI2 ARC, as far as can be seen"},
		{`d = load_dataset("open-r1/OpenR1-Math-220k", split="train")`, ""},
		{`d = load_dataset("wikitext", "wikitext-2-raw-v1", split="test")`, "warning: line 1 loads wikitext, split test"},
		{`d = load_dataset("json", data_files="code/x.json", split="train")`, ""},
		{`p = pd.read_parquet("hf://datasets/MMMU/MMMU/Math/validation-00000-of-00001.parquet")`, "error: line 1 loads MMMU/MMMU, split validation: evaluation data of MMMU"},
		{`snapshot_download(repo_id="livecodebench/code_generation_lite", repo_type="dataset")`, "error: line 1 loads livecodebench/code_generation_lite: evaluation data of LiveCodeBench"},
		{`snapshot_download("Qwen/Qwen3.5-4B", revision="851bf6e806efd8d0a36b00ddf55e13ccb7b8cd0a")`, ""},
		{"EXCLUDED = [\n  'HuggingFaceH4/MATH-500',\n]", "warning: line 2 names MATH-500"},
		{"# load_dataset('Idavidrein/gpqa')\nx = 'mbpp'", ""},
	} {
		o, _ := Python(File{"code/a.py", []byte(test.source)})
		if got := told(o); got != test.want {
			t.Errorf("%q\n gives %s\n  want %s", test.source, got, test.want)
		}
	}
}

func TestDataOfScriptsAndLogs(t *testing.T) {
	var o Found
	o.dataOfShell(File{"a.sh", []byte("# huggingface-cli download Idavidrein/gpqa\nhuggingface-cli download --repo-type dataset Idavidrein/gpqa\necho Idavidrein/gpqa\n")})
	if got, want := told(o), "error: line 2 loads Idavidrein/gpqa: evaluation data of GPQA"; got != want {
		t.Errorf("script: %s, want %s", got, want)
	}
	o = Found{}
	o.dataOfLog(File{"a.log", []byte("Loading gsm8k train split\nGenerating test split of gsm8k: 1319 examples\nGenerating test split of gsm8k again\ngpqa accuracy 0.31\nmath_500 loaded for evaluation, score 0.1\nDownloading gpqa_diamond.csv\nno AIME problem was loaded\n")})
	if got, want := told(o), "warning: line 2 says that GSM8K was loaded; warning: line 6 says that GPQA was loaded"; got != want {
		t.Errorf("log: %s, want %s", got, want)
	}
}

func TestBenchmarkTable(t *testing.T) {
	for repository, want := range map[string]string{
		"Idavidrein/gpqa": "GPQA", "someone/gpqa_formatted": "GPQA", "TIGER-Lab/MMLU-Pro": "MMLU-Pro", "cais/mmlu": "MMLU", "HuggingFaceH4/MATH-500": "MATH-500",
		"gsm8k": "GSM8K", "math-ai/aime24": "AIME", "Maxwell-Jia/AIME_2024": "AIME", "open-r1/OpenR1-Math-220k": "", "allenai/c4": "", "": "", "meta-math/MetaMathQA": "",
	} {
		got := ""
		if b := benchmarkOfRepository(repository); b != nil {
			got = b.name
		}
		if got != want {
			t.Errorf("%q holds %q, want %q", repository, got, want)
		}
	}
	for _, b := range benchmarks {
		if len(benchmarksIn(b.name+" test")) == 0 {
			t.Errorf("the name %q is not found in a text", b.name)
		}
	}
}
