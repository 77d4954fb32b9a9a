package picture

import (
	"bytes"
	"encoding/base64"
	"errors"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"slipway/manifest"
)

func TestKind(t *testing.T) {
	for begins, want := range map[string]string{
		"\x89PNG\r\n\x1a\n\x00": "image/png", "\x89PNG\n": "", "\xff\xd8\xff\xe0": "image/jpeg", "\xff\xd8": "",
		"GIF87a": "image/gif", "GIF89a...": "image/gif", "GIF88a": "", "RIFF\x10\x00\x00\x00WEBPVP8 ": "image/webp", "RIFF\x10\x00\x00\x00WAVE": "",
		"RIFF": "", "<svg": "", "": "", "BM": "",
	} {
		if got := Kind([]byte(begins)); got != want {
			t.Errorf("%q is %q, not %q", begins, got, want)
		}
	}
}

// Every line has one fault; the clean ones come first.
func TestLoad(t *testing.T) {
	red, large := Small(Red).Data, append(Small(Red).Data, make([]byte, maxBytes)...)
	folder := fstest.MapFS{"a.png": {Data: red}, "below/b.png": {Data: Small(Blue).Data}, "text.png": {Data: []byte("red")}, "large.png": {Data: large}, "empty.png": {}, "folder/x": {}}
	lines := `{"image":"a.png","question":"?"}` + "\n\n" + `{"images":["below/b.png","a.png"]}` + "\n" + `{"question":"no image"}` + "\nnot JSON\n" + `{"images":[]}`
	images, err := Load([]byte(lines), folder)
	if err != nil || len(images) != 2 || !bytes.Equal(images["a.png"], red) || !bytes.Equal(images["below/b.png"], Small(Blue).Data) {
		t.Fatalf("%d images, %v", len(images), err)
	}
	if images, err := Load([]byte(`{"question":"?"}`), folder); err != nil || images != nil {
		t.Errorf("%v, %v", images, err)
	}
	for line, want := range map[string]string{
		`{"image":"absent.png"}`:                   "line 1: image absent.png: file does not exist",
		`{"image":"../a.png"}`:                     "line 1: image ../a.png: is no path below the folder of the questions",
		`{"image":"/a.png"}`:                       "no path below",
		`{"image":"./a.png"}`:                      "no path below",
		`{"image":"."}`:                            "no path below",
		`{"image":"below\\b.png"}`:                 "no path below",
		`{"image":"folder"}`:                       "is no file",
		`{"image":"text.png"}`:                     "is no image: its bytes are not those of",
		`{"image":"empty.png"}`:                    "is no image",
		`{"image":"large.png"}`:                    "more than 20971520",
		`{"image":"a.png","images":["a.png"]}`:     "line 1: has both image and images",
		`{"images":["a.png",""]}`:                  "no path below",
		`{"images":["` + many(maxQuestion) + `"]}`: "names 17 images, more than 16",
	} {
		if _, err := Load([]byte(line), folder); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// An image counts as often as a question shows it, and for each question anew.
func TestLoadShown(t *testing.T) {
	folder := fstest.MapFS{"a.png": {Data: append(Small(Red).Data, make([]byte, 10<<20)...)}}
	fits := `{"images":["` + many(5) + `"]}`
	if _, err := Load([]byte(fits+"\n"+fits), folder); err != nil {
		t.Error(err)
	}
	if _, err := Load([]byte(`{"images":["`+many(6)+`"]}`), folder); err == nil || !strings.Contains(err.Error(), "line 1: the images of one question are more than 67108864 bytes together") {
		t.Errorf("got %v", err)
	}
}

func many(n int) string { return strings.Repeat(`a.png","`, n) + "a.png" }

// A set's digest is that of the lines of sha256sum.
func TestSetDigest(t *testing.T) {
	lines := manifest.DigestBytes([]byte("1")).Hex() + "  a.png\n" + manifest.DigestBytes([]byte("2")).Hex() + "  b/a.png\n"
	if got := SetDigest(map[string][]byte{"b/a.png": []byte("2"), "a.png": []byte("1")}); got != manifest.DigestBytes([]byte(lines)) {
		t.Errorf("got %s", got)
	}
}

func TestPlain(t *testing.T) {
	for name, p := range map[string]Picture{"small": Small(Red), "large": Large(Red, 5<<20)} {
		decoded, err := png.Decode(bytes.NewReader(p.Data))
		if err != nil || Kind(p.Data) != "image/png" {
			t.Fatal(name, err)
		}
		for _, at := range []image.Point{{}, decoded.Bounds().Max.Sub(image.Pt(1, 1))} {
			if decoded.At(at.X, at.Y) != Red {
				t.Errorf("%s: %v at %v", name, decoded.At(at.X, at.Y), at)
			}
		}
		data, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(p.URL(), "data:image/png;base64,"))
		if err != nil || !bytes.Equal(data, p.Data) {
			t.Errorf("%s: the URL holds other bytes: %v", name, err)
		}
	}
	if n := len(Small(Red).Data); n > 1000 {
		t.Errorf("a small one has %d bytes", n)
	}
	for _, want := range []int{1 << 20, 5 << 20} {
		if n := len(Large(Red, want).URL()); n < want*99/100 || n > want*101/100 {
			t.Errorf("%d bytes of base64, want about %d", n, want)
		}
	}
}

// A link may lead to a file below the folder, and to none that lies elsewhere.
func TestLoadBeside(t *testing.T) {
	folder, elsewhere := t.TempDir(), t.TempDir()
	err := errors.Join(os.WriteFile(filepath.Join(folder, "a.png"), Small(Red).Data, 0o644), os.WriteFile(filepath.Join(elsewhere, "b.png"), Small(Blue).Data, 0o644),
		os.Symlink("a.png", filepath.Join(folder, "linked.png")), os.Symlink(elsewhere, filepath.Join(folder, "below")), os.Symlink(filepath.Join(elsewhere, "b.png"), filepath.Join(folder, "b.png")))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "questions.jsonl")
	if images, err := LoadBeside([]byte(`{"images":["a.png","linked.png"]}`), file); err != nil || len(images) != 2 || !bytes.Equal(images["a.png"], images["linked.png"]) {
		t.Errorf("%d images, %v", len(images), err)
	}
	for name, want := range map[string]string{
		"b.png": "line 1: image b.png: path escapes from parent", "below/b.png": "line 1: image below/b.png: path escapes from parent", "c.png": "line 1: image c.png: no such file or directory",
	} {
		if images, err := LoadBeside([]byte(`{"image":"`+name+`"}`), file); err == nil || err.Error() != want || images != nil {
			t.Errorf("%s: %d images, %v, want %s", name, len(images), err, want)
		}
	}
	if _, err := LoadBeside([]byte(`{"image":"a.png"}`), filepath.Join(folder, "absent", "questions.jsonl")); err == nil || !strings.Contains(err.Error(), "open the folder of the questions: ") {
		t.Errorf("no folder: %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	folder := fstest.MapFS{"a.png": {Data: Small(Red).Data}}
	f.Add([]byte(`{"image":"a.png"}` + "\n" + `{"images":["a.png","a.png"]}`))
	f.Add([]byte(`{"image":"../a.png"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		images, err := Load(data, folder)
		for name := range images {
			if err != nil || name != "a.png" {
				t.Errorf("image %q, %v", name, err)
			}
		}
	})
}
