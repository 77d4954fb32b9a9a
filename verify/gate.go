package verify

import (
	"fmt"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/verify/report"
)

// Gate is one question that a submission must answer.
type Gate struct {
	ID        string
	Promise   string // what a pass means
	Source    string // where the rule comes from
	Example   string // a failure, and what to do about it
	Elsewhere string // for a gate without decide: that, and where it is decided
	decide    func(*evidence) outcome
}

// All returns the gates in the order in which they are reported: static ones,
// then those that need the submission to run.
func All() []Gate {
	return append(append([]Gate{}, staticGates...), dynamicGates...)
}

// Dynamic reports whether a gate needs the submission to run.
func Dynamic(id string) bool {
	return slices.ContainsFunc(dynamicGates, func(g Gate) bool { return g.ID == id })
}

// Lookup returns the gate of an id.
func Lookup(id string) (Gate, bool) {
	for _, g := range All() {
		if g.ID == id {
			return g, true
		}
	}
	return Gate{}, false
}

// Explain returns a gate's promise, source and example, for people.
func Explain(id string) (string, error) {
	g, ok := Lookup(id)
	if !ok {
		var ids []string
		for _, other := range All() {
			ids = append(ids, other.ID)
		}
		return "", fmt.Errorf("there is no gate %q; the gates are %s", manifest.Clip(id), strings.Join(ids, " "))
	}
	text := fmt.Sprintf("%s\n  promise: %s\n  source:  %s\n  example: %s\n", g.ID, g.Promise, g.Source, g.Example)
	if explainers := report.Explainers(g.ID); len(explainers) > 0 {
		text += fmt.Sprintf("  a failure that one of these can be the reason of is observed and not decided: %s\n", strings.Join(explainers, " "))
	}
	if g.decide == nil {
		text += fmt.Sprintf("  %s\n", g.Elsewhere)
	}
	return text, nil
}

const (
	staticElsewhere = "this version does not decide it: a reviewer does"
	bootElsewhere   = "it needs the submission to run: slipway rehearse decides it"
)

