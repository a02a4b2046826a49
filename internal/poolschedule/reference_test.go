// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"fmt"
	"strings"
	"testing"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/test/referencepage"
)

const reference = "../../docs/reference/updater.md"

// The documentation contains both tables as generated from the code.
func TestReferenceShowsTheTables(t *testing.T) {
	referencepage.ExpectSection(t, reference, "settle", settleTable())
	referencepage.ExpectSection(t, reference, "faults", faultTable())
}

func settleTable() string {
	var b strings.Builder
	b.WriteString("| outcome | retry left | no retry left | a look at a pool that was given up | admin states | taken along |\n|---|---|---|---|---|---|\n")
	for _, o := range []poolwrite.Outcome{poolwrite.Written, poolwrite.Unchanged, poolwrite.Retriable, poolwrite.Terminal, poolwrite.Stale, poolwrite.Rejected, poolwrite.Postponed, poolwrite.Shutdown} {
		row := actionTable[o]
		fmt.Fprintf(&b, "| %s: %s | %s | %s | %s | %s | %s |\n", o, meaning[o], row.retriesLeft, row.noRetries, row.givenUp, row.admin, row.extra)
	}
	return b.String()
}

// meaning describes each outcome for the documentation.
var meaning = map[poolwrite.Outcome]string{
	poolwrite.Written:   "Azure shows what was written",
	poolwrite.Unchanged: "the pool was level already",
	poolwrite.Retriable: "see below",
	poolwrite.Terminal:  "see below",
	poolwrite.Stale:     "pool or load balancer are gone",
	poolwrite.Rejected:  "the pool holds network interfaces",
	poolwrite.Postponed: "something of our own was not ready, nothing was written",
	poolwrite.Shutdown:  "the controller stops",
}

// String describes an action for the documentation.
func (d resultAction) String() string {
	parts := []string{"dropped"}
	if d.requeue {
		parts[0] = "queued again"
	}
	if d.backOff {
		parts[0] += " after a back-off of its own"
	}
	if d.consumeRetry {
		parts = append(parts, "one retry consumed")
	}
	if d.notify != notifyNone {
		parts = append(parts, "Service told "+string(d.notify))
	}
	return strings.Join(parts, ", ")
}

func faultTable() string {
	var b strings.Builder
	b.WriteString("| | class | reason | why |\n|---|---|---|---|\n")
	for _, r := range fault.Rules {
		fmt.Fprintf(&b, "| %s | %s | `%s` | %s |\n", r.Name, strings.ToLower(string(r.Class)), r.Reason, r.Description)
	}
	return b.String()
}
