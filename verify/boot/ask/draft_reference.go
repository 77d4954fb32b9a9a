package ask

import (
	"context"
	"fmt"

	"slipway/manifest"
)

// DraftReference is what a server drafted after a prompt: what later runs of the
// same weights are compared with. Ids are of the checkpoint's tokenizer.
type DraftReference struct {
	ID     string  `json:"id"`
	Prompt []int32 `json:"prompt"`
	Draft  []int32 `json:"draft"`
}

// ReadDraftReferences reads reference drafts, one JSON object a line.
func ReadDraftReferences(data []byte) ([]DraftReference, error) {
	return readLines(data, func(r DraftReference) error {
		if len(r.Prompt) == 0 || len(r.Draft) == 0 {
			return fmt.Errorf("draft %q has no id in its prompt or none in its draft", manifest.Clip(r.ID))
		}
		return nil
	})
}

// DraftReferences asks for a draft of load.MaxTokens ids after each prompt. What
// the target goes on with takes no part.
func DraftReferences(ctx context.Context, server string, prompts []Continuation, load Load) ([]DraftReference, error) {
	steps := make([]DraftStep, len(prompts))
	for i, p := range prompts {
		steps[i].Context = p.Prompt
	}
	references := make([]DraftReference, len(prompts))
	for i, x := range Drafts(ctx, Endpoint{URL: server}, steps, load) {
		if x.Failed != nil {
			return nil, fmt.Errorf("prompt %q: %w", manifest.Clip(prompts[i].ID), x.Failed)
		}
		references[i] = DraftReference{prompts[i].ID, prompts[i].Prompt, steps[i].Draft}
	}
	return references, nil
}
