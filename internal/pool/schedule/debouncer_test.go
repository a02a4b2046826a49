// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"
	"time"
)

// Checks wait until none has come for a second, at most ten in all. Those that come at once do not wait.
func TestChecksWaitForEachOther(t *testing.T) {
	for about, tt := range map[string]struct{ at, want []float64 }{
		"at once":            {[]float64{3, 3}, []float64{0, 0}},
		"one after another":  {[]float64{3, 3.5, 4.5}, []float64{0, 4.5, 5.5}},
		"for long":           {[]float64{3, 3.9, 4.8, 5.7, 6.6, 7.5, 8.4, 9.3, 10.2, 11.1, 12}, []float64{0, 4.9, 5.8, 6.7, 7.6, 8.5, 9.4, 10.3, 11.2, 12.1, 13}},
		"for longer":         {[]float64{3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, []float64{0, 5, 6, 7, 8, 9, 10, 11, 12, 13, 13}},
		"the next is others": {[]float64{3, 3.5, 4.6}, []float64{0, 4.5, 0}},
	} {
		var d Debouncer
		for i, at := range tt.at {
			d.AddCheck(seconds(at))
			want := time.Time{}
			if tt.want[i] != 0 {
				want = seconds(tt.want[i])
			}
			if got := d.ReadyAt(); !got.Equal(want) {
				t.Errorf("%s: after the check at %v it is ready at %s, want %s", about, at, got, want)
			}
		}
	}
}
