//go:build !linux

package cli

import "errors"

// watch exists on linux; scripts that need it say [!linux] skip.
func watch(string, bool) (moment, error) {
	return moment{}, errors.New("no way to watch files on this system")
}
