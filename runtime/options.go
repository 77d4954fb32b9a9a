package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"time"
)

const usage = `usage: runtime --weights DIR [flags]

  --weights DIR         checkpoint folder: config.json, safetensors, tokenizer.json
  --host ADDRESS        address to listen on (0.0.0.0)
  --port N              port; 0 takes a free one, which the first line names (8000)
  --model NAME          name in /v1/models (the folder's name)
  --thinking on|off     think before answering unless a request says otherwise (off)
  --answer-reserve N    tokens a thought leaves for the answer (512)
  --slots N             sequences that run at a time (16)
  --context N           tokens of a sequence at most (8192, or less if the model has less)
  --queue N             requests that may wait for a slot (256)
  --device cpu|cuda     where to compute (cpu)
  --selftest FILE       known answers to reproduce before serving
  --drain DURATION      time that requests have to finish after SIGTERM (30s)
  --remove-copy DIR     once listening, remove the folder in which this program lies alone
  --version             alone: say what this is, and that it can be executed
`

// minContext is the shortest context that holds a question and an answer.
const minContext = 16

// options are the command line.
type options struct {
	weights       string
	host          string
	port          int
	model         string
	thinking      bool
	answerReserve int
	slots         int
	context       int
	queue         int
	device        string
	selftest      string
	drain         time.Duration
	removeCopy    string
}

func parseOptions(args []string) (o options, help bool, err error) {
	set := flag.NewFlagSet("runtime", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	set.StringVar(&o.weights, "weights", "", "")
	set.StringVar(&o.host, "host", "0.0.0.0", "")
	set.IntVar(&o.port, "port", 8000, "")
	set.StringVar(&o.model, "model", "", "")
	thinking := set.String("thinking", "off", "")
	set.IntVar(&o.answerReserve, "answer-reserve", 512, "")
	set.IntVar(&o.slots, "slots", 16, "")
	set.IntVar(&o.context, "context", 8192, "")
	set.IntVar(&o.queue, "queue", 256, "")
	set.StringVar(&o.device, "device", "cpu", "")
	set.StringVar(&o.selftest, "selftest", "", "")
	set.DurationVar(&o.drain, "drain", 30*time.Second, "")
	set.StringVar(&o.removeCopy, "remove-copy", "", "")
	if err := set.Parse(args); err != nil {
		return o, errors.Is(err, flag.ErrHelp), err
	}
	o.thinking = *thinking == "on"
	switch {
	case set.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", set.Arg(0))
	case o.weights == "":
		err = errors.New("--weights is missing")
	case o.port < 0 || o.port > 65535:
		err = fmt.Errorf("--port has to be between 0 and 65535, not %d", o.port)
	case *thinking != "on" && *thinking != "off":
		err = fmt.Errorf("--thinking has to be on or off, not %q", *thinking)
	case o.answerReserve < 0:
		err = fmt.Errorf("--answer-reserve has to be at least 0, not %d", o.answerReserve)
	case o.slots < 1:
		err = fmt.Errorf("--slots has to be at least 1, not %d", o.slots)
	case o.context < minContext:
		err = fmt.Errorf("--context has to be at least %d, not %d", minContext, o.context)
	case o.queue < 1:
		err = fmt.Errorf("--queue has to be at least 1, not %d", o.queue)
	case o.device != "cpu" && o.device != "cuda":
		err = fmt.Errorf("--device has to be cpu or cuda, not %q", o.device)
	case o.drain < 0:
		err = fmt.Errorf("--drain has to be at least 0s, not %v", o.drain)
	}
	if o.model == "" {
		o.model = filepath.Base(filepath.Clean(o.weights))
	}
	return o, false, err
}
