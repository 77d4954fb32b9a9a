package embedded

import (
	"encoding/json"
	"errors"
	"net/http"
	"syscall"
)

// refusal is an answer in the form of distribution-spec v1.1, "Error codes".
type refusal struct {
	status  int
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (r refusal) Error() string { return r.Code + ": " + r.Message }

func refuse(status int, code, message string) error { return refusal{status, code, message} }

// writeError answers with err. Errors that are not refusals are the server's
// own; their text names files, so it stays here.
func writeError(w http.ResponseWriter, err error) {
	answer := refusal{http.StatusInternalServerError, "UNKNOWN", "the registry could not do it"}
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, full) {
			answer = refusal{http.StatusInsufficientStorage, "UNKNOWN", "the registry's disk: " + full.Error()}
		}
	}
	errors.As(err, &answer)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(answer.status)
	// A client that went away is told nothing.
	_ = json.NewEncoder(w).Encode(map[string][]refusal{"errors": {answer}})
}
