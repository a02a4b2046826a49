// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
)

const (
	// mostMemory is in bytes. The child shares a container with a limit of 512 MiB.
	mostMemory  = 128 << 20
	mostSeconds = 5
	// mostStack is in bytes; templates may recurse.
	mostStack   = 32 << 20
	mostOfError = 2 << 10
)

// Child renders the chart read from in and writes the result to out. It reads everything before it
// sets the limits, after which nothing can be opened.
func Child(in io.Reader, out io.Writer) error {
	var r Request
	if err := json.NewDecoder(in).Decode(&r); err != nil {
		return fmt.Errorf("request: %w", err)
	}
	if err := limit(); err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	debug.SetMaxStack(mostStack)
	debug.SetMemoryLimit(mostMemory / 2)
	var a Answer
	var err error
	if a.Documents, err = render(r); err != nil {
		text := err.Error()
		a = Answer{Error: text[:min(len(text), mostOfError)]}
	}
	return json.NewEncoder(out).Encode(a)
}
