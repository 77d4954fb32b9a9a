package words

import (
	"testing"
)

func TestSeconds(t *testing.T) {
	for s, want := range map[float64]string{0: "0.000 s", 0.0213: "0.021 s", 1.5: "1.50 s", 12.34: "12.3 s", 4120.4: "4,120 s"} {
		if got := Seconds(s); got != want {
			t.Errorf("%v is %q, want %q", s, got, want)
		}
	}
}

func TestGroupedNumbers(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", -100: "-100"} {
		if got := Grouped(n); got != want {
			t.Errorf("grouped(%d) = %q, want %q", n, got, want)
		}
	}
	if Plural(1, "tensor") != "1 tensor" || Are(2, "tensor of the model") != "2 tensors of the model are" {
		t.Error("plurals")
	}
}
