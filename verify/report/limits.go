package report

// Limits are the profile's bounds that a report's numbers are held against; what
// is 0 or "" the profile does not bound. Times are seconds.
type Limits struct {
	Bytes         int64   `json:"bytes,omitempty"`          // of all files, at most
	FractionAbove string  `json:"fraction_above,omitempty"` // "95/100": of ternary weights, more than
	StoredAtMost  string  `json:"stored_at_most,omitempty"` // "11/10": of the base's parameters
	StartSeconds  float64 `json:"start_seconds,omitempty"`  // from the start to the first 200 of /health
	TotalSeconds  float64 `json:"total_seconds,omitempty"`  // of the whole graded load
}
