package pack

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"slipway/manifest"
)

// head finds a stored head that repeats the embedding it is tied to. A head
// that differs from it is an error: some loaders would use it, some would not.
func (l *look) head(ctx context.Context) error {
	var heads, embeddings []held
	for _, h := range l.checkpoint.tensors() {
		switch manifest.RoleOf(h.Name) {
		case manifest.RoleHead:
			heads = append(heads, h)
		case manifest.RoleEmbedding:
			embeddings = append(embeddings, h)
		}
	}
	if len(heads) == 0 {
		return nil
	}
	tied, err := l.checkpoint.tied()
	if err != nil {
		return err
	}
	head := heads[0]
	if !tied {
		l.Notes = append(l.Notes, fmt.Sprintf("%s stays: config.json does not say that the head is tied (tie_word_embeddings)", head.Name))
		return nil
	}
	if len(heads) > 1 || len(embeddings) != 1 {
		return fmt.Errorf("%d heads and %d embeddings are stored: which of them are tied cannot be told", len(heads), len(embeddings))
	}
	same, err := l.equal(ctx, head, embeddings[0])
	if err != nil {
		return err
	}
	if !same {
		return manifest.WithHint(fmt.Errorf("%s of %s differs from %s, and config.json says that they are tied", head.Name, head.source.Path, embeddings[0].Name),
			"set tie_word_embeddings to false where the head is a trained one; else remove it from the checkpoint")
	}
	l.Dropped[head.Name] = embeddings[0].Name
	return nil
}

// equal compares two tensors' types, shapes and bytes.
func (l *look) equal(ctx context.Context, a, b held) (bool, error) {
	if a.DType != b.DType || !slices.Equal(a.Shape, b.Shape) {
		return false, nil
	}
	l.options.phase("compare head and embedding", a.Bytes())
	other, err := l.files.reader(b.place())
	if err != nil {
		return false, err
	}
	same := true
	second := make([]byte, blockSize)
	err = l.files.eachBlock(ctx, a.place(), 1, func(first []byte) error {
		l.options.report(int64(len(first)))
		if !same {
			return nil
		}
		if _, err := io.ReadFull(other, second[:len(first)]); err != nil {
			return err
		}
		same = bytes.Equal(first, second[:len(first)])
		return nil
	})
	return same, err
}
