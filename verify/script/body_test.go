package script

import (
	"strings"
	"testing"

	"slipway/verify/script/shell"
)

func TestBodyLimits(t *testing.T) {
	const body = 5 << 20
	for source, limit := range map[string]string{ // "": no finding
		"from aiohttp import web\napp = web.Application()\n":                                           "1048576",
		"from aiohttp import web\ndef main():\n    web.run_app(web.Application(middlewares=[]))\n":     "1048576",
		"import aiohttp.web\napp = aiohttp.web.Application(client_max_size=1024**2 * 2)\n":             "2097152",
		"from aiohttp.web import Application, run_app\napp = Application(client_max_size=5_000_000)\n": "5000000",
		"from aiohttp import web\napp = web.Application(client_max_size=5 * 1024 * 1024)\n":            "",
		"from aiohttp import web\napp = web.Application(client_max_size=1024**3 * 64)\n":               "",
		"from aiohttp import web\napp = web.Application(client_max_size=0)\n":                          "",
		"from aiohttp import web\napp = web.Application(client_max_size=LIMIT)\n":                      "",
		"from aiohttp import web\napp = web.Application(client_max_size=-1)\n":                         "",
		"from aiohttp import web\napp = web.Application(**settings)\n":                                 "",
		"from tornado import web\nimport aiohttp\napp = web.Application([])\n":                         "",
		"import aiohttp\nclass Application: pass\napp = Application()\n":                               "",
		"from aiohttp import web\n# web.Application()\ntext = 'web.Application()'\n":                   "",
	} {
		folder := goodFolder().with("server.py", source+serverSource).with("wheels/aiohttp-3.12-cp312-cp312-manylinux_2_17_x86_64.whl", "size 1000")
		for need, want := range map[int]string{body: limit, 1 << 20: "", 0: ""} {
			o := graderOptions()
			o.BodyBytes = need
			var found []shell.Finding
			for _, f := range Analyse(folder.submission(), o).Findings {
				if f.Check == "C32" && strings.Contains(f.Problem, "bodies") {
					found = append(found, f)
				}
			}
			if (len(found) == 1) != (want != "") || want != "" && (found[0].Got != want || !found[0].Warning || found[0].Path != "server.py") {
				t.Errorf("%d bytes, %q: %+v, want %q", need, source, found, want)
			}
		}
	}
}

// What is not started answers nothing.
func TestBodyLimitOfOtherModules(t *testing.T) {
	o := graderOptions()
	o.BodyBytes = 5 << 20
	folder := goodFolder().with("code/other.py", "from aiohttp import web\napp = web.Application()\n")
	if text := listed(Analyse(folder.submission(), o)); strings.Contains(text, "bodies") {
		t.Error(text)
	}
}
