// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"maps"
	"net/http"
	"path"
	"strings"
	"time"

	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/lab/armemu"
)

// traffic counts the controller's calls to Azure.
type traffic struct {
	Reads  int `json:"reads"`
	Writes int `json:"writes"`
	Polls  int `json:"polls"`
	// Balancers, PublicIPs and SecurityGroups count writes of whole load balancers, of public IPs and of the
	// security group.
	Balancers      int `json:"loadBalancerWrites"`
	PublicIPs      int `json:"publicIPWrites"`
	SecurityGroups int `json:"securityGroupWrites"`
	Throttled      int `json:"throttled"`
	Conflicts      int `json:"conflicts"`
	// Early counts calls before a Retry-After elapsed.
	Early int `json:"callsBeforeRetryAfter"`
	// Others counts the second writer's calls, which no other number includes.
	Others int `json:"secondWriterCalls"`
	// pools counts the calls about single pools, by name.
	pools      map[string]poolCalls
	retryAfter retryAfterState
	last       uint64 // sequence number of the last call counted
}

// poolCalls counts the controller's calls about one pool, without polls. The last field counts the
// conflicts with status 412.
type poolCalls struct{ reads, writes, throttled, conflicts, preconditionFailed int }

// rejected counts rejected writes.
func (p poolCalls) rejected() int { return p.throttled + p.conflicts }

// failedAttempts counts failed attempts: after a first 412 the attempt writes again.
func (p poolCalls) failedAttempts() int {
	return p.rejected() - p.preconditionFailed + p.preconditionFailed/2
}

func (t traffic) subtract(before traffic) traffic {
	return traffic{
		Reads: t.Reads - before.Reads, Writes: t.Writes - before.Writes, Polls: t.Polls - before.Polls,
		Balancers: t.Balancers - before.Balancers, PublicIPs: t.PublicIPs - before.PublicIPs,
		SecurityGroups: t.SecurityGroups - before.SecurityGroups,
		Throttled:      t.Throttled - before.Throttled, Conflicts: t.Conflicts - before.Conflicts,
		Early: t.Early - before.Early, Others: t.Others - before.Others,
	}
}

func (t *traffic) addCall(c armemu.Call) {
	t.last = c.Seq
	if c.ClientRequestID == secondWriterID {
		t.Others++
		return
	}
	var of poolCalls
	switch c.Kind {
	case armemu.KindGet, armemu.KindList:
		t.Reads++
		of.reads++
	case armemu.KindPut, armemu.KindDelete:
		t.Writes++
		of.writes++
	case armemu.KindPoll:
		t.Polls++
		return
	}
	switch c.Status {
	case http.StatusTooManyRequests:
		t.Throttled++
		of.throttled++
	case http.StatusConflict, http.StatusPreconditionFailed:
		t.Conflicts++
		of.conflicts++
	}
	if c.Status == http.StatusPreconditionFailed {
		of.preconditionFailed++
	}
	parent, pool := path.Split(c.Resource)
	switch path.Base(parent) {
	case "loadBalancers":
		t.Balancers += of.writes
	case "publicIPAddresses":
		t.PublicIPs += of.writes
	case "networkSecurityGroups":
		t.SecurityGroups += of.writes
	}
	if path.Base(parent) != "backendAddressPools" {
		pool = "" // other pools do not have to wait
	}
	if t.retryAfter.isEarly(pool, c) {
		t.Early++
	}
	if pool == "" {
		return
	}
	t.retryAfter.recordCall(pool, c)
	if t.pools == nil {
		t.pools = map[string]poolCalls{}
	}
	p := t.pools[pool]
	t.pools[pool] = poolCalls{p.reads + of.reads, p.writes + of.writes, p.throttled + of.throttled, p.conflicts + of.conflicts, p.preconditionFailed + of.preconditionFailed}
}

func (t *traffic) deepCopy() traffic {
	copied := *t
	copied.pools, copied.retryAfter = maps.Clone(t.pools), retryAfterState{pools: maps.Clone(t.retryAfter.pools), writes: t.retryAfter.writes}
	return copied
}

// retryAfterState tracks Azure's Retry-After per pool, or for all writes. It knows the faults that the
// demo injected.
type retryAfterState struct {
	pools  map[string]time.Time
	writes time.Time
}

func (r *retryAfterState) isEarly(pool string, c armemu.Call) bool {
	return c.Time.Before(r.pools[pool]) || c.Kind == armemu.KindPut && c.Time.Before(r.writes)
}

func (r *retryAfterState) recordCall(pool string, c armemu.Call) {
	if c.Status != http.StatusTooManyRequests {
		return
	}
	switch c.Fault {
	case faultNotProvisioned:
		if r.pools == nil {
			r.pools = map[string]time.Time{}
		}
		r.pools[pool] = c.Time.Add(poolRetryAfter)
	case faultSubscription:
		r.writes = c.Time.Add(gateRetryAfter)
	}
}

func (t traffic) String() string {
	parts := []string{humanize.FormatCount(t.Reads, "read"), humanize.FormatCount(t.Writes, "write"), humanize.FormatCount(t.Polls, "poll")}
	if t.Throttled > 0 {
		parts = append(parts, fmt.Sprintf("%d throttled", t.Throttled))
	}
	if t.Conflicts > 0 {
		parts = append(parts, humanize.FormatCount(t.Conflicts, "conflict"))
	}
	return strings.Join(parts, ", ")
}
