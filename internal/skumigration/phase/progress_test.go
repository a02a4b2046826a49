// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The progress record is bounded in size and survives a round trip.
func TestReportsAreBounded(t *testing.T) {
	many := make([]string, 1000)
	for i := range many {
		many[i] = strings.Repeat("x", 10_000)
	}
	for _, reported := range []Progress{NewProgress(ProgressRejected, many...), NewStepProgress(Steps{Phase: PhaseDetach, StopReasons: many, WaitReasons: many}, 1, 6)} {
		text := FormatProgress(reported)
		second, ok := ParseProgress(text)
		if !ok || !reflect.DeepEqual(second, reported) || len(text) > 12<<10 {
			t.Errorf("%d bytes come back %t", len(text), ok)
		}
		if reasons := slices.Concat(reported.Reasons, reported.WaitReasons); !strings.HasPrefix(reasons[len(reasons)-1], "and ") {
			t.Errorf("the last is %.40s", reasons[len(reasons)-1])
		}
	}
}
