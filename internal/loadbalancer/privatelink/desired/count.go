// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"fmt"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Count is the number of connections by state. Other counts states unknown to this package.
type Count struct{ Pending, Approved, Rejected, Other int }

// CountConnections counts the connections of a Private Link Service.
func CountConnections(p lb.PrivateLinkService) Count {
	var c Count
	for _, conn := range p.Connections {
		switch conn.Status {
		case lb.ConnectionPending:
			c.Pending++
		case lb.ConnectionApproved:
			c.Approved++
		case lb.ConnectionRejected:
			c.Rejected++
		default:
			c.Other++
		}
	}
	return c
}

// Add returns the sum of two counts.
func (c Count) Add(o Count) Count {
	return Count{c.Pending + o.Pending, c.Approved + o.Approved, c.Rejected + o.Rejected, c.Other + o.Other}
}

// String formats the counts, as in "2 approved, 1 pending".
func (c Count) String() string {
	var texts []string
	for _, part := range []struct {
		n    int
		noun string
	}{{c.Approved, "approved"}, {c.Pending, "pending"}, {c.Rejected, "rejected"}, {c.Other, "in other states"}} {
		if part.n > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", part.n, part.noun))
		}
	}
	if len(texts) == 0 {
		return "no connections"
	}
	return strings.Join(texts, ", ")
}
