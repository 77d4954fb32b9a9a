package shrink

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"slipway/manifest"
)

// linkFrom is the size in bytes from which a file is linked instead of copied:
// wheels and runtimes, which nobody writes to. A copy of what is small cannot be
// changed under the real submission.
const linkFrom = 16 << 20

// writeFiles writes a twin's files into an empty folder.
func (s *submission) writeFiles(target string, p *plan) error {
	replaced, err := s.documents(p)
	if err != nil {
		return err
	}
	for _, f := range s.files {
		to := filepath.Join(target, filepath.FromSlash(f.path))
		data, isDocument := replaced[f.path]
		shard := slices.IndexFunc(p.shards, func(t twinShard) bool { return t.path == f.path })
		switch {
		case f.info.IsDir():
			err = os.Mkdir(to, 0o755)
		case isDocument:
			err = os.WriteFile(to, data, f.info.Mode().Perm()|0o200)
		case shard >= 0:
			err = p.shards[shard].write(to)
		default:
			err = linkOrCopy(filepath.Join(s.folder, filepath.FromSlash(f.path)), to, f)
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", f.path, manifest.Cause(err))
		}
	}
	return nil
}

// SelftestPath is where a bundle has the answers that its server reproduces before
// it serves, and NoAnswers what stands there for other weights than the bundle's.
const SelftestPath = "runtime/selftest.json"

// NoAnswers is such a list without answers.
var NoAnswers = []byte("[]\n")

// documents returns the JSON files that differ in a twin, by path.
func (s *submission) documents(p *plan) (documents map[string][]byte, err error) {
	documents = map[string][]byte{SelftestPath: NoAnswers}
	if documents[s.configPath], err = s.model.rewrite(p.to); err != nil {
		return nil, err
	}
	if s.manifestPath != "" {
		if documents[s.manifestPath], err = p.quantization.Encode(); err != nil {
			return nil, fmt.Errorf("write %s: %w", s.manifestPath, err)
		}
	}
	for name, index := range s.indexes {
		if documents[name], err = manifest.EncodeLines(p.indexOf(name, index)); err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
	}
	return documents, nil
}

func (t twinShard) write(name string) (err error) {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := file.Close(); err == nil {
			err = closeErr
		}
	}()
	out := bufio.NewWriter(file)
	if _, err := out.Write(t.header); err != nil {
		return err
	}
	block := make([]byte, blockBytes)
	for i, tensor := range t.tensors {
		source := newSource(t.seeds[i])
		for left := tensor.Bytes(); left > 0; {
			part := block[:min(left, blockBytes)]
			t.fills[i](source, part)
			if _, err := out.Write(part); err != nil {
				return err
			}
			left -= int64(len(part))
		}
	}
	return out.Flush()
}

func linkOrCopy(from, to string, f file) (err error) {
	if f.info.Size() >= linkFrom && os.Link(from, to) == nil {
		return nil // else they are on two file systems, or one that has no links
	}
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	if closeErr := target.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Chmod(to, f.info.Mode().Perm()) // whatever the umask took
	}
	return err
}
