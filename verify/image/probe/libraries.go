package probe

import (
	"os"
	"path/filepath"
	"regexp"
)

// release matches what every glibc says of itself in its own text.
var release = regexp.MustCompile(`GNU C Library [^\n\x00]{0,200}?release version (\d+\.\d+)`)

// glibc reads the version of the C library out of its file.
func (p *prober) glibc() {
	for _, pattern := range []string{"lib/*-linux-gnu*/libc.so.6", "lib64/libc.so.6", "usr/lib64/libc.so.6", "usr/lib/*-linux-gnu*/libc.so.6", "usr/lib/libc.so.6", "lib/libc.so.6"} {
		files, _ := filepath.Glob(filepath.Join(p.root, pattern)) // the patterns are well formed
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				continue
			}
			if m := release.FindSubmatch(data); m != nil {
				p.image.Glibc = string(m[1])
				return
			}
		}
	}
	p.unknown = append(p.unknown, "glibc: there is no libc.so.6 that says its version")
}
