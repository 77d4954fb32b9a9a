package verify

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"slipway/verify/report"
)

// Made-up tokens, in parts so that no search finds one in this file.
const (
	token      = "hf" + "_" + "QmVjYXVzZU5vT25lUmVhZHNUaGlzMTIzND"
	otherToken = "hf" + "_" + "jYXVzZU5vT25lUmVhZHNUaGlzMTIzNDU2Nzg5"
)

func times(n int, format string) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, format, i)
	}
	return out.String()
}

func TestLookupVectors(t *testing.T) {
	put := func(p, text string) func(*fixture) { return func(f *fixture) { f.files[p] = []byte(text) } }
	list := func(n int, format string) string { return "[" + strings.TrimSuffix(times(n, format+","), ",") + "]" }
	table := func(n int, format string) string { return "{" + strings.TrimSuffix(times(n, format+","), ",") + "}" }
	refused := func(name, p, text, says string) vector {
		return vector{name: name, alter: put(p, text), fails: fails("lookup"), names: p + "  " + says}
	}
	passes := func(name, p, text string) vector { return vector{name: name, alter: put(p, text)} }
	runVectors(t, []vector{
		refused("records", "code/answers.json", list(200, `{"question":"q %d","answer":"a"}`), "holds 200 records of question and answer"),
		{name: "some records", alter: put("code/answers.json", list(60, `{"question":"q %d","answer":"a"}`)), warns: "lookup", names: "60 records"},
		passes("few records", "code/examples.json", list(49, `{"question":"q %d","answer":"a"}`)),
		refused("records below a name", "a.json", `{"data":`+list(250, `{"id":1,"prompt":"q %d","completion":"a"}`)+"}", "holds 250 records"),
		refused("lines", "validation.jsonl", times(200, `{"id":%d,"prompt":[1,2],"continuation":[3]}`+"\n"), "holds 200 records of prompt and continuation"),
		passes("training log", "provenance/steps.jsonl", times(900, `{"step":%d,"loss":1.5,"input":3}`+"\n")),
		refused("CSV", "a.csv", "id,Question,Answer\n"+times(200, "%d,\"q, r\",a\n"), "holds 200 records of Question and Answer"),
		passes("CSV of measurements", "a.csv", "step,loss\n"+times(900, "%d,1.5\n")),
		refused("texts by texts", "a.json", table(500, `"what is %d":"a"`), "maps 500 texts"),
		refused("texts by hashes", "a.json", table(500, `"0123456789abcdef%08d":"a"`), "maps 500 texts"),
		passes("files by hashes", "a.json", table(900, `"code/a %d.py":"0123456789abcdef0123456789abcdef"`)),
		passes("shards by tensors", "a.json", table(900, `"model.layers.%d.mlp.down_proj.weight":"model-00001.safetensors"`)),
		passes("translations", "code/de.json", table(50, `"Please try %d":"Bitte %[1]d versuchen"`)),
		refused("next tokens", "a.json", table(500, `"%d":17`), "maps 500 integers"),
		passes("vocabulary", "code/vocab.json", table(900, `"tok%d":%[1]d`)),
		refused("token ids", "a.json", list(200, `[1,2,3,4,5,6,7,%d]`), "holds 200 lists"),
		passes("shapes", "a.json", list(900, `[1,2,3,%d]`)),
		refused("dict in code", "code/a.py", "A = {"+times(500, `"q%d": "a",`)+"}\n", "line 1 writes out a table of 500 pairs"),
		passes("dict of settings", "code/a.py", "A = {"+times(150, `"q%d": "a",`)+"}\n"),
		refused("numbers in code", "code/a.py", "\nA = ["+times(5000, "%d,")+"]\n", "line 2 writes out 5,000 numbers"),
		{name: "keys of prompts", alter: put("code/a.py", "k = hashlib.sha256(prompt.encode()).hexdigest()\n"), warns: "lookup", names: "line 1 makes a key"},
		passes("hash of a file", "code/a.py", "k = hashlib.sha256(path.read_bytes()).hexdigest()\n"),
		refused("questions in a text", "code/a.txt", times(200, "Q: what is %d?\nA: it\n"), "holds 200 records"),
		{name: "database", alter: put("code/a.dat", "SQLite format 3\x00"), fails: fails("lookup"), names: "code/a.dat  is an SQLite database"},
		{name: "another database", alter: put("code/a.db", "x"), fails: fails("lookup"), names: "code/a.db  is a database by its name"},
	})
}

