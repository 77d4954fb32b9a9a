package wheel

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// recordSuffix ends the path of the one list of a wheel's files.
const recordSuffix = ".dist-info/RECORD"

// isRecord reports whether a path is that of a RECORD: NAME.dist-info/RECORD.
func isRecord(p string) bool {
	return strings.HasSuffix(p, recordSuffix) && strings.Count(p, "/") == 1
}

// row is a line of RECORD: a digest in URL-safe base64 without padding, and a
// size in bytes (PyPA, "Recording installed projects").
type row struct{ digest, size string }

// holdAgainstRecord compares the members with RECORD, both ways.
func (w *walk) holdAgainstRecord() {
	switch len(w.records) {
	case 0:
		w.fault(Wrong, "", "has no RECORD, and so is no wheel", "NAME-VERSION"+recordSuffix, "")
		return
	case 1:
	default:
		w.fault(Wrong, slices.Sorted(maps.Keys(w.records))[1], "is a second RECORD", "", "")
		return
	}
	for record, content := range w.records {
		rows, err := readRecord(content)
		if err != nil {
			w.fault(Wrong, record, err.Error(), "", "")
			return
		}
		for _, m := range w.members {
			w.holdAgainstRow(m, record, rows)
		}
		for _, name := range slices.Sorted(maps.Keys(rows)) {
			if w.byPath[name] == nil {
				w.fault(Wrong, name, "is in RECORD and not in the wheel", "", "")
			}
		}
	}
}

func (w *walk) holdAgainstRow(m *member, record string, rows map[string]row) {
	if m.path == record || m.path == record+".jws" || m.path == record+".p7s" {
		return // RECORD cannot hold its own digest, nor those of its signatures
	}
	line, listed := rows[m.path]
	if !listed {
		w.fault(Wrong, m.path, "is not in RECORD: it was added after the wheel was built", "", "")
		return
	}
	if line.size != "" && line.size != strconv.FormatInt(m.size, 10) {
		w.fault(Wrong, m.path, "has another size than RECORD says", clip(line.size), strconv.FormatInt(m.size, 10))
	}
	algorithm, digest, _ := strings.Cut(line.digest, "=")
	switch sum, err := base64.RawURLEncoding.DecodeString(digest); {
	case line.digest == "":
		w.fault(Wrong, m.path, "has no digest in RECORD", "sha256=...", "")
	case algorithm != "sha256" || err != nil || len(sum) != 32:
		w.fault(Wrong, m.path, "has a digest in RECORD that is no sha256", "sha256=, and 43 digits of base64", clip(line.digest))
	case hex.EncodeToString(sum) != m.digest.Hex():
		w.fault(Wrong, m.path, "has other bytes than RECORD says", hex.EncodeToString(sum), m.digest.Hex())
	}
}

// readRecord reads the rows of a RECORD by path.
func readRecord(content []byte) (map[string]row, error) {
	rows := map[string]row{}
	reader := csv.NewReader(bytes.NewReader(content))
	reader.FieldsPerRecord = 3
	reader.ReuseRecord = true
	for {
		fields, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, fmt.Errorf("is not a table of path, digest and size: %w", err)
		}
		if len(rows) >= maxMembers {
			return nil, fmt.Errorf("has more than %d rows", maxMembers)
		}
		name := strings.Clone(fields[0])
		if _, twice := rows[name]; twice {
			return nil, fmt.Errorf("lists %s twice", clip(name))
		}
		rows[name] = row{strings.Clone(fields[1]), strings.Clone(fields[2])}
	}
}
