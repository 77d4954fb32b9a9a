package verify

import (
	"fmt"

	"slipway/manifest"
	"slipway/verify/report"
)

func decideDigests(e *evidence) outcome {
	var o outcome
	for _, file := range e.tree.Files {
		f := e.facts[file.Path]
		switch {
		case f.Err != nil:
			o.Fail(report.Finding{Path: file.Path, Problem: f.Err.Error(), Hint: manifest.Hint(f.Err)})
		case !file.Digest.IsZero() && f.Digest != file.Digest:
			o.Fail(report.Finding{Path: file.Path, Problem: "bytes differ from what the artifact says",
				Want: file.Digest.String(), Got: f.Digest.String(), Hint: getAgain})
		}
	}
	set, whole := e.setDigest()
	if a := e.tree.Artifact; a != nil {
		o.artifact(e, set, whole)
	}
	if !whole {
		return o
	}
	o.expected(e, set)
	return o
}

// expected compares the digests that there are with the one that was meant. A
// folder has no artifact digest, so that one of an artifact fits no folder.
func (o *outcome) expected(e *evidence, set manifest.Digest) {
	want := e.options.Expect
	if want.IsZero() || want == set {
		return
	}
	if e.tree.Artifact == nil {
		o.Fail(report.Finding{Problem: "the folder's set digest is not the expected digest", Want: want.String(), Got: set.String(),
			Hint: "a folder has no artifact digest, only the set digest above: if an artifact's was meant, verify the layout that build --layout wrote, or the registry reference; " +
				"if a set digest was, these are other files"})
		return
	}
	if artifact := e.tree.Artifact.Descriptor.Digest; want != artifact {
		o.Fail(report.Finding{Problem: "neither the artifact digest nor the set digest is the expected one", Want: want.String(),
			Got: fmt.Sprintf("artifact %s, set %s", artifact, set), Hint: "this is another submission than the one that was meant"})
	}
}

// artifact compares what an artifact says of itself in several places.
func (o *outcome) artifact(e *evidence, set manifest.Digest, whole bool) {
	a := e.tree.Artifact
	if got := manifest.DigestBytes(a.ConfigRaw); got != a.Manifest.Config.Digest {
		o.Fail(report.Finding{Problem: "the config blob differs from its descriptor", Want: a.Manifest.Config.Digest.String(), Got: got.String(), Hint: "build the bundle again"})
	}
	ids := a.Config.ModelFS.DiffIDs
	if len(ids) != len(a.Manifest.Layers) {
		o.Fail(report.Finding{Problem: "the config lists another number of layers than the manifest",
			Want: fmt.Sprint(len(a.Manifest.Layers)), Got: fmt.Sprint(len(ids)), Hint: "build the bundle again"})
		return
	}
	for i, layer := range a.Manifest.Layers {
		if ids[i] != layer.Digest { // raw and plain tar layers are their own uncompressed form
			o.Fail(report.Finding{Path: layer.Annotations[manifest.AnnotationFilePath],
				Problem: fmt.Sprintf("diffId %d of the config is not the layer's digest", i), Want: layer.Digest.String(), Got: ids[i].String(), Hint: "build the bundle again"})
		}
	}
	claim := a.Manifest.Annotations[manifest.AnnotationSetDigest]
	if claim != "" && whole && claim != set.String() {
		o.Fail(report.Finding{Problem: "the annotation " + manifest.AnnotationSetDigest + " is not the files' set digest", Want: set.String(), Got: manifest.Clip(claim), Hint: "build the bundle again"})
	}
}
