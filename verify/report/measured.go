package report

// Measured is what a rehearsal observed of the running submission. Unlike the
// rest of a report it depends on the machine, so that it stands apart. Times are
// seconds.
type Measured struct {
	Machine    string      `json:"machine"`          // what it was measured on: processor, cores, memory, accelerator
	Shrunk     string      `json:"shrunk,omitempty"` // says so where a tiny twin of the model was started
	Conditions []Condition `json:"conditions"`       // of the grader's machine: held, or not to be had here
	Starts     []Start     `json:"starts"`
	First      []Reply     `json:"first,omitempty"` // the first requests after the first 200 of /health, one at a time
	Batch      *Batch      `json:"batch,omitempty"`
	Projection *Projection `json:"projection,omitempty"`
	Trace      *Trace      `json:"trace,omitempty"` // nil where nothing could be traced
	Quality    *Quality    `json:"quality,omitempty"`
	Log        string      `json:"log,omitempty"` // the end of what the server printed
}

// Condition is one property of the grader's machine that the start was under.
type Condition struct {
	Name   string `json:"name"` // "no network", "read-only submission"
	Held   bool   `json:"held"`
	Detail string `json:"detail,omitempty"` // its value where held, else why it could not be had
}

// Start is one start of serve.sh.
type Start struct {
	What    string   `json:"what"` // "first", "again, from another folder"
	Phases  []Phase  `json:"phases,omitempty"`
	Healthy float64  `json:"healthy,omitempty"` // to the first 200 of /health; 0: never
	Saved   float64  `json:"saved,omitempty"`   // how much sooner that was than on the first start, where it is much: what that one left was there
	Stopped float64  `json:"stopped,omitempty"` // from SIGTERM to the end of its last process; 0: it was not stopped or did not end
	Exit    string   `json:"exit,omitempty"`    // how the process ended, if by itself
	Left    []string `json:"left,omitempty"`    // processes and ports that outlived SIGTERM
}

// Phase is something that happened at a time after the start: a program was
// started, the first weight file was opened, the port was bound, /health was 200.
type Phase struct {
	Name string  `json:"name"`
	At   float64 `json:"at"`
}

// Reply is how one request ended.
type Reply struct {
	Request string  `json:"request"`
	Status  int     `json:"status,omitempty"` // 0: no HTTP reply
	Took    float64 `json:"took"`
	Problem string  `json:"problem,omitempty"`
	Remedy  string  `json:"remedy,omitempty"`
	Curl    string  `json:"curl,omitempty"`    // the failed request as a line for a shell, to be sent to a server of one's own
	Excerpt string  `json:"excerpt,omitempty"` // of the body
}

// Batch is the load at the graded concurrency.
type Batch struct {
	Requests    int       `json:"requests"`
	Concurrency int       `json:"concurrency"`
	Repeats     int       `json:"repeats,omitempty"` // requests left out because they were asked before
	Failed      int       `json:"failed"`
	Empty       int       `json:"empty"` // answered without content
	Tokens      int       `json:"tokens"`
	Seconds     float64   `json:"seconds"`
	Latencies   []float64 `json:"latencies"` // of each answered request, ascending
}

// Projection scales the batch to the graded load.
type Projection struct {
	Formula string  `json:"formula"` // with its numbers
	Seconds float64 `json:"seconds"`
	Limit   float64 `json:"limit"`
	Device  string  `json:"device,omitempty"` // how a measurement on another accelerator was scaled
}

// Trace is what the processes did. Paths are those inside.
type Trace struct {
	Opened    []Access `json:"opened"` // files, each once; system libraries left out
	Programs  []string `json:"programs"`
	Connected []string `json:"connected"` // addresses tried beyond loopback
}

// Access is a file that was opened.
type Access struct {
	Path    string `json:"path"`
	Written bool   `json:"written,omitempty"`
}

// Quality is how good the answers or drafts were.
type Quality struct {
	Questions int     `json:"questions,omitempty"`
	Right     int     `json:"right,omitempty"`
	Parsed    int     `json:"parsed,omitempty"` // of the answers, those in the form that the questions' answers have
	Truncated int     `json:"truncated,omitempty"`
	Failed    int     `json:"failed,omitempty"`
	Accuracy  float64 `json:"accuracy,omitempty"`
	Low       float64 `json:"low,omitempty"`  // 95% confidence interval of the accuracy, Wilson's
	High      float64 `json:"high,omitempty"` //
	Chance    float64 `json:"chance,omitempty"`
	Floor     float64 `json:"floor"` // of accuracy or tau

	Tau       float64 `json:"tau,omitempty"`
	PerPrompt float64 `json:"tau_per_prompt,omitempty"`
	Steps     int     `json:"steps,omitempty"`
	Tokens    int     `json:"tokens,omitempty"`

	Alone  *Agreement `json:"alone,omitempty"`  // answers in the batch against the same requests alone
	Golden *Agreement `json:"golden,omitempty"` // answers or drafts against those of the golden file
}

// Agreement compares two runs over the same questions.
type Agreement struct {
	Compared int     `json:"compared"`
	Same     int     `json:"same"`
	First    string  `json:"first,omitempty"` // the first difference
	Share    float64 `json:"share"`
}
