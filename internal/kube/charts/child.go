// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
)

const (
	// mostMemory bounds the memory of a child. It is in the same container as Weir, whose limit is 512 MiB.
	mostMemory = 128 << 20
	// mostSeconds bounds its time on a processor.
	mostSeconds = 5
	// mostStack bounds what templates that include each other take.
	mostStack = 32 << 20
	// mostOfError bounds its words, in bytes.
	mostOfError = 2 << 10
)

// Child renders the chart that it reads, and writes what comes of it. All is read before a limit is
// set: from then on the process opens nothing any more.
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
