package script

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"slipway/verify/script/python"
	"slipway/verify/script/shell"
)

// listener is a call of Python that listens: by keyword, by place, or with a pair
// of both as its first argument. Its defaults are "" where it has none.
type listener struct {
	calls      []string // whole names
	imports    string   // of a module that has to be imported, "" for any
	host, port int      // places of the arguments; -1: by keyword alone
	pair       bool
	defaults   address
}

// listeners are those of common libraries. Source: their documentation.
var listeners = []listener{
	{calls: []string{"uvicorn.run", "uvicorn.Config"}, host: -1, port: -1, defaults: address{"127.0.0.1", "8000"}},
	{calls: []string{"app.run"}, imports: "flask", host: 0, port: 1, defaults: address{"127.0.0.1", "5000"}},
	{calls: []string{"app.run"}, imports: "quart", host: 0, port: 1, defaults: address{"127.0.0.1", "5000"}},
	{calls: []string{"app.run"}, imports: "sanic", host: 0, port: 1, defaults: address{"127.0.0.1", "8000"}},
	{calls: []string{"run", "bottle.run"}, imports: "bottle", host: -1, port: -1, defaults: address{"127.0.0.1", "8080"}},
	{calls: []string{"web.run_app"}, host: -1, port: -1, defaults: address{"0.0.0.0", "8080"}},
	{calls: []string{"waitress.serve", "serve"}, imports: "waitress", host: -1, port: -1, defaults: address{"0.0.0.0", "8080"}},
	{calls: []string{"make_server", "simple_server.make_server"}, host: 0, port: 1},
	{calls: []string{"asyncio.start_server"}, host: 1, port: 2},
	{calls: []string{"HTTPServer", "ThreadingHTTPServer", "http.server.HTTPServer", "http.server.ThreadingHTTPServer",
		"TCPServer", "ThreadingTCPServer", "socketserver.TCPServer", "socketserver.ThreadingTCPServer"}, pair: true},
}

// checkListening looks at where the served code itself says that it listens.
func (a *analysis) checkListening() {
	for _, m := range a.modules {
		for i := range m.parsed.Calls {
			c := &m.parsed.Calls[i]
			l := slices.IndexFunc(listeners, func(l listener) bool { return l.is(m, c) })
			if !m.main || l < 0 && !takesPair(c) {
				continue
			}
			how := listener{pair: true} // of a class of its own
			if l >= 0 {
				how = listeners[l]
			}
			at, known := a.listens(m, c, how)
			a.judgeAddress(shell.Finding{Check: "C21", Warning: true, Path: m.path, Line: c.Line}, at,
				address{known.host + at.host, known.port + at.port}, address{`say host="0.0.0.0"`, fmt.Sprintf("say port=%d", a.options.Port)})
		}
	}
}

// takesPair reports whether a call's first argument is a pair of what is called
// host and port.
func takesPair(c *python.Call) bool {
	return len(c.Arguments) > 0 && pairOfAddress.MatchString(c.Arguments[0].Text)
}

var pairOfAddress = regexp.MustCompile(`(?i)^\([\w.]*host, *[\w.]*port\)$`)

func (l listener) is(m module, c *python.Call) bool {
	return slices.Contains(l.calls, c.Name) && (l.imports == "" || slices.ContainsFunc(m.parsed.Imports, func(i python.Import) bool { return i.Module == l.imports }))
}

// listens returns what a call says of its address, and from where that is known.
func (a *analysis) listens(m module, c *python.Call, l listener) (at, known address) {
	texts := map[string]string{}
	for i, argument := range c.Arguments {
		switch {
		case argument.Keyword == "**" || argument.Keyword == "*" || slices.Contains([]string{"fd", "uds", "sock", "path", "unix_socket", "config"}, argument.Keyword):
			return at, known
		case argument.Keyword == "host" || argument.Keyword == "port":
			texts[argument.Keyword] = argument.Text
		case argument.Keyword != "":
		case l.pair && i == 0:
			host, port, _ := strings.Cut(strings.Trim(argument.Text, "() \n"), ",")
			texts["host"], texts["port"] = host, port
		case !l.pair && i == l.host:
			texts["host"] = argument.Text
		case !l.pair && i == l.port:
			texts["port"] = argument.Text
		}
	}
	for _, part := range []struct {
		name, standard string
		value, from    *string
	}{{"host", l.defaults.host, &at.host, &known.host}, {"port", l.defaults.port, &at.port, &known.port}} {
		text, given := texts[part.name]
		if *part.value = a.expressed(m, text); !given && part.standard != "" {
			*part.value, *part.from = part.standard, "none, which is "
		}
	}
	return at, known
}

var (
	ofEnvironment = regexp.MustCompile(`^(?:os\.)?(?:environ\.get|getenv)\(\s*["'](\w+)["']\s*,\s*["']?([\w.:]*)["']?\s*\)$`)
	ofArguments   = regexp.MustCompile(`^[a-z_]+\.([a-z_]+)$`)
	quotedText    = regexp.MustCompile(`^["']([^"'\\]*)["']$`)
)

// expressed is the value of an expression as far as the source, the server's
// variables and its command line say it; "" where they do not. An option of the
// command line is looked at elsewhere.
func (a *analysis) expressed(m module, text string) string {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "int("); ok {
		text = strings.TrimSpace(strings.TrimSuffix(inner, ")"))
		if strings.Count(text, "(") > strings.Count(text, ")") {
			text += ")"
		}
	}
	if match := quotedText.FindStringSubmatch(text); match != nil {
		return match[1]
	}
	if match := ofEnvironment.FindStringSubmatch(text); match != nil {
		if value := a.server.Variables[match[1]]; value != "" {
			return value
		}
		return match[2]
	}
	if value, ok := m.parsed.Constants[text]; ok {
		return value
	}
	if match := ofArguments.FindStringSubmatch(text); match != nil {
		name := "--" + strings.ReplaceAll(match[1], "_", "-")
		for _, o := range m.parsed.Options {
			if slices.Contains(o.Names, name) && o.Default != "" && !slices.ContainsFunc(a.server.Argv, func(w string) bool {
				option, _, _ := strings.Cut(w, "=")
				return slices.Contains(o.Names, option) || len(option) > 2 && strings.HasPrefix(name, option)
			}) {
				return a.expressed(m, o.Default)
			}
		}
	}
	if isNumber(text) {
		return text
	}
	return ""
}
