package bundle

import (
	_ "embed"
	"fmt"
	"strings"

	"slipway/bundle/config"
)

// servePath is the entry point of every submission.
const servePath = "serve.sh"

//go:embed serve.sh
var serveTemplate string

// serveScript writes serve.sh: a constant script, and the settings of the serve
// and runtime blocks as the server's arguments. With a selftest the server has to
// reproduce it.
func serveScript(runtime config.Runtime, serve config.Serve, name string, selftest bool) []byte {
	model := serve.Model.Value
	if model == "" {
		model = name
	}
	settings := []string{"--device", shellWord(runtime.Device.Value)}
	if len(runtime.Devices.Value) > 0 {
		var indexes []string
		for _, index := range runtime.Devices.Value {
			indexes = append(indexes, fmt.Sprint(index))
		}
		settings = append(settings, "--devices", shellWord(strings.Join(indexes, ",")))
	}
	if selftest {
		settings = append(settings, "--selftest", `"$here/`+selftestPath+`"`)
	}
	settings = append(settings,
		"--port", fmt.Sprint(serve.Port.Value),
		"--model", shellWord(model),
		"--thinking", shellWord(serve.Thinking.Value),
		"--answer-reserve", fmt.Sprint(serve.AnswerReserve.Value),
		`"$@"`)
	return []byte(strings.Replace(serveTemplate, "@SETTINGS@", strings.Join(settings, " "), 1))
}

// shellWord quotes text as one word of a POSIX shell.
func shellWord(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-/,", r)
	}
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !plain(r) }) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
