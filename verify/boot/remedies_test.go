package boot

import (
	"errors"
	"strings"
	"testing"

	"slipway/verify/boot/ask"
)

func TestRequestRemedy(t *testing.T) {
	other := errors.New("something")
	for name, test := range map[string]struct {
		status  int
		failed  error
		thought bool
		want    string
	}{
		"closed":   {0, errors.New("the connection was closed without a reply"), false, "whose engine died"},
		"late":     {0, ask.LateError{}, false, "answer one request alone in time"},
		"thought":  {200, other, true, "turn thinking off"},
		"form":     {200, other, false, "an OpenAI chat completion"},
		"moved":    {307, other, false, "follow no redirect"},
		"refused":  {400, other, false, "its reply says which part is refused"},
		"key":      {401, other, false, "ask for no key"},
		"path":     {404, other, false, "profile, as in --profile drafter"},
		"method":   {405, other, false, "another method"},
		"too big":  {413, other, false, "size of a body"},
		"entity":   {422, other, false, "its reply says which part is refused"},
		"too many": {429, other, false, "wait for no quota"},
		"inside":   {500, other, false, "send one request of each kind"},
		"loading":  {503, other, false, "only when a request would be answered"},
	} {
		if got := requestRemedy(ask.ChatPath, ask.Exchange{Status: test.status}, test.failed, test.thought); !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestException(t *testing.T) {
	for log, want := range map[string]string{
		"":            "",
		"loading\nok": "",
		"Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    x()\nKeyError: 'x'\nINFO: 500":                                     "KeyError: 'x'",
		"Traceback (most recent call last):\n  File \"a.py\"\nKeyError: 'x'\nTraceback (most recent call last):\n  File \"b.py\"\n    y\n\nmod.Error: no": "mod.Error: no",
		"(EngineCore pid=7) Traceback (most recent call last):\n(EngineCore pid=7)   File \"a.py\"\n(EngineCore pid=7) ValueError: bad":                   "ValueError: bad",
		"Traceback (most recent call last):\n  File \"a.py\"":                                                                                             "",
	} {
		if got := exception(log); got != want {
			t.Errorf("%q: %q, want %q", log, got, want)
		}
	}
}
