package broken

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// packWheels puts the files below a folder X.whl into a wheel of that name, a pure
// one of the binary distribution format.
func packWheels(files map[string]file) error {
	wheels := map[string]map[string][]byte{}
	for _, p := range slices.Sorted(maps.Keys(files)) {
		name, member, ok := strings.Cut(p, ".whl/")
		if !ok {
			continue
		}
		name += ".whl"
		if wheels[name] == nil {
			wheels[name] = map[string][]byte{}
		}
		wheels[name][member] = files[p].data
		delete(files, p)
	}
	for name, members := range wheels {
		data, err := packWheel(name, members)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		files[name] = file{data: data}
	}
	return nil
}

// packWheel packs members and what describes them.
func packWheel(name string, members map[string][]byte) ([]byte, error) {
	parts := strings.Split(strings.TrimSuffix(path.Base(name), ".whl"), "-") // NAME-VERSION-PYTHON-ABI-PLATFORM
	if len(parts) != 5 {
		return nil, errors.New("is no wheel's name")
	}
	information := parts[0] + "-" + parts[1] + ".dist-info/"
	members[information+"METADATA"] = fmt.Appendf(nil, "Metadata-Version: 2.1\nName: %s\nVersion: %s\n", parts[0], parts[1])
	members[information+"WHEEL"] = fmt.Appendf(nil, "Wheel-Version: 1.0\nGenerator: broken\nRoot-Is-Purelib: true\nTag: %s\n", strings.Join(parts[2:], "-"))
	var record bytes.Buffer
	names := slices.Sorted(maps.Keys(members))
	for _, member := range names {
		sum := sha256.Sum256(members[member])
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", member, base64.RawURLEncoding.EncodeToString(sum[:]), len(members[member]))
	}
	fmt.Fprintf(&record, "%sRECORD,,\n", information)
	members[information+"RECORD"] = record.Bytes()
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, member := range append(names, information+"RECORD") {
		w, err := archive.Create(member)
		if err == nil {
			_, err = w.Write(members[member])
		}
		if err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return out.Bytes(), err
}
