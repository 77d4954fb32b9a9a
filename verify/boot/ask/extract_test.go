package ask

import "testing"

func TestExtract(t *testing.T) {
	for _, tc := range []struct {
		reply, expected string
		right, parsed   bool
	}{
		{"amber", "amber", true, true},
		{" amber\n", "amber", true, true},
		{"amber.", "amber", true, true},
		{"**amber**", "amber", true, true},
		{"The answer is amber.", "amber", true, true},
		{"The answer is not known to me at all, sorry.", "amber", false, false},
		{`It follows that \boxed{amber}.`, "amber", true, true},
		{"copper", "amber", false, true},
		{"", "amber", false, false},
		{"B", "B", true, true},
		{"(b)", "B", true, true},
		{"Answer: **B**", "B", true, true},
		{"The answer is (B) because the force is larger.", "B", true, true},
		{"The correct answer is C.", "B", false, true},
		{"A force acts on the body, so that of the given options (D) must hold here.", "D", true, true},
		{"It could be (C), or it could be (D), and I cannot say which it is.", "D", false, false},
		{"42", "42", true, true},
		{"1,042", "1042", true, true},
		{"We add the two and carry one, which gives us 42.", "42", true, true},
		{"We add 40 and 2 and carry nothing, which gives\n\n\\boxed{42}", "42", true, true},
		{"41 42", "42", false, true}, // a list of one is still a list
		{"30 83 95", "30 83 95", true, true},
		{"30 83", "30 83 95", false, true},
		{`so \boxed{\frac{1}{2}}`, `\frac{1}{2}`, true, true},
		{"Answer: 3.5", "3.5", true, true},
	} {
		answer, parsed := Extract(tc.reply, tc.expected)
		right := Answer{Question: Question{Answer: tc.expected}, Content: tc.reply}.Right()
		if right != tc.right || parsed != tc.parsed {
			t.Errorf("%q for %q: %q, right %v, parsed %v", tc.reply, tc.expected, answer, right, parsed)
		}
	}
}

func FuzzExtract(f *testing.F) {
	f.Add("The answer is **B**.", "B")
	f.Add(`\boxed{{}`, "3 4")
	f.Fuzz(func(t *testing.T, reply, expected string) {
		answer, ok := Extract(reply, expected)
		if ok && form(answer) != form(expected) && !Parses(answer, expected) {
			t.Errorf("%q has not the form of %q", answer, expected)
		}
	})
}
