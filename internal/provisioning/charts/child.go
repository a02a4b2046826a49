// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
)

const (
	// maxMemory is in bytes. The child shares a container with a limit of 512 MiB.
	maxMemory  = 128 << 20
	maxSeconds = 5
	// maxStack is in bytes; templates may recurse.
	maxStack      = 32 << 20
	maxErrorBytes = 2 << 10
)

// RunChild renders the chart read from in and writes the result to out. It reads everything before it
// sets the limits, after which nothing can be opened.
func RunChild(in io.Reader, out io.Writer) error {
	var r Request
	if err := json.NewDecoder(in).Decode(&r); err != nil {
		return fmt.Errorf("request: %w", err)
	}
	if err := setLimits(); err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(maxMemory / 2)
	var a Response
	var err error
	if a.Documents, err = renderChart(r); err != nil {
		text := err.Error()
		a = Response{Error: text[:min(len(text), maxErrorBytes)]}
	}
	return json.NewEncoder(out).Encode(a)
}
