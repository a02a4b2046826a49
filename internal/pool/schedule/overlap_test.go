// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb/behavior"
)

// The limit after what happened: N writes that succeeded one by one, kept for a group of which overtaken
// writes kept their effect, lost for a rejected or discarded one.
func TestOverlapAdapts(t *testing.T) {
	for _, tt := range []struct {
		about  string
		start  Overlap
		events string
		limit  int
		awaits bool
	}{
		{"at start", Overlap{}, "", maxOverlap, true},
		{"kept once", Overlap{}, "kept kept", maxOverlap, true},
		{"kept three times", Overlap{}, "kept kept kept", maxOverlap, false},
		{"lost", Overlap{}, "kept kept kept lost", 1, true},
		{"too few writes since", Overlap{}, "lost 7", 1, true},
		{"enough writes since", Overlap{}, "lost 7 1", 2, true},
		{"then one at a time", Overlap{}, "lost 8 kept kept", 4, true},
		{"writes one by one raise nothing else", Overlap{}, "lost 8 100", 2, true},
		{"lost again: twice as long", Overlap{}, "lost 8 lost 15", 1, true},
		{"and then", Overlap{}, "lost 8 lost 16", 2, true},
		{"what was kept between resets that", Overlap{}, "lost 8 kept lost 8", 2, true},
		{"serial by azure.json", NewOverlap(true, behavior.Supersede), "1000 kept", 1, true},
		{"a probe saw nothing", NewOverlap(false, ""), "", maxOverlap, true},
		{"a probe saw them kept", NewOverlap(false, behavior.Supersede), "", maxOverlap, true},
		{"a probe saw them rejected", NewOverlap(false, behavior.Lock), "", 1, true},
		{"a probe saw them discarded, which a version of Azure ends", NewOverlap(false, behavior.SupersedeDiscard), "8", 2, true},
	} {
		o := tt.start
		for _, e := range strings.Fields(tt.events) {
			switch e {
			case "kept":
				o = o.AfterSuccess(3, 2)
			case "lost":
				o = o.AfterFailure()
			default:
				var n int
				_, _ = fmt.Sscan(e, &n)
				for range n {
					o = o.AfterSuccess(1, 0)
				}
			}
		}
		if o.Limit() != tt.limit || o.AwaitsEach() != tt.awaits || o.IsLimited() != (tt.limit == 1) {
			t.Errorf("%s: limit %d, awaits each %t; want %d and %t", tt.about, o.Limit(), o.AwaitsEach(), tt.limit, tt.awaits)
		}
	}
}

// However Azure answers: the limit is in bounds, one after a failure, and grows by at most one at a time.
// Where Azure never accepts overlapping writes, n writes meet at most 3+log2(n/8) rejections until these
// are rare, and one in a thousand afterwards.
func TestLawOfOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := NewOverlap(rapid.Bool().Draw(t, "serial"), rapid.SampledFrom([]behavior.Result{"", behavior.Supersede, behavior.Lock}).Draw(t, "hint"))
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			before := o.Limit()
			if rapid.IntRange(0, 9).Draw(t, "answer") == 0 {
				if o = o.AfterFailure(); o.Limit() != 1 {
					t.Fatalf("limit %d after a failure", o.Limit())
				}
				continue
			}
			writes := rapid.IntRange(1, 20).Draw(t, "writes")
			o = o.AfterSuccess(writes, rapid.IntRange(0, writes-1).Draw(t, "overtaken"))
			if o.Limit() < before || o.Limit() > before+1 || o.Limit() > maxOverlap {
				t.Fatalf("limit %d after %d", o.Limit(), before)
			}
			if o.serial && o.Limit() != 1 {
				t.Fatal("serial writes overlap")
			}
		}
		never, failures, n := Overlap{}, 0, rapid.IntRange(1, 5000).Draw(t, "writes where none overlap")
		for range n {
			if never.Limit() > 1 {
				failures++
				never = never.AfterFailure()
			}
			never = never.AfterSuccess(1, 0)
		}
		limit := 3 + n/(minRecovery<<maxRecoveryLog)
		for w := n / minRecovery; w > 0; w /= 2 {
			limit++
		}
		if failures > limit {
			t.Fatalf("%d of %d writes are rejected, want %d at most", failures, n, limit)
		}
	})
}