var staticGates = []Gate{
	{
		ID:      "paths",
		Promise: "every entry is a regular file with a path that every system spells alike, and none is a link or device",
		Source:  "the bundle format's path rules; the link and traversal attacks known of archive unpackers",
		Example: "weights/a.safetensors is a symbolic link: put the file itself there",
		decide:  decidePaths,
	},
	{
		ID:      "digests",
		Promise: "every byte was read and hashed, and agrees with what the artifact, its config and --expect say",
		Source:  "OCI image-spec (descriptors), CNCF model-spec (diffIds), the set digest of the bundle format",
		Example: "the set digest is not the one that --expect gives: this is another submission than the one that was meant",
		decide:  decideDigests,
	},
	{
		ID:      "files",
		Promise: "every file that the task requires is there, and nothing that could be a second model",
		Source:  "the task's file list; weight-like files by extension, by signature and by entropy, in wheels too; wheels against their own RECORD and a lock's digests",
		Example: "cache/model.bin holds safetensors bytes: ship weights as .safetensors under weights/",
		decide:  decideFiles,
	},
	{
		ID:      "declared",
		Promise: "the declarations can be read, name the pinned base and describe the files that are there",
		Source:  "the task's rule that the base is pinned by a full revision; quantization_manifest.json and inventory.json of the bundle format",
		Example: "architecture.json names another revision than the profile pins: start from the pinned one",
		decide:  decideDeclared,
	},
	{
		ID:      "size",
		Promise: "the files together are within the task's limit",
		Source:  "the task's limit on the sum of all file sizes",
		Example: "the files are 1 byte too large together: drop the head's copy where the embedding serves as head",
		decide:  decideSize,
	},
	{
		ID:      "safetensors",
		Promise: "every .safetensors file is exactly what the format allows: no hole, overlap, tail, duplicate or unknown type",
		Source:  "huggingface/safetensors (README and tensor.rs), as rules S1 to S8 of the reader",
		Example: "tensor \"x\": offsets [4,8] overlap tensor \"w\", which ends at 8: write the file again with a safetensors library",
		decide:  decideSafetensors,
	},
	{
		ID:      "index",
		Promise: "each folder's index and shards name the same tensors, each once",
		Source:  "model.safetensors.index.json as the transformers library writes and reads it",
		Example: "the index names a shard that is not there: upload all shards, or write the index again",
		decide:  decideIndex,
	},
	{
		ID:      "coverage",
		Promise: "every tensor of the base is there exactly once with its shape and name, no tensor is there that the base does not have, and no second model",
		Source:  "the task's rule that all main tensors are present and no second model is; with no contract, the model family that config.json names",
		Example: "model.layers: layers 8 to 31 are missing (318 tensors): export all layers, and copy all shards",
		decide:  decideCoverage,
	},
	{
		ID:        "components",
		Promise:   "added components are only those that the task allows",
		Source:    "the task's rules on encoders, connectors and drafters",
		Example:   "a second encoder beside the allowed one: remove it, and name what was added in architecture.json",
		Elsewhere: staticElsewhere,
	},
	{
		ID:      "ternary",
		Promise: "every tensor that claims to be ternary is, and they are more of the model than the task's bound",
		Source:  "the task's fraction rule T/(T+s+f); a scale unit is ternary when its weights are {-a, 0, +a}",
		Example: "code 3 at element 17 of a packed_2bit tensor: pack codes 0, 1, 2 only",
		decide:  decideTernary,
	},
	{
		ID:      "stored",
		Promise: "what is stored, scales, floats and unreferenced tensors included, is within the task's multiple of the base's parameters",
		Source:  "the task's stored-parameter rule (T+s+f+u)/P0",
		Example: "71,401,042 elements too many are stored: use larger groups, or drop what no entry refers to",
		decide:  decideStored,
	},
	{
		ID:        "origin",
		Promise:   "files that are said to come from the base unchanged do",
		Source:    "the pinned revision's commit and tree objects",
		Example:   "tokenizer.json is not the pinned revision's file: copy it from that revision",
		Elsewhere: staticElsewhere,
	},
	{
		ID:      "data",
		Promise: "nothing in the code, in DATA.md or in the logs says that a known benchmark's test or validation data was used; what was used is for a reviewer to trace",
		Source:  "the task's data rule; the benchmarks' pages on the model hub",
		Example: "line 14 loads Idavidrein/gpqa: evaluation data of GPQA: train without it",
		decide:  decideData,
	},
	{
		ID:      "lookup",
		Promise: "no file has the shape of a table of answers, continuations or token ids, and no code writes out that or weights; whether what runs answers from one, gate opened-files finds",
		Source:  "the task's rule against lookup tables",
		Example: "code/answers.json holds 200 records of question and answer: remove it",
		decide:  decideLookup,
	},
	{
		ID:      "text-only",
		Promise: "vision and MTP tensors take no part in text inference: none is stored, or what serves is known not to use them",
		Source:  "the task's content rules",
		Example: "line 9 starts the server with --speculative-config: drafting with the MTP head is not allowed",
		decide:  decideTextOnly,
	},
	{
		ID:        "wheels",
		Promise:   "every wheel is the upstream one, byte for byte, and all that is imported is there",
		Source:    "the task's rule on vendored wheels",
		Example:   "numpy is imported and no wheel of it is there: vendor the one that the package index publishes",
		Elsewhere: staticElsewhere,
	},
	{
		ID:      "script",
		Promise: "serve.sh, followed without running anything, starts one server from the submission's own files, with arguments that it takes, offline, and with no fallback that serves something else",
		Source:  "the task's entry point; the shell and argparse as they read command lines; what is known of the grader's image",
		Example: "line 12: code/export.py: unrecognized arguments: --skip-mv: ship the script of the same version as serve.sh",
		decide:  decideScript,
	},
	{
		ID:      "secrets",
		Promise: "no text holds a key, a token or a password that can be told as one, and no file is one that holds such",
		Source:  "the issuers' documents on their tokens' formats; what was pushed once cannot be called back",
		Example: "line 3 holds a Hugging Face token: remove it, and revoke it if it was ever pushed or shown",
		decide:  decideSecrets,
	},
	{
		ID:      "config",
		Promise: "each model's config.json agrees with its stored tensors, its tokenizer and its generation settings",
		Source:  "the transformers library's configuration, which servers take their dimensions from",
		Example: "vocab_size is 500, embed_tokens has 512 rows: write the config of the model that is stored",
		decide:  decideConfig,
	},
	{
		ID:      "rebuild",
		Promise: "the runtime program is what its shipped source builds",
		Source:  "the bundle format: runtime/serve, built from runtime/source.tar as runtime.lock says",
		Example: "runtime/serve differs from what runtime/source.tar builds: build the bundle again",
		decide:  decideRebuild,
	},
}

