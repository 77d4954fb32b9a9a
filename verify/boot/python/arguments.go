package python

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Arguments is what became of a command line.
type Arguments struct {
	Refused string // why the program does not take it; "" where it does, or does not say
	Help    string // why --help fails; "" where it does not
	Alone   string // why nothing is known; "" where it is
}

// argumentsTime is what a program has to read its command line in, with all that
// it imports before.
const argumentsTime = 20 * time.Second

// TryArguments runs a program until it has read its command line by argparse. One
// that does something else first, or reads it in another way, is left alone.
func (p *Program) TryArguments(ctx context.Context, place Place) Arguments {
	said, output, ended := p.run(ctx, place, p.GPU, argumentsTime, argumentsProgram, p.Args...)
	switch {
	case len(said) > 0:
	case errors.Is(ended, ErrLate):
		return Arguments{Alone: "it did not read them within " + argumentsTime.String()}
	default:
		return Arguments{Alone: "it ended before it had read any: " + endOf(output, ended)}
	}
	var first struct{ What, Text string }
	if err := json.Unmarshal(said[0], &first); err != nil {
		return Arguments{Alone: err.Error()}
	}
	switch first.What {
	case "parsed":
		return Arguments{Help: first.Text}
	case "refused":
		return Arguments{Refused: first.Text}
	case "stopped":
		return Arguments{Alone: "before it reads any it " + first.Text}
	}
	return Arguments{Alone: "it ended before it had read any by argparse: " + first.Text}
}
