package texts

import (
	"testing"
)

func FuzzTables(f *testing.F) {
	f.Add([]byte(`[{"question":"a","answer":[1,2,3,4,5,6,7,8]},{"a b":"c"}]`))
	f.Add([]byte(`}{]["a":`))
	f.Add([]byte("question,answer\n1,\"2\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, counted := range map[string]tables{"JSON": tablesOfJSON(data), "lines": tablesOfLines(data), "CSV": tablesOfCSV(File{"a.csv", data}), "text": tablesOfText(data)} {
			if n := counted.records + counted.pairs + counted.numbers + counted.sequences; n > len(data) {
				t.Errorf("%s: %d entries in %d bytes", name, n, len(data))
			}
		}
	})
}
