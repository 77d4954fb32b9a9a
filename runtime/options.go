package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
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
  --device cpu|cuda     where to compute (cpu); cuda never falls back to the CPU
  --devices N,N...      with cuda: the devices, one copy of the model each (0)
  --selftest FILE       known answers to reproduce before serving
  --write-selftest FILE write known answers, computed on the CPU, and end
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
	devices       []int // indexes; one, of no meaning, with the CPU
	selftest      string
	writeSelftest string
	drain         time.Duration
	removeCopy    string

	// How a process that lost its device starts the one that replaces it.
	restarted        bool // a second loss ends the program
	listenDescriptor int  // of the listening socket; below 0: host and port are opened
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
	devices := set.String("devices", "", "")
	set.StringVar(&o.selftest, "selftest", "", "")
	set.StringVar(&o.writeSelftest, "write-selftest", "", "")
	set.DurationVar(&o.drain, "drain", 30*time.Second, "")
	set.StringVar(&o.removeCopy, "remove-copy", "", "")
	set.BoolVar(&o.restarted, "restarted", false, "")
	set.IntVar(&o.listenDescriptor, "listen-descriptor", -1, "")
	if err := set.Parse(args); err != nil {
		return o, errors.Is(err, flag.ErrHelp), err
	}
	o.thinking = *thinking == "on"
	o.devices, err = parseDevices(*devices)
	switch {
	case err != nil:
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
	case *devices != "" && o.device != "cuda":
		err = errors.New("--devices needs --device cuda")
	case o.writeSelftest != "" && o.device != "cpu":
		err = errWritesOnCPU
	case o.drain < 0:
		err = fmt.Errorf("--drain has to be at least 0s, not %v", o.drain)
	}
	if o.model == "" {
		o.model = filepath.Base(filepath.Clean(o.weights))
	}
	return o, false, err
}

// parseDevices reads indexes that commas part; none mean the first device.
func parseDevices(list string) ([]int, error) {
	if list == "" {
		return []int{0}, nil
	}
	var devices []int
	for word := range strings.SplitSeq(list, ",") {
		index, err := strconv.Atoi(word)
		if err != nil || index < 0 {
			return nil, fmt.Errorf("--devices has to be indexes parted by commas, such as 0 or 0,1, not %q", list)
		}
		devices = append(devices, index)
	}
	return devices, nil
}
