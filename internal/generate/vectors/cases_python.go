package main

import (
	"fmt"
	"strings"
)

const codePath = "code/weights.py"

// ordinary is code as submissions have it: a table that an algorithm needs, a
// picture for a page.
var ordinary = "TABLE = [" + numbers(256) + "]\nICON = \"" + encoded(4<<10) + "\"\n"

// pythons are weights that code writes out, to be made into tensors at the start.
func pythons() []vector {
	in := func(fault, gate, says, text string) vector {
		return vector{
			id: "A60", fault: fault, gate: gate, asks: "lookup", names: codePath, says: says, twinText: "code with a table of 256 numbers and a picture of three kilobytes",
			alter: func(s *submission) { s.texts[codePath] = text },
			twin:  func(s *submission) { s.texts[codePath] = ordinary },
		}
	}
	inSeveral := in("weights in base64 in three Python files", "lookup", "of data are written out in code", "W = \""+encoded(400<<10)+"\"\n")
	first := inSeveral.alter
	inSeveral.alter = func(s *submission) {
		first(s)
		for _, p := range []string{"code/w1.py", "code/w2.py"} {
			s.texts[p] = "W = (\n\"" + strings.Join(lines(encoded(390<<10), 76), "\"\n\"") + "\")\n"
		}
	}
	return []vector{
		in("weights as numbers in Python", "lookup", "writes out 5,000 numbers", "W = ["+numbers(5000)+"]\n"),
		in("weights in base64 in Python", "files", "as dense as encoded weights", "W = \""+encoded(1<<20)+"\"\n"),
		in("weights as bytes in Python", "lookup", "of data are written out in code", "W = b\""+strings.Repeat(`\x80\x91\x07a`, 270<<10)+"\"\n"),
		inSeveral,
	}
}

// numbers are so many of them, as they stand in a list.
func numbers(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "0.%02d, ", i%100)
	}
	return out.String()
}

// encoded is at least so many characters of base64, of every one as many.
func encoded(n int) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	return strings.Repeat(alphabet, n/len(alphabet)+1)
}

// lines cuts a text into lines of so many characters.
func lines(text string, length int) (out []string) {
	for len(text) > length {
		out, text = append(out, text[:length]), text[length:]
	}
	return append(out, text)
}
