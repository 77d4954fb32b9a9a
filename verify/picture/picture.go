// Package picture reads the images that a file of questions names and makes
// plain ones. It promises that every image it returns lies below the folder that
// it was asked about, whatever links lead out of it, is of a kind that chat
// endpoints take (told by its bytes, never by its name), and is no larger than an
// image may be.
package picture

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"slipway/manifest"
)

// Picture is an image as a question shows it.
type Picture struct {
	Name string // its path as the questions name it; of a plain one, what it is
	Data []byte
	Made bool // it is plain, and no file
}

// Bounds of what questions show, in bytes and in images.
const (
	maxBytes    = 20 << 20  // of one image
	maxTotal    = 512 << 20 // of all
	maxQuestion = 16        // images of one question
	maxShown    = 64 << 20  // of the images of one question, each as often as it is shown
)

// Kind is the media type of an image: image/png, image/jpeg, image/gif or
// image/webp, by the signature that its bytes begin with; "" for anything else.
func Kind(data []byte) string {
	begins := func(signature string) bool { return bytes.HasPrefix(data, []byte(signature)) }
	switch {
	case begins("\x89PNG\r\n\x1a\n"):
		return "image/png"
	case begins("\xff\xd8\xff"):
		return "image/jpeg"
	case begins("GIF87a"), begins("GIF89a"):
		return "image/gif"
	case begins("RIFF") && len(data) >= 12 && string(data[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}

// URLPrefix is what stands before the base64 of a data URL of the image.
func (p Picture) URLPrefix() string { return "data:" + Kind(p.Data) + ";base64," }

// URL is the image as a data URL.
func (p Picture) URL() string { return p.URLPrefix() + base64.StdEncoding.EncodeToString(p.Data) }

// Names are the images that a question names: one as image, or several as
// images.
func Names(image string, images []string) ([]string, error) {
	switch {
	case image != "" && len(images) > 0:
		return nil, errors.New(`has both image and images`)
	case image != "":
		return []string{image}, nil
	case len(images) > maxQuestion:
		return nil, fmt.Errorf("names %d images, more than %d", len(images), maxQuestion)
	}
	return images, nil
}

// Load reads the images that questions (a JSON object a line, with image or
// images) name, relative to folder, which is the one that the questions lie in.
// It returns their bytes by the names that the questions use; nil for questions
// that show nothing. A line that is no JSON is for whoever reads the questions. A
// folder of this machine is an os.Root's, which follows no link out of it.
func Load(questions []byte, folder fs.FS) (map[string][]byte, error) {
	var images map[string][]byte
	var total int64
	n := 0
	for line := range bytes.Lines(questions) {
		n++
		var named struct {
			Image  string   `json:"image"`
			Images []string `json:"images"`
		}
		if manifest.DecodeLoose(line, &named) != nil {
			continue
		}
		names, err := Names(named.Image, named.Images)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		shown := 0
		for _, name := range names {
			if images[name] == nil {
				data, err := read(folder, name)
				if err != nil {
					return nil, fmt.Errorf("line %d: image %s: %w", n, manifest.Clip(manifest.Printable(name)), err)
				}
				if total += int64(len(data)); total > maxTotal {
					return nil, fmt.Errorf("line %d: the images are more than %d bytes together", n, maxTotal)
				}
				if images == nil {
					images = map[string][]byte{}
				}
				images[name] = data
			}
			if shown += len(images[name]); shown > maxShown {
				return nil, fmt.Errorf("line %d: the images of one question are more than %d bytes together", n, maxShown)
			}
		}
	}
	return images, nil
}

// LoadBeside is Load for questions that were read from a file of this machine.
func LoadBeside(questions []byte, file string) (map[string][]byte, error) {
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return nil, fmt.Errorf("open the folder of the questions: %w", manifest.Cause(err))
	}
	defer root.Close()
	return Load(questions, root.FS())
}

// read reads one image. Its size is looked at first, and that it is a file:
// opening a named pipe would wait for its other end.
func read(folder fs.FS, name string) ([]byte, error) {
	if manifest.CheckPath(name) != nil {
		return nil, manifest.WithHint(errors.New("is no path below the folder of the questions"),
			"name it relative to the file of questions, with / and without .., and put it beside that file or below")
	}
	info, err := fs.Stat(folder, name)
	switch {
	case err != nil:
		return nil, manifest.Cause(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("is no file")
	case info.Size() > maxBytes:
		return nil, fmt.Errorf("has %d bytes, more than %d", info.Size(), maxBytes)
	}
	data, err := fs.ReadFile(folder, name)
	switch {
	case err != nil:
		return nil, manifest.Cause(err)
	case len(data) > maxBytes:
		return nil, fmt.Errorf("has more than %d bytes", maxBytes)
	case Kind(data) == "":
		return nil, errors.New("is no image: its bytes are not those of a PNG, JPEG, WebP or GIF file")
	}
	return data, nil
}

// SetDigest is the digest of a set of images: of what sha256sum prints for them,
// sorted by name.
func SetDigest(images map[string][]byte) manifest.Digest {
	var files []manifest.File
	for name, data := range images {
		files = append(files, manifest.File{Path: name, Digest: manifest.DigestBytes(data)})
	}
	return manifest.SetDigest(files)
}
