// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"
	"fmt"
	"strings"

	"weir.dev/weir/lab/scenario"
)

// Script formats an outcome as a scenario file.
func Script(sentence string, o Result) string {
	var out strings.Builder
	out.WriteString("# " + strings.ReplaceAll(sentence, "\n", " ") + "\n")
	for i, step := range o.Steps {
		if i > 0 {
			out.WriteString("\n")
		}
		out.WriteString(step.String() + "\n----\n")
		if i < len(o.Traces) {
			out.WriteString(o.Traces[i])
		}
	}
	return out.String()
}

// ParseScript returns the steps of a scenario file and their line numbers.
func ParseScript(text string) (steps []scenario.Step, lines []int, err error) {
	var input []string
	open, trace := false, false // in a step, and below its ----
	text = strings.ReplaceAll(text, "\r\n", "\n")
	for n, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		switch {
		case trace && line != "":
		case line == "":
			open, trace = false, false
		case !open && strings.HasPrefix(line, "#"):
		case !open:
			step, err := scenario.ParseStep(line)
			if err != nil {
				return nil, nil, fmt.Errorf("line %d: %w", n+1, err)
			}
			steps, lines = append(steps, step), append(lines, n+1)
			input, open = nil, true
		case line == "----":
			steps[len(steps)-1].Input, trace = strings.Join(input, "\n"), true
		default:
			input = append(input, line)
		}
	}
	if len(steps) == 0 {
		return nil, nil, errors.New("there is no step in it")
	}
	return steps, lines, nil
}
