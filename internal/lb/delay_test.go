// SPDX-License-Identifier: Apache-2.0

package lb_test

import (
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
)

func TestDelayedNodeDeletions(t *testing.T) {
	tainted := time.Unix(1700000000, 0)
	const taint = "ToBeDeletedByClusterAutoscaler=1700000000"
	for _, tt := range []struct {
		name, taints          string
		has, isMember, isDown bool
		after                 time.Duration
		want                  bool
	}{
		{name: "no member"},
		{name: "it has left", has: true},
		{name: "a member", isMember: true, want: true},
		{name: "a member for long", has: true, isMember: true, after: time.Hour, want: true},
		{name: "Down for another reason", taints: "karpenter.sh/disrupted", has: true, isMember: true, isDown: true, want: true},
		{name: "to be deleted, takes flows", taints: taint, has: true, isMember: true, want: true},
		{name: "to be deleted, Down everywhere", taints: taint, has: true, isMember: true, isDown: true},
		{name: "to be deleted, has left", taints: taint, has: true},
		{name: "to be deleted, too late to begin", taints: taint, isMember: true},
		{name: "to be deleted, ten minutes ago", taints: taint, has: true, isMember: true, after: 10 * time.Minute},
		{name: "to be deleted, time unknown", taints: "ToBeDeletedByClusterAutoscaler=soon", has: true, isMember: true},
	} {
		d := lb.DelayInput{Taints: taints(tt.taints), HasDelay: tt.has, IsMember: tt.isMember, IsDown: tt.isDown}
		if got := d.NeedsDelay(tainted.Add(tt.after)); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
