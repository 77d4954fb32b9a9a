package python

import "strings"

// Writes returns the path that a call creates or writes to, where it is a plain
// string: that of open(PATH, "w"), os.makedirs(PATH) and log files. "" of others.
func (c *Call) Writes() string {
	name, at := lastPart(c.Name), ""
	switch {
	case c.Name == "open" || c.Name == "io.open" || c.Name == "codecs.open" || c.Name == "gzip.open":
		mode, named := c.Keyword("mode")
		if !named && len(c.Arguments) > 1 && c.Arguments[1].Keyword == "" {
			mode = c.Arguments[1]
		}
		if mode.Literal == nil || !strings.ContainsAny(*mode.Literal, "wax+") {
			return ""
		}
		at = "file"
	case c.Name == "os.makedirs" || c.Name == "os.mkdir" || c.Name == "makedirs":
		at = "name"
	case name == "FileHandler" || name == "RotatingFileHandler" || name == "TimedRotatingFileHandler":
		at = "filename"
	case c.Name == "logging.basicConfig":
		if file, ok := c.Keyword("filename"); ok && file.Literal != nil {
			return *file.Literal
		}
		return ""
	default:
		return ""
	}
	argument, ok := c.Keyword(at)
	if !ok && len(c.Arguments) > 0 && c.Arguments[0].Keyword == "" {
		argument = c.Arguments[0]
	}
	if argument.Literal == nil {
		return ""
	}
	return *argument.Literal
}

// WritesBeside reports whether a call writes to a path that is made from the
// module's own, as open(os.path.join(os.path.dirname(__file__), "log"), "w").
func (c *Call) WritesBeside() bool {
	if len(c.Arguments) == 0 || !strings.Contains(c.Arguments[0].Text, "__file__") {
		return false
	}
	text, like := "x", *c
	like.Arguments = append([]Argument{{Keyword: c.Arguments[0].Keyword, Literal: &text}}, c.Arguments[1:]...)
	return like.Writes() != ""
}
