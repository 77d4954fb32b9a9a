package local

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"slipway/manifest"
	"slipway/verify/boot/ask"
)

// A serve.sh that listens where it wants to is found, also by way of a process
// that left its group.
func TestServerThatIgnoresItsPort(t *testing.T) {
	for name, script := range map[string]string{
		"itself":   "LOCAL_TEST_HEALTH=200 exec SELF --port PORT",
		"a daemon": "LOCAL_TEST_HEALTH=200 setsid SELF --port PORT &\nsleep 600",
	} {
		t.Run(name, func(t *testing.T) {
			port, err := FreePort()
			if err != nil {
				t.Fatal(err)
			}
			options := submission(t, strings.NewReplacer("SELF", "'"+self(t)+"'", "PORT", fmt.Sprint(port)).Replace(script))
			s, err := Start(options)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Stop()
			asked := s.URL
			if _, err := s.WaitHealthy(t.Context(), patience); err != nil {
				t.Fatal(err)
			}
			if s.URL == asked || s.URL != localURL(port) {
				t.Errorf("asked at %s, then at %s, not at port %d", asked, s.URL, port)
			}
			if _, err := ask.GetHealth(t.Context(), ask.Direct, s.URL); err != nil {
				t.Error(err)
			}
			s.Stop()
			if left := Strays(options.TempDir, 0); len(left) > 0 {
				t.Errorf("processes %v outlive the server", left)
			}
		})
	}
}

// One that answers nowhere is given up with what was asked and where it listens.
func TestServerThatAnswersNowhere(t *testing.T) {
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, fmt.Sprintf("LOCAL_TEST_HEALTH=503 exec '%s' --port %d", self(t), port))
	listens := fmt.Sprintf("it listens on port %d", port)
	limit := 100 * time.Millisecond
	for began := time.Now(); time.Since(began) < patience; {
		if _, err = s.WaitHealthy(t.Context(), limit); err == nil || strings.Contains(err.Error(), listens) {
			break
		}
	}
	for _, want := range []string{"GET " + s.URL + "/health did not answer 200 within 100ms", "connection refused", listens} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// A port that somebody else has would be asked in the submission's place.
func TestTakenPort(t *testing.T) {
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	options := submission(t, "SERVER")
	options.Port = listener.Addr().(*net.TCPAddr).Port
	s, err := Start(options)
	if err == nil {
		s.Stop()
	}
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("port %d is taken", options.Port)) || manifest.Hint(err) == "" {
		t.Errorf("error %v", err)
	}
}

func TestListeningText(t *testing.T) {
	for _, test := range []struct {
		ports []int
		want  string
	}{{nil, ""}, {[]int{}, "; it listens nowhere"}, {[]int{8000}, "; it listens on port 8000"}, {[]int{80, 8000}, "; it listens on port 80, 8000"}} {
		if got := listeningText(test.ports); got != test.want {
			t.Errorf("%v: %q, want %q", test.ports, got, test.want)
		}
	}
}