func TestDataVectors(t *testing.T) {
	put := func(p, text string) func(*fixture) { return func(f *fixture) { f.files[p] = []byte(text) } }
	runVectors(t, []vector{
		{name: "test split declared", alter: put("DATA.md", "The weights were fitted on the test split of GPQA Diamond."), fails: fails("data"), names: "GPQA"},
		{name: "denied", alter: put("DATA.md", "The weights were constructed, not trained. No GPQA data was used.")},
		{name: "loaded by code", alter: put("code/prepare.py", `load_dataset("TIGER-Lab/MMLU-Pro", split="test")`), fails: fails("data"), names: "code/prepare.py  line 1 loads"},
		{name: "train split", alter: put("code/prepare.py", `load_dataset("openai/gsm8k", "main", split="train")`)},
		{name: "logged", alter: put("provenance/a.log", "Downloading gpqa_diamond.csv"), warns: "data", names: "provenance/a.log  line 1"},
	})
}

// Of more Python than is searched, the gates say what they did not see; what they
// saw counts all the same.
func TestPythonBeyondItsBound(t *testing.T) {
	f := newFixture()
	comments := []byte(strings.Repeat("#"+strings.Repeat("-", 126)+"\n", maxTextBytes/128))
	left := maxPythonBytes
	for p, data := range f.files {
		if path.Ext(p) == ".py" {
			left -= len(data)
		}
	}
	for i := 0; left > 0; i++ {
		n := min(left, maxTextBytes)
		f.files[fmt.Sprintf("code/many/%02d.py", i)] = comments[:n]
		left -= n
	}
	whole := run(t, f.write(t), Options{Profile: toyProfile()})
	f.files["code/many/more.py"] = []byte(`load_dataset("TIGER-Lab/MMLU-Pro", split="test")`)
	more := run(t, f.write(t), Options{Profile: toyProfile()})
	f.files["code/a.py"] = []byte(`load_dataset("TIGER-Lab/MMLU-Pro", split="test")`)
	seen := run(t, f.write(t), Options{Profile: toyProfile()})
	for _, test := range []struct {
		r    *report.Report
		id   string
		want report.Status
		says string
	}{
		{whole, "data", report.Pass, ""}, {whole, "lookup", report.Pass, ""},
		{more, "data", report.Undecided, "code/many/more.py"}, {more, "lookup", report.Undecided, "code/many/more.py"},
		{seen, "data", report.Fail, "code/many/15.py"}, {seen, "lookup", report.Undecided, "code/many/15.py"},
	} {
		g, _ := test.r.Gate(test.id)
		note := "not looked through, since all Python together has more than the 16,777,216 bytes that are: " + test.says
		if told := slices.ContainsFunc(g.Notes, func(n string) bool { return strings.HasPrefix(n, note) }); g.Status != test.want || told != (test.says != "") {
			t.Errorf("%s: %s, %q, want %s and %q", test.id, g.Status, g.Notes, test.want, test.says)
		}
	}
}

func TestSecretVectors(t *testing.T) {
	put := func(p, text string) func(*fixture) { return func(f *fixture) { f.files[p] = []byte(text) } }
	runVectors(t, []vector{
		{name: "token in code", alter: put("code/fetch.py", `TOKEN = "`+token+`"`), fails: fails("secrets"), names: "code/fetch.py  line 1 holds a Hugging Face token"},
		{name: "token in a log", alter: put("provenance/run.log", "x\n"+token+"\n"), fails: fails("secrets"), names: "provenance/run.log  line 2"},
		{name: "token from the environment", alter: put("code/fetch.py", `TOKEN = os.environ["HF_TOKEN"]`)},
		{name: "netrc", alter: put("code/.netrc", "machine a login b password c"), fails: fails("secrets"), names: "code/.netrc  is a file that holds logins"},
		{name: "empty netrc", alter: put("code/.netrc", "")},
		{name: "settings", alter: put(".env.example", "HF_TOKEN=hf_0123456789abcdefghij0123456789abcd\n")},
		{name: "hub's token file", alter: put("cache/huggingface/token", "x"), fails: fails("secrets"), names: "a Hugging Face token"},
	})
}

// A report never shows what it found.
func TestSecretsAreNotShown(t *testing.T) {
	f := newFixture()
	f.files["code/a.py"] = []byte(strings.Repeat(`T = "`+token+"\"\n", 3) + `U = "` + otherToken + `"`)
	report := run(t, f.write(t), Options{Profile: toyProfile()})
	data, err := report.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(errorsOf(report, "secrets")); n != 2 {
		t.Errorf("%d errors, want one for each token", n)
	}
	for _, output := range []string{string(data), text(t, report)} {
		if strings.Contains(output, token[:8]) {
			t.Errorf("the report shows the token:\n%s", output)
		}
	}
}
