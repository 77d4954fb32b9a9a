// Package broken makes the submissions of examples/broken: a tiny model that
// really answers, a small server that really computes it, and for each case the
// one fault that it has.
package broken
