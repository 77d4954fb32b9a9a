package manifest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestContractRanges(t *testing.T) {
	decode := func(tensors string) (Contract, error) {
		return DecodeContract([]byte(`{"schema":1,"repository":"a/b","revision":"0","tied_head":false,"tensors":{` + tensors + `}}`))
	}
	tensor := func(name string) string {
		return fmt.Sprintf(`%q:{"dtype":"BF16","shape":[2,3],"role":"backbone"}`, name)
	}
	c, err := decode(tensor("l.{0..1}.e.{9..11}.w") + "," + tensor("norm"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"l.0.e.10.w", "l.0.e.11.w", "l.0.e.9.w", "l.1.e.10.w", "l.1.e.11.w", "l.1.e.9.w", "norm"}
	if got := c.Names(); !slices.Equal(got, want) {
		t.Errorf("names %v, want %v", got, want)
	}
	for _, tc := range []struct{ tensors, fault string }{
		{tensor("l.{0..1}.w") + "," + tensor("l.1.w"), `"l.1.w" is listed twice`},
		{tensor("l.{3..1}.w"), "ends before it begins"},
		{tensor("l.{0..999999}.{0..999999}.w"), "more than 262144 tensors"},
		{tensor("l.{0..199999}.w") + "," + tensor("m.{0..199999}.w"), "more than 262144 tensors"},
		{strings.TrimSuffix(tensor("l.{0..1}.w"), "}") + `,"sha256":"` + strings.Repeat("0", 64) + `"}`, "a digest cannot stand"},
	} {
		if _, err := decode(tc.tensors); err == nil || !strings.Contains(err.Error(), tc.fault) {
			t.Errorf("%.60s: error %v, want %q", tc.tensors, err, tc.fault)
		}
	}
}
