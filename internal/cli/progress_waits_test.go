package cli

import (
	"bytes"
	"testing"
	"time"
)

func TestWaits(t *testing.T) {
	var out bytes.Buffer
	clock := time.Unix(1e9, 0)
	for _, test := range []struct {
		name string
		w    *waits
		want string
	}{
		{"pipe", &waits{interval: plainInterval}, "30 s\n60 s\n35 s\n"},
		{"terminal", &waits{interval: lineInterval, inPlace: true}, "\r\x1b[K1 s\r\x1b[K29 s\r\x1b[K30 s\r\x1b[K59 s\r\x1b[K60 s\r\x1b[K\r\x1b[K34 s\r\x1b[K35 s\r\x1b[K"},
		{"none", nil, ""},
	} {
		out.Reset()
		if test.w != nil {
			test.w.out, test.w.now = &out, func() time.Time { return clock }
		}
		told := func(seconds ...int) {
			begin := clock
			for _, s := range seconds {
				clock = begin.Add(time.Duration(s) * time.Second)
				test.w.tell("%d s", s)
			}
			test.w.end()
		}
		told(0, 1, 29, 30, 59, 60)
		told(5, 34, 35)
		test.w.end()
		if out.String() != test.want {
			t.Errorf("%s: %q, want %q", test.name, &out, test.want)
		}
	}
}

func TestWaitsKeepToALine(t *testing.T) {
	var out bytes.Buffer
	clock := time.Unix(1e9, 0)
	w := &waits{out: &out, inPlace: true, interval: lineInterval, now: func() time.Time { clock = clock.Add(time.Second); return clock }}
	for range 2 {
		w.tell("%100s\x1b[31m", "x")
	}
	if got := out.String(); len(got) != len("\r\x1b[K")+lineColumns || !bytes.HasSuffix(out.Bytes(), []byte("...")) {
		t.Errorf("%q", got)
	}
}