var dynamicGates = []Gate{
	{ID: "install", Promise: "what is shipped of Python is all there and fits: wheels install offline, every script that serve.sh starts takes its arguments, and what the server's code imports later can be imported",
		Source:  "the task's image, which is offline; self-checks that failed for an unknown argument, and for a package that the first request missed",
		Example: "code/server.py: line 38: from stream import events: ModuleNotFoundError: No module named 'frames': ship what is missing, or import it at the top, so that the start shows it", Elsewhere: bootElsewhere},
	{ID: "startup", Promise: "GET /health answers 200 in time at the machine's own address, under the grader's conditions as far as they were asked for; a second start right after the first does too, and answers the same",
		Source:  "the task's start limit; self-checks that failed",
		Example: "a shared object lies on a mount without exec: install to a folder that may execute, never to /dev/shm", Elsewhere: bootElsewhere},
	{ID: "first-request", Promise: "the first requests straight after the first 200 of /health are answered in the endpoint's form, with content", Source: "the task's endpoint; its smoke request",
		Example: "/health answers 200 and the first request 500: send one request of each kind before it reports healthy", Elsewhere: bootElsewhere},
	{ID: "batch", Promise: "all public examples, repeats left out, are answered with content at the graded concurrency", Source: "the task's load",
		Example: "of 16 requests at once one answers 500: reserve the memory of all of them at start", Elsewhere: bootElsewhere},
	{ID: "deadline", Promise: "the graded load, projected from the batch, ends in time",
		Source:  "the task's time limit; first + batch * graded/sampled, or for drafts sample * all_tokens/sample_tokens + first",
		Example: "489.6 s * 900/150 + 4.6 s = 2942 s of 3600 s leaves 18%: batch what is asked together", Elsewhere: bootElsewhere},
	{ID: "still-healthy", Promise: "GET /health answers 200 after the load, and SIGTERM leaves no process and no port", Source: "the task's endpoint",
		Example: "35 s after SIGTERM a process still runs: start the server with exec as the last command of serve.sh", Elsewhere: bootElsewhere},
	{ID: "opened-files", Promise: "the server opens the submission's weights, answers otherwise when they are all zero and so neither from other weights nor from a table, opens nothing outside the submission but the system, connects to nothing, and compiles nothing that the grader could not", Source: "the task's rule that inference uses the weights that were reviewed, offline",
		Example: "the server opens /mnt/model.safetensors: ship what it needs, and load that", Elsewhere: bootElsewhere},
	{ID: "quality", Promise: "the answers or drafts reach the profile's floor, are better than chance, and are as good in a batch as alone", Source: "the task's score; what a server computes from codes and scales shows nowhere else",
		Example: "38 right of 150, accuracy 0.2533, chance is 0.2500: compare with the base model on the same questions; a wrong layout of the codes looks like this", Elsewhere: bootElsewhere},
}
