package script

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"slipway/verify/script/python"
	"slipway/verify/script/shell"
)

// aiohttpBody is how many bytes of a request's body aiohttp reads where its
// Application is not told: client_max_size, in aiohttp/web_app.py.
const aiohttpBody = 1 << 20

// checkBodies looks for an aiohttp server whose limit on the size of a body is
// below what the task sends. A handler that reads the body by pieces has none,
// which is why this only warns.
func (a *analysis) checkBodies() {
	need := a.options.BodyBytes
	if need <= aiohttpBody {
		return
	}
	for _, m := range a.modules {
		for i := range m.parsed.Calls {
			c := &m.parsed.Calls[i]
			if !m.main || !isAiohttpApplication(m.parsed, c.Name) {
				continue
			}
			limit, known := bodyLimit(c)
			if !known || limit == 0 || limit >= need {
				continue
			}
			a.add(shell.Finding{Check: "C32", Warning: true, Path: m.path, Line: c.Line,
				Problem: fmt.Sprintf("%s takes bodies of up to %d bytes, and the task sends larger ones: they are answered 413", c.Name, limit),
				Want:    fmt.Sprintf("at least %d bytes", need), Got: fmt.Sprintf("%d", limit), Hint: "write web.Application(client_max_size=64 * 1024**2)"})
		}
	}
}

// isAiohttpApplication reports whether a call makes aiohttp's Application, by
// what the module imports.
func isAiohttpApplication(m python.Module, call string) bool {
	return slices.ContainsFunc(m.Imports, func(i python.Import) bool {
		switch call {
		case "web.Application":
			return i.Module == "aiohttp" && slices.Contains(i.Names, "web")
		case "Application":
			return i.Module == "aiohttp.web" && (slices.Contains(i.Names, "Application") || slices.Contains(i.Names, "*"))
		case "aiohttp.web.Application":
			return i.Module == "aiohttp" || i.Module == "aiohttp.web"
		}
		return false
	})
}

// bodyLimit is the client_max_size of an Application, where it is a number or a
// product of numbers; 0 is no limit.
func bodyLimit(c *python.Call) (limit int, known bool) {
	for _, argument := range c.Arguments {
		switch argument.Keyword {
		case "client_max_size":
			return product(argument.Text)
		case "**":
			return 0, false
		}
	}
	return aiohttpBody, true
}

// product is the value of a Python expression of whole numbers, * and **.
func product(text string) (value int, ok bool) {
	value = 1
	for factor := range strings.SplitSeq(strings.ReplaceAll(text, "**", "^"), "*") {
		base, exponent, powered := strings.Cut(factor, "^")
		n, err := strconv.ParseUint(strings.ReplaceAll(strings.TrimSpace(base), "_", ""), 10, 31)
		times := uint64(1)
		if err == nil && powered {
			times, err = strconv.ParseUint(strings.TrimSpace(exponent), 10, 5)
		}
		if err != nil {
			return 0, false
		}
		for range times {
			if value *= int(n); value > 1<<31 {
				return 0, false // larger than any body
			}
		}
	}
	return value, true
}
