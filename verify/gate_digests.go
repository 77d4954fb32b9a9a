package verify

import (
	"fmt"

	"slipway/manifest"
)

func decideDigests(e *evidence) outcome {
	var o outcome
	for _, file := range e.tree.Files {
		f := e.facts[file.Path]
		switch {
		case f.err != nil:
			o.fail(Finding{Path: file.Path, Problem: f.err.Error(), Hint: manifest.Hint(f.err)})
		case !file.Digest.IsZero() && f.digest != file.Digest:
			o.fail(Finding{Path: file.Path, Problem: "bytes differ from what the artifact says",
				Want: file.Digest.String(), Got: f.digest.String()})
		}
	}
	set, whole := e.setDigest()
	if a := e.tree.Artifact; a != nil {
		o.artifact(e, set, whole)
		o.note("artifact digest %s", a.Descriptor.Digest)
	}
	if !whole {
		return o
	}
	o.note("set digest %s", set)
	if want := e.options.Expect; !want.IsZero() && want != set {
		if e.tree.Artifact == nil || want != e.tree.Artifact.Descriptor.Digest {
			o.fail(Finding{Problem: "neither artifact nor set has the expected digest",
				Want: want.String(), Got: set.String(), Hint: "this is another submission than the one that was meant"})
		}
	}
	return o
}

// artifact compares what an artifact says of itself in several places.
func (o *outcome) artifact(e *evidence, set manifest.Digest, whole bool) {
	a := e.tree.Artifact
	if got := manifest.DigestBytes(a.ConfigRaw); got != a.Manifest.Config.Digest {
		o.fail(Finding{Problem: "the config blob differs from its descriptor", Want: a.Manifest.Config.Digest.String(), Got: got.String()})
	}
	ids := a.Config.ModelFS.DiffIDs
	if len(ids) != len(a.Manifest.Layers) {
		o.fail(Finding{Problem: "the config lists another number of layers than the manifest",
			Want: fmt.Sprint(len(a.Manifest.Layers)), Got: fmt.Sprint(len(ids))})
		return
	}
	for i, layer := range a.Manifest.Layers {
		if ids[i] != layer.Digest { // raw and plain tar layers are their own uncompressed form
			o.fail(Finding{Path: layer.Annotations[manifest.AnnotationFilePath],
				Problem: fmt.Sprintf("diffId %d of the config is not the layer's digest", i), Want: layer.Digest.String(), Got: ids[i].String()})
		}
	}
	claim := a.Manifest.Annotations[manifest.AnnotationSetDigest]
	if claim != "" && whole && claim != set.String() {
		o.fail(Finding{Problem: "the annotation " + manifest.AnnotationSetDigest + " is not the files' set digest", Want: set.String(), Got: clip(claim)})
	}
}
