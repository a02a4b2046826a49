// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
)

// An admin state change comes before a member change, also at a start, and alone if nothing else differs. It
// has the impact.
func TestQueuedOperations(t *testing.T) {
	n1, n2 := lb.Address{Name: "n1", IP: netip.MustParseAddr("10.0.0.1")}, lb.Address{Name: "n2", IP: netip.MustParseAddr("10.0.0.2")}
	tests := []struct {
		name     string
		members  []lb.Address
		leaves   []lb.Address
		recorded string
		down     string
		start    bool
		want     string
	}{
		{"a member joins", []lb.Address{n1, n2}, nil, "10.0.0.1", "", false, "members"},
		{"a node leaves", []lb.Address{n1, n2}, []lb.Address{n1}, "10.0.0.1 10.0.0.2", "", false, "admin 1/1/0"},
		{"another one leaves", []lb.Address{n1, n2}, []lb.Address{n1, n2}, "10.0.0.1 10.0.0.2", "10.0.0.1", false, "admin 0/1/0"},
		{"it leaves no more", []lb.Address{n1}, nil, "10.0.0.1", "10.0.0.1", false, "admin 0/0/1"},
		{"a node joins while it leaves", []lb.Address{n1, n2}, []lb.Address{n2}, "10.0.0.1", "", false, "admin 1/1/0, members"},
		{"nothing new since it left", []lb.Address{n1}, []lb.Address{n1}, "10.0.0.1", "10.0.0.1", false, "members"},
		{"a start", []lb.Address{n1}, nil, "10.0.0.1", "", true, "members"},
		{"it left while nobody looked", []lb.Address{n1}, []lb.Address{n1}, "10.0.0.1", "", true, "admin 0/1/0, members"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := &Entry{unsavedStatus: unsavedStatus{status: v1alpha1.BackendPoolStatus{WrittenAddresses: strings.Fields(tt.recorded)}}}
			for ip := range strings.FieldsSeq(tt.down) {
				e.status.Down = append(e.status.Down, v1alpha1.DownAddress{Address: ip})
			}
			set := membership.Set{Addresses: tt.members}
			for _, a := range tt.leaves {
				set.Draining = append(set.Draining, membership.Drain{Node: a.Name, IP: a.IP})
			}
			var op schedule.Operation
			if !tt.start {
				op.ChangedAt = time.Unix(1, 0)
			}
			var got []string
			for _, o := range e.newOperations(op, set) {
				word := "members"
				if o.Admin {
					word = fmt.Sprintf("admin %d/%d/%d", o.Impact.Serving, o.Impact.Stopping, o.Impact.Starting)
				}
				got = append(got, word)
			}
			if strings.Join(got, ", ") != tt.want {
				t.Errorf("got %q, want %s", got, tt.want)
			}
		})
	}
}
