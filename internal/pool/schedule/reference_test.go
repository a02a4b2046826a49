// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"strings"
	"testing"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/test/referencepage"
)

const reference = "../../../docs/reference/updater.md"

// The documentation contains both tables as generated from the code.
func TestReferenceShowsTheTables(t *testing.T) {
	referencepage.ExpectSection(t, reference, "settle", settleTable())
	referencepage.ExpectSection(t, reference, "faults", faultTable())
}

func settleTable() string {
	var b strings.Builder
	b.WriteString("| outcome | retry left | no retry left | a look at a pool that was given up | admin states | taken along |\n|---|---|---|---|---|---|\n")
	for _, o := range []diff.Outcome{diff.Written, diff.Unchanged, diff.Retriable, diff.Terminal, diff.Stale, diff.Rejected, diff.Postponed, diff.Shutdown} {
		row := actionTable[o]
		fmt.Fprintf(&b, "| %s: %s | %s | %s | %s | %s | %s |\n", o, meaning[o], row.retriesLeft, row.noRetries, row.givenUp, row.admin, row.extra)
	}
	return b.String()
}

// meaning describes each outcome for the documentation.
var meaning = map[diff.Outcome]string{
	diff.Written:   "Azure shows what was written",
	diff.Unchanged: "the pool was in sync already",
	diff.Retriable: "see below",
	diff.Terminal:  "see below",
	diff.Stale:     "pool or load balancer are gone",
	diff.Rejected:  "the pool holds network interfaces",
	diff.Postponed: "something of our own was not ready, nothing was written",
	diff.Shutdown:  "the controller stops",
}

// String describes an action for the documentation.
func (r resultAction) String() string {
	parts := []string{"dropped"}
	if r.requeue {
		parts[0] = "queued again"
	}
	if r.backOff {
		parts[0] += " after a back-off of its own"
	}
	if r.consumeRetry {
		parts = append(parts, "one retry consumed")
	}
	if r.notify != notifyNone {
		parts = append(parts, "event "+string(r.notify))
	}
	return strings.Join(parts, ", ")
}

func faultTable() string {
	var b strings.Builder
	b.WriteString("| | class | reason | why |\n|---|---|---|---|\n")
	for _, r := range armerror.Rules {
		fmt.Fprintf(&b, "| %s | %s | `%s` | %s |\n", r.Name, strings.ToLower(string(r.Class)), r.Reason, r.Description)
	}
	return b.String()
}
